"""Guides walked with recordings: what each step shows, and what is missing to answer it."""
