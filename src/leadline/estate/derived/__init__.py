"""Tables over all entities of a capture, each computed once for whoever asks.

Here: the series of each entity, latencies in whichever form, uses of disks, demand and ready time, loads of recordings.
Elsewhere: how a table is kept (core/model/derived.py); changes inside and outside incidents (core/statistics).
"""
