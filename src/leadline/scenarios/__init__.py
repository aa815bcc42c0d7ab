"""One file per simulated system."""
