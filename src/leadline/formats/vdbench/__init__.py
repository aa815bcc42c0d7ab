"""vdbench's parameter files and tables."""
