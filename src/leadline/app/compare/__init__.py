"""A recording compared with one of another time.

Here: what changed, by how much and how surely.
Elsewhere: an incident against its own normal (app/diagnose).
"""
