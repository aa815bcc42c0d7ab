"""Parts of the planner ``cpu``."""
