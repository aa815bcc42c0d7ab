"""Planners, a file each: sizing answers that show their arithmetic."""
