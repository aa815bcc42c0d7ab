"""Is it the disk?

Here: pulses below, at and above a disk's limit, and what they prove.
Elsewhere: how a pulse is driven (benchmarks); findings from recordings (app/diagnose).
"""
