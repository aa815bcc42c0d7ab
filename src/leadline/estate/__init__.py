"""What is known of virtual infrastructure and databases, shared by rules and planners.

Here: disks, paths, datastores, vSAN, CPU demand, limits, database settings, templates of rules.
Elsewhere: a condition that is found (rules); a sizing answer (planners); a file's format (formats).
"""
