"""Incidents recorded with real tools, on machines whose fault is known and written down."""
