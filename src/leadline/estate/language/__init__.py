"""The language of rules: what a rule says in a line, from series or settings to findings.

Here: how a rule asks for a metric beyond a limit, a bad setting, slow disks of a database, a rate that a limit holds.
Elsewhere: a condition itself (rules, and rules/_families where several share one); the contract of a rule (core).
"""
