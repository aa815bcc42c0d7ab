"""The document that wrk writes with our script.

Here: what it holds, without the requests that wrk added.
Elsewhere: its capture, and what wrk prints (importers/wrk), its load and the script (benchmarks/wrk, benchmarks/_web).
"""
