"""Parts of the planner ``memory``."""
