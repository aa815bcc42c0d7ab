"""Bounds of numbers a user gives: what is beyond them is a mistake, in whatever unit."""

from __future__ import annotations

NUMBER_MAX = 1e18  # Judgement: a billion GB in bytes, and 30 years in nanoseconds
OFFSET_S_MAX = 100 * 366 * 86_400.0  # a clock that starts in 1970 is half as wrong
SIZE_BYTES_MAX = 2.0**63  # what a file offset can say
