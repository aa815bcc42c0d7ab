"""Backup streams, copies and erasure codes.

Here: shards, nodes, failures and rebuilds.
Elsewhere: sizing of protection (planners).
"""
