"""Parts of the planner `place`."""
