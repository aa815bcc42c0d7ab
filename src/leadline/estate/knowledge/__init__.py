"""What is known of infrastructure and databases, asked of an inventory: what runs where, what is set how.

Here: hosts, clusters, VMs, disks and their controllers, paths, networks, vSAN, settings of databases and guests.
Elsewhere: what needs series (derived); how a setting is judged (language, rules); how it is read (importers).
"""
