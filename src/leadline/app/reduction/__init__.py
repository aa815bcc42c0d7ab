"""What deduplication and compression would save of real data.

Here: places to read, fingerprints, tables of contents, bounds of what was not read, sizes of compressed blocks.
Elsewhere: sizing of vSAN by the result (planners).
"""
