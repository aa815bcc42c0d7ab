"""What every other room may import; it knows nothing of VMware or databases.

Here: the five rooms below.
Elsewhere: anything that one side alone imports: it belongs to that side.
"""
