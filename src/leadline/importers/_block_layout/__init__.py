"""What the importer of block layouts gathers."""
