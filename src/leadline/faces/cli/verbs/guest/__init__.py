"""Optimise a guest for a database, item by item, and take it back.

What is written to a Linux guest are drop-in files of Leadline's own; a journal leads back. For Windows a script is
exported, to be read and run there.
"""

QUESTION = "size"
EPILOG = """\
Examples:

  leadline guest analyze

  leadline guest apply --template postgresql --take overcommit --root image --yes

  leadline guest history --root image
"""
