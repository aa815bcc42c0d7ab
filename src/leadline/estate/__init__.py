"""What is known of virtual infrastructure and databases, shared by rules and planners.

Here: knowledge of machines, tables derived over all entities, the language of rules, arithmetic on series; a room each.
Elsewhere: a condition that is found (rules); a sizing answer (planners); a file's format (formats).
"""
