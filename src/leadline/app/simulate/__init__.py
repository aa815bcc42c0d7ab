"""Scenarios to results, calibration and checks against the real thing.

Here: variants, kept results, parallel runs, fits to recordings.
Elsewhere: a simulated system (scenarios, crates/leadline-sim); a published figure (experiments).
"""
