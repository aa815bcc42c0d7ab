"""How many instances of a workload fit."""
