"""What runs inside a guest of the lab: standard library alone, and no import of the rest of Leadline at its top.

Here: the agent.
Elsewhere: everything on the host's side (lab).
"""
