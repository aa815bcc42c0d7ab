"""vCenter's counters and labels, RVTools' columns.

Here: names and units of vSphere's counters and tables, settings from the components of vSAN's objects.
Elsewhere: the session (estate/vcenter_session); queries (collectors).
"""
