"""What several importers share: clocks, tables and encodings of one family of tools.

Here: texts, columns and units of a tool or family.
Elsewhere: a capture made of them (importers).
"""
