"""Parts of the planner of remote offices: usual links."""
