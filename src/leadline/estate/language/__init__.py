"""The language of rules: what a rule says in a line, from series or settings to findings.

Here: a metric beyond a limit, a setting with a bad value, disks under a database, a rate that is held at a limit.
Elsewhere: a condition itself (rules, and rules/_families where several share one); the contract of a rule (core).
"""
