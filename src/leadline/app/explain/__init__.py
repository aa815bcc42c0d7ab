"""Pages of units and metrics, and advice that belongs to findings.

Here: what `leadline explain` says, from docstrings, METAs and the tables beside this file.
Elsewhere: the units themselves (rules, importers, ...).
"""
