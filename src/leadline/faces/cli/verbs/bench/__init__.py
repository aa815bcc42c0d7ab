"""Load a machine honestly and keep what was measured."""

EPILOG = """\
Examples:

  leadline bench protect --help
"""
