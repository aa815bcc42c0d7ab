"""Parts of the planner of backups: what recordings and inventories know."""
