"""Loads on named targets."""
