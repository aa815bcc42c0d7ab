"""Backup streams, copies and erasure codes."""
