"""Performance Monitor, esxtop and settings of Windows."""
