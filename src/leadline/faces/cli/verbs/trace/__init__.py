"""Characterise, replay and model I/O traces."""

QUESTION = "slow"
EPILOG = """\
Examples:

  leadline trace characterise db01.vscsi

  leadline trace model db01.vscsi -o db01.yaml
"""
