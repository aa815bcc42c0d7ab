"""vdbench's parameter files and tables.

Here: what vdbench writes and takes.
Elsewhere: its capture (importers/vdbench).
"""
