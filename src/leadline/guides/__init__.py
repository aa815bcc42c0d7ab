"""One file per workflow that `leadline guide` walks.

Here: the steps, in their order: what to look at, rules, what to record, advice, what is done by hand.
Elsewhere: what recordings show at each step (app/guide); what a rule finds (rules).
"""
