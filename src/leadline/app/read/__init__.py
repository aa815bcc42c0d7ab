"""Recordings in: opening, recognising, importing, names; and what this machine says of itself.

Here: what turns files, archives and this machine's /proc and /sys into captures and inventories.
Elsewhere: what a tool's text means (importers, formats); what a capture says (app/diagnose).
"""
