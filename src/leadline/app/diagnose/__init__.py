"""Recordings and configuration to findings and a verdict."""
