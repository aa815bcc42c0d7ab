"""One file per verb: a function `command` with its options, found by file name.

Here: options, help with examples, and calls of app.
Elsewhere: tables and pages (faces, faces/report).
"""
