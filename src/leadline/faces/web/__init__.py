"""The live page of a watch: read-only, on this machine or behind TLS and a token.

Here: the server, who may ask, pages and their templates.
Elsewhere: the values they show (app/watch/views), figures and styles (faces/report), sentences (faces/words).
"""
