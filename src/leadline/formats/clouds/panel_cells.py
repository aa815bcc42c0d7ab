"""Cells of dashboards: times, and numbers with the unit that a panel shows."""

from __future__ import annotations

import math
import re

from leadline.core.model.units import UNITS, factor
from leadline.formats.samples import epoch_ns

_AMOUNT = re.compile(r"([-+]?[0-9][0-9,]*(?:\.[0-9]+)?(?:[eE][-+]?[0-9]{1,3})?)[\s\u00a0]*([^\s0-9][^0-9]{0,12})?")
_EPOCH = re.compile(r"[0-9]{10}(?:[0-9]{3})?(?:\.[0-9]+)?")
# What panels write behind a number: a unit of ours and how many of it.
_SUFFIXES: dict[str, tuple[str, float]] = {
    "ns": ("ns", 1), "µs": ("us", 1), "μs": ("us", 1), "us": ("us", 1), "ms": ("ms", 1), "s": ("s", 1),
    "min": ("s", 60), "mins": ("s", 60), "hour": ("s", 3600), "hours": ("s", 3600),
    "%": ("pct", 1),
    "b": ("bytes", 1), "kib": ("kib", 1), "mib": ("mib", 1), "gib": ("gib", 1), "tib": ("gib", 1024),
    "kb": ("bytes", 1e3), "mb": ("mb", 1), "gb": ("mb", 1e3), "tb": ("mb", 1e6),
    "b/s": ("bytes_per_s", 1), "kib/s": ("kib_per_s", 1), "mib/s": ("mib_per_s", 1), "gib/s": ("mib_per_s", 1024),
    "kb/s": ("bytes_per_s", 1e3), "mb/s": ("mb_per_s", 1), "gb/s": ("mb_per_s", 1e3),
    "io/s": ("per_s", 1), "ops/s": ("per_s", 1), "c/s": ("per_s", 1), "iops": ("per_s", 1), "rd/s": ("per_s", 1),
    "wr/s": ("per_s", 1), "req/s": ("per_s", 1),
}  # fmt: skip
_THOUSANDS = {"k": 1e3, "mil": 1e6, "bil": 1e9, "tri": 1e12}
_NOT_MEASURED = frozenset({"", "null", "nan", "undefined", "-", "n/a", "no data"})


def cell_amount(text: str, unit: str) -> float | None:
    """The number of a cell in a unit; NaN where it is empty, None where it is no number or of another kind of unit.

    Args:
        text: as the panel shows it: ``3.42 ms``, ``82.1%``, ``1.2 K``, ``12.5``.
        unit: wanted; empty where it is not known: then a unit in the cell makes it no number.

    >>> cell_amount("3.42 ms", "s"), cell_amount("1.2 K", "count"), cell_amount("7 GiB", "ms")
    (0.00342, 1200.0, None)
    """
    plain = text.strip()
    if plain.casefold() in _NOT_MEASURED:
        return math.nan
    match = _AMOUNT.fullmatch(plain) if len(plain) < 60 else None
    if match is None:
        return None
    number = float(match[1].replace(",", ""))
    suffix = " ".join((match[2] or "").casefold().split())
    first, _, rest = suffix.partition(" ")
    if first in _THOUSANDS:
        number, suffix = number * _THOUSANDS[first], rest
    if not math.isfinite(number):
        return None
    if not suffix:
        return number
    shown = _SUFFIXES.get(suffix)
    if shown is None or unit not in UNITS or UNITS[unit].dimension != UNITS[shown[0]].dimension:
        return None
    return number * shown[1] * factor(shown[0], unit)


def epoch_of(text: str) -> int | None:
    """UTC nanoseconds of seconds or milliseconds since 1970; None where it is neither.

    >>> epoch_of("1795163400"), epoch_of("1795163400000"), epoch_of("12")
    (1795163400000000000, 1795163400000000000, None)
    """
    plain = text.strip()
    if _EPOCH.fullmatch(plain) is None:
        return None
    whole, _, fraction = plain.partition(".")
    unit_ns = 1_000_000 if len(whole) > 10 else 1_000_000_000
    part = round(float(f"0.{fraction[:9]}") * unit_ns) if fraction else 0
    time_ns = epoch_ns(int(whole), unit_ns)
    return None if time_ns is None else time_ns + part
