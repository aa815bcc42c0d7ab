"""Processes, sockets, targets, secrets, what a kill leaves.

Here: how Leadline behaves on a machine: safety, consent, children, temporary files.
Elsewhere: how one tool is driven (benchmarks).
"""
