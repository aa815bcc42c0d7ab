"""What people touch: the command line and notebooks."""
