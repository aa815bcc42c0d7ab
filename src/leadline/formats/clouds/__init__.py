"""Counters of clouds: names, places and statistics, and how values of periods become series.

Here: what exports of CloudWatch, Azure Monitor and other clouds share.
Elsewhere: reading their files (importers).
"""
