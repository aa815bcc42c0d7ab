"""Benchmarks: run by ``make bench``, printed, never asserted on time."""
