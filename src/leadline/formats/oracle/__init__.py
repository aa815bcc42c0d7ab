"""Reports of Oracle databases.

Here: the tables of AWR and Statspack reports, and what their headings and columns mean.
Elsewhere: rules about what they show (rules/database).
"""
