"""Incidents that others recorded and labelled, with their licences."""
