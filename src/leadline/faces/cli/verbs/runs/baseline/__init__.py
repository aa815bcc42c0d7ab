"""Baselines: runs that later runs of the same load on the same target are judged against."""

EPILOG = """\
Examples:

  leadline runs baseline keep tonight last

  leadline runs baseline list
"""
