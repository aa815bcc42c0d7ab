"""vCenter's counters and labels, RVTools' columns."""
