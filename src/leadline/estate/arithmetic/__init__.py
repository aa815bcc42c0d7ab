"""Arithmetic on series, whatever they measure.

Here: episodes, windows of time, series of a whole made from its parts, plateaus of a rate.
Elsewhere: loops over samples (leadline_stats, through core/statistics); tables over entities (derived).
"""
