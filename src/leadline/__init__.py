"""Leadline."""
