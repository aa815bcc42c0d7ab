"""Block traces: described, replayed, modelled.

Here: what is done with the requests of a trace.
Elsewhere: formats of traces (formats/traces, crates/leadline-parse).
"""
