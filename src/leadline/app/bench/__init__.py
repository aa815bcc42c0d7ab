"""Loads on named targets, kept as runs.

Here: what `bench run` does beyond one measuring loop: many hosts as one run.
Elsewhere: the loop itself, targets and recorders (app/measure); how a tool is driven (benchmarks).
"""
