"""What is known of virtual infrastructure and databases, shared by rules and planners.

Here, in four rooms: ``knowledge`` asks an inventory what runs where and what is set how; ``derived`` are tables over
all entities, computed once for whoever asks; ``language`` is what rules are written in; ``arithmetic`` is on series.
Elsewhere: a condition that is found (rules); a sizing answer (planners); a file's format (formats).
"""
