"""sysstat's texts, columns and exports.

Here: iostat, sar, mpstat, pidstat: blocks, columns, times.
Elsewhere: vmstat and top (importers).
"""
