"""Paths and servers of the network benchmark."""
