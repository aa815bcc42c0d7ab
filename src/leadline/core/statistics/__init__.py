"""Intervals, steadiness and scaling of measured values.

Here: pure functions over arrays, each with its source.
Elsewhere: what the numbers mean for a verdict (app/diagnose, rules).
"""
