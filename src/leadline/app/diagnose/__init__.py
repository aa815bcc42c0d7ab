"""Recordings and configuration to findings and a verdict.

Here: the steps from a capture to a verdict, and comparison of two captures.
Elsewhere: reading files (app/read); knowledge of one symptom (rules).
"""
