"""Use cases: they return values and never print."""
