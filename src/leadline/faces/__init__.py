"""What people touch: the command line, reports and notebooks.

Here: how values are printed, drawn and asked for.
Elsewhere: anything computed from recordings (app).
"""
