"""Files in and out: sources, pipes, archives, YAML, Parquet, clocks.

Here: bytes, times and safe outputs.
Elsewhere: what the bytes mean (formats, importers).
"""
