"""Units and quantities: what a number means, and how to show it."""

from __future__ import annotations

from dataclasses import dataclass
from math import isnan

from leadline.core.model.errors import UsageError


@dataclass(frozen=True, slots=True)
class Unit:
    """A unit: its dimension and its size in the dimension's base unit."""

    name: str
    dimension: str
    factor: float
    symbol: str


UNITS: dict[str, Unit] = {
    unit.name: unit
    for unit in (
        Unit("ns", "time", 1e-9, "ns"),
        Unit("us", "time", 1e-6, "µs"),
        Unit("ms", "time", 1e-3, "ms"),
        Unit("s", "time", 1.0, "s"),
        Unit("bytes", "size", 1.0, "B"),
        Unit("kib", "size", 1024.0, "KiB"),
        Unit("mib", "size", 1024.0**2, "MiB"),
        Unit("gib", "size", 1024.0**3, "GiB"),
        Unit("mb", "size", 1e6, "MB"),
        Unit("sectors", "size", 512.0, "sectors"),
        Unit("bytes_per_s", "throughput", 1.0, "B/s"),
        Unit("kib_per_s", "throughput", 1024.0, "KiB/s"),
        Unit("mib_per_s", "throughput", 1024.0**2, "MiB/s"),
        Unit("mb_per_s", "throughput", 1e6, "MB/s"),
        Unit("sectors_per_s", "throughput", 512.0, "sectors/s"),
        Unit("kbit_per_s", "throughput", 1e3 / 8, "kbit/s"),
        Unit("mbit_per_s", "throughput", 1e6 / 8, "Mbit/s"),
        Unit("per_s", "rate", 1.0, "/s"),
        Unit("pct", "share", 0.01, "%"),
        Unit("permille", "share", 0.001, "‰"),
        Unit("ratio", "share", 1.0, ""),
        Unit("count", "count", 1.0, ""),
        Unit("flag", "flag", 1.0, ""),
        Unit("mhz", "frequency", 1e6, "MHz"),
        Unit("watt", "power", 1.0, "W"),
        Unit("unknown", "unknown", 1.0, ""),
    )
}


def factor(unit_from: str, unit_to: str) -> float:
    """What to multiply a value in ``unit_from`` by to have it in ``unit_to``.

    Raises:
        UsageError: a unit is unknown, or the two measure different things.

    >>> factor("us", "ms"), factor("mbit_per_s", "bytes_per_s")
    (0.001, 125000.0)
    """
    source, target = UNITS.get(unit_from), UNITS.get(unit_to)
    if source is None or target is None or source.dimension != target.dimension:
        raise UsageError(
            f"unit {unit_from} -> {unit_to}",
            found="no conversion",
            expected="two units of one dimension",
            advice=f"Known units: {', '.join(UNITS)}",
        )
    return source.factor / target.factor


def symbol(unit: str) -> str:
    """What a unit is written as; a name that is no unit stands for itself.

    >>> symbol("pct"), symbol("per_s"), symbol("requests")
    ('%', '/s', 'requests')
    """
    return UNITS[unit].symbol if unit in UNITS else unit


def show(value: float, unit: str) -> str:
    """A value for people: three significant digits and the unit's symbol; NaN is said, not shown as 0.

    >>> show(12.3456, "ms")
    '12.3 ms'
    >>> show(float("nan"), "pct")
    'not measured'
    """
    if isnan(value):
        return "not measured"
    symbol = UNITS[unit].symbol
    number = f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
    return f"{number}{symbol}" if not symbol or symbol.startswith("/") else f"{number} {symbol}"


def share_text(value: float, digits: int = 0) -> str:
    """A part of a whole, 0 to 1, for people.

    >>> share_text(0.974), share_text(0.0241, 1)
    ('97 %', '2.4 %')
    """
    return f"{100.0 * value:.{digits}f} %"


def duration(seconds: float) -> str:
    """A span of time for people.

    >>> duration(90), duration(600), duration(9000)
    ('90 s', '10 min', '2.5 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def several(count: int, noun: str) -> str:
    """A count with what is counted.

    >>> several(1, "disk"), several(16_000, "VM")
    ('1 disk', '16,000 VMs')
    """
    return f"{count:,} {noun}{'s' * (count != 1)}"


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with its unit."""

    value: float
    unit: str

    def to(self, unit: str) -> Quantity:
        """The same quantity in another unit of the dimension."""
        return Quantity(self.value * factor(self.unit, unit), unit)

    def __str__(self) -> str:
        return show(self.value, self.unit)
