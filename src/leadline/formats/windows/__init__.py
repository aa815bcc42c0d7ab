"""Performance Monitor, esxtop and settings of Windows.

Here: PDH names, localised counters, optimisation templates.
Elsewhere: reading wide CSV fast (crates/leadline-parse).
"""
