"""Parts of the planner of layouts: what recordings and inventories know."""
