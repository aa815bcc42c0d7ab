"""What was measured: list, show, compare and export runs.

Runs are kept in LEADLINE_HOME, else in the user's data folder.
"""

QUESTION = "fast"
EPILOG = """\
Examples:

  leadline runs list

  leadline runs show last
"""
