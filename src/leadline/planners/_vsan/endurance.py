"""Endurance of flash devices: bytes written over their warranty, and classes."""

from __future__ import annotations

YEARS, DAYS, SECONDS = 5, 365, 86_400
# Source: VMware Compatibility Guide, endurance classes: TB written over five years.
CLASSES = (("A", 365.0), ("B", 1825.0), ("C", 3650.0), ("D", 7300.0))
CACHE_LEAST = {"all-flash": "C", "hybrid": "B"}


def tbw(mb_per_s: float) -> float:
    """TB written in five years at a mean rate.

    >>> round(tbw(0.4e6 * 10 / 86_400))
    7300
    """
    return mb_per_s * SECONDS * DAYS * YEARS / 1e6


def drive_writes_per_day(written_tb: float, size_gb: float) -> float:
    """Times a device of this size is written whole each day.

    >>> drive_writes_per_day(7300, 400)
    10.0
    """
    return written_tb * 1000.0 / (size_gb * DAYS * YEARS)


def class_of(written_tb: float, least: str = "A") -> str:
    """The lowest class that endures it, at least ``least``; ``beyond D`` where none does.

    >>> [class_of(tb) for tb in (100, 2000, 7300, 7301)]
    ['A', 'C', 'D', 'beyond D']
    """
    return next((name for name, most in CLASSES if written_tb <= most and name >= least), "beyond D")
