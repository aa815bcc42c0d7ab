"""One execution of a load: targets, the loop, recorders, runs and their comparison.

Here: what more than one feature needs to load something or to compare runs.
Elsewhere: how a tool is driven (benchmarks); what one feature does with its runs.
"""
