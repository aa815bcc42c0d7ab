"""Load drivers: one file per tool; the tool itself does the work.

Here: how a tool is started, followed and ended, and which of its files are results.
Elsewhere: reading its results (importers); rounds, warm-up and repeats (app/measure).
"""
