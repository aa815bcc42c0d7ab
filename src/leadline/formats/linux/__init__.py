"""What Linux tells under /proc and by its tools."""
