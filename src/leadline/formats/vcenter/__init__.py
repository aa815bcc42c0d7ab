"""vCenter's counters and labels, RVTools' columns.

Here: names and units of vSphere's counters and tables.
Elsewhere: the session (estate/vcenter_session); queries (collectors).
"""
