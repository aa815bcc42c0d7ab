"""How many instances of a workload fit.

Here: instances, their steps, the knee and its comparison.
Elsewhere: the load of one instance (app/measure).
"""
