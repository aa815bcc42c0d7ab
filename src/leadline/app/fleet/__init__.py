"""Worker machines cloned through vCenter, loaded and removed.

Here: the order of machines, their offer, their clones and what removes them; the easy run, which chooses all.
Elsewhere: the load on the machines (app/measure/hosts).
"""
