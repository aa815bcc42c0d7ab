"""Guides: a file here is a workflow that `leadline guide` walks, found by its name."""
