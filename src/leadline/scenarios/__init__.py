"""One file per simulated system.

Here: the schema of its scenario files and what its results are called.
Elsewhere: arithmetic (crates/leadline-sim).
"""
