"""What several rules share: the same shape, limits or symptoms, declared once; a change to a family is one edit here.

A rule keeps its file, docstring, code and name; only rules import this folder.
"""
