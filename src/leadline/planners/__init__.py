"""Planners, a file each: sizing answers that show their arithmetic.

Here: the question, its inputs, figures, warnings and settings to print.
Elsewhere: knowledge that a rule needs too (estate).
"""
