"""Tables of any monitoring system, read by a map that the user writes.

Here: the map, tables of text, what the two make, the first draft of a map.
Elsewhere: exports of tools that Leadline knows (importers).
"""
