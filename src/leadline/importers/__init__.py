"""One file per tool: its recordings turned into captures.

Here: recognition, the tool's field names, repair of what real files have wrong.
Elsewhere: parts that two importers share (formats).
"""
