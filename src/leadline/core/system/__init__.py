"""Processes, sockets, targets, secrets, what a kill leaves."""
