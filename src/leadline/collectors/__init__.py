"""One file per live source: what is there now, read without changing anything.

Here: queries, their cost, and how the answers become files.
Elsewhere: what a counter means (formats, core/model/metrics).
"""
