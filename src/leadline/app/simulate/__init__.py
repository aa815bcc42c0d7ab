"""Scenarios to results, calibration and checks against the real thing."""
