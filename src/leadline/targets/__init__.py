"""One file per system Leadline can change, always by a printed plan and with a way back.

Here: changes, their undo and their unsafe ranges.
Elsewhere: advice (rules, planners).
"""
