"""The measuring loop and what stands beside it: targets, recorders, comparison of runs."""
