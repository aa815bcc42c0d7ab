"""Parts of the planner of queues: what recordings and inventories know."""
