"""Guides walked with recordings: what each step shows, and what is missing to answer it.

Here: the state of each step, by what a diagnosis found, checked and could not check.
Elsewhere: the steps themselves (guides); what the rules find (diagnose); how it is said (faces/words).
"""
