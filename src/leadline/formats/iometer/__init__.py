"""Iometer's configuration files.

Here: what Iometer takes.
Elsewhere: its capture (importers/iometer).
"""
