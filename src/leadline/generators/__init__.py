"""Generated captures of known content, to test what reads them.

Here: model hosts and writers of recordings.
Elsewhere: recorded incidents (examples/incidents).
"""
