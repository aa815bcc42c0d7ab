"""One workload at more and more load.

Here: steps of load, curves, their knee, and a plan made from little input.
Elsewhere: one step of load (app/measure).
"""
