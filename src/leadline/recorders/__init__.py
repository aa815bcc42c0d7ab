"""One file per target of `leadline recorder`: a part of a script that records where nothing can be installed.

Here: what a part collects with what is there, and the frame of its language that runs parts (``_frame``).
Elsewhere: how parts become one script (app/recorders), what reads the files they write (importers).
"""
