"""fio's results, logs, job files and options.

Here: what fio writes and takes.
Elsewhere: starting fio (benchmarks/fio).
"""
