"""Archives of Performance Co-Pilot."""
