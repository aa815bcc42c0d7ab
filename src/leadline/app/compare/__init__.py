"""A recording compared with one of another time.

Here: which series and settings changed, by how much, with an interval.
Elsewhere: an incident against its own normal (app/diagnose).
"""
