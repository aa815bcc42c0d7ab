"""Experiments: what they find, and that they would find something else in another world."""
