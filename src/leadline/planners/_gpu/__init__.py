"""Parts of the planner ``gpu``."""
