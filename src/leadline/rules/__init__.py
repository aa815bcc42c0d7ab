"""One file per rule, in a folder per layer.

Here: a condition, its limits with their sources, and the remedy.
Elsewhere: knowledge that two rules need (estate); a verdict (app/diagnose).
"""
