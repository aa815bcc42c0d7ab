"""Kinds of incident, one file each, found by their names."""
