"""Parts of the planner of limits: what clouds and policies offer, and requests behind a limit."""
