"""Guests on this machine, booted for a measurement."""
