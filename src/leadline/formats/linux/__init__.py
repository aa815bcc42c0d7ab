"""What Linux tells under /proc and by its tools.

Here: counters of /proc, their names and units.
Elsewhere: sysstat's own texts (formats/sysstat).
"""
