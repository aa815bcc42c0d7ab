"""Parts of the planner of qualities of service."""
