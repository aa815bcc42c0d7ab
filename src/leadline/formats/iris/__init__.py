"""Reports of InterSystems systems.

Here: sections of pButtons and of configuration files.
Elsewhere: rules about them (rules/database).
"""
