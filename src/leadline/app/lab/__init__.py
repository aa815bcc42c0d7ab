"""Guests on this machine, loaded as a lab file says.

Here: the order of loads, their steps and phases, results and comparison.
Elsewhere: what a guest is made of and how it is talked to (lab); booting guests for other features
    (app/measure/guests).
"""
