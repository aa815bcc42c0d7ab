"""The vocabulary as types: what every importer, rule and face shares.

Here: entities, metrics, series, captures, findings, runs, workloads, errors.
Elsewhere: arithmetic over values (core/statistics); knowledge of infrastructure (estate).
"""
