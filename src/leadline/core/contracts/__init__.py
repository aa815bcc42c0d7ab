"""What each kind of unit must be, how units are found, and how they are described.

Here: a module per kind of unit: its META, its functions, its checks.
Elsewhere: units; and parts that units share (estate, formats).
"""
