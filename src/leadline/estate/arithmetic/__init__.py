"""Arithmetic on series: episodes, windows of time, plateaus."""
