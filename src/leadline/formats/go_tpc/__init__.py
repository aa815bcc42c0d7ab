"""go-tpc's intervals.

Here: latencies from what it prints.
Elsewhere: its capture (importers/go_tpc), its load (benchmarks/go_tpc).
"""
