"""Published figures, a file each: what Leadline gets for them.

Here: claim, source, tolerance and the scenario that is run.
Elsewhere: the simulated system (scenarios).
"""
