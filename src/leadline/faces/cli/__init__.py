"""The command line: options, progress, consent, endings.

Here: what several verbs need to talk with a terminal.
Elsewhere: a verb (faces/cli/verbs).
"""
