"""Intervals, steadiness and scaling of measured values."""
