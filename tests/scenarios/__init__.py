"""Simulated systems."""
