"""Recordings in: opening, recognising, importing, names."""
