"""The throw-away web server, and the script that makes wrk keep every latency.

Here: nginx in a folder of its own, the Lua script.
Elsewhere: how wrk is run (benchmarks/wrk), what its document holds (formats/wrk).
"""
