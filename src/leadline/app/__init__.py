"""Use cases: they return values and never print.

Here: a room per feature, and verbs of one module.
Elsewhere: anything printed or drawn (faces); arithmetic that two features need (the three rooms they stand on).
"""
