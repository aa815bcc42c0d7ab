"""One file per fault that can be injected into a generated capture.

Here: how primary quantities change, and what a diagnosis must say.
Elsewhere: the rule that finds it (rules).
"""
