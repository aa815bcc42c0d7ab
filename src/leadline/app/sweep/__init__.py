"""One workload at more and more load."""
