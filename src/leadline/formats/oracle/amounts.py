"""Numbers of AWR and Statspack reports: with letters for thousands, with units, rounded as their columns are wide."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

_AMOUNT = re.compile(r"(?P<digits>-?[\d.,]+)(?: ?(?P<letter>[KMGTP]))?(?: ?(?P<unit>ns|us|ms|cs|s))?")
_LETTERS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
MS_OF = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "cs": 10.0, "s": 1000.0}
_DIGITS_MAX = 20
_UNIT = re.compile(r"\((ns|us|ms|cs|s|sec)\)")


@dataclass(frozen=True, slots=True)
class Amount:
    """A printed number: its value, by how much rounding may have changed it, and the unit behind it, if any."""

    value: float
    unsure: float
    unit: str = ""


_NONE = Amount(math.nan, math.nan)


def amount_of(text: str, *, decimal_comma: bool = False) -> Amount:
    """A number of a report; NaN where it is none, as ``######`` of one too wide for its column.

    >>> amount_of("35,732").value, amount_of("27.9K").value, amount_of(".7").value
    (35732.0, 27900.0, 0.7)
    >>> amount_of("52.86 s").unit, amount_of("560.75us").unit
    ('s', 'us')
    """
    match = _AMOUNT.fullmatch(text.strip())
    if match is None or len(match["digits"]) > _DIGITS_MAX or not re.search(r"\d", match["digits"]):
        return _NONE
    group, point = (".", ",") if decimal_comma else (",", ".")
    digits = match["digits"].replace(group, "").replace(point, ".")
    try:
        value = float(digits)
    except ValueError:
        return _NONE
    scale = _LETTERS[match["letter"] or ""]
    decimals = len(digits.partition(".")[2])
    return Amount(value * scale, 0.5 * scale / 10.0**decimals, match["unit"] or "")


def unit_in(name: str, otherwise: str) -> str:
    """The unit that the name of a column gives in brackets.

    >>> unit_in("avg wait (ms)", "s"), unit_in("total wait time (sec)", "ms"), unit_in("avg wait", "ms")
    ('ms', 's', 'ms')
    """
    match = _UNIT.search(name)
    return otherwise if match is None else "s" if match[1] == "sec" else match[1]


def mean_ms(waits: Amount, total_s: Amount, printed_ms: Amount) -> float:
    """The mean of a wait, milliseconds: as printed, or total by count where that is rounded less; NaN: neither.

    >>> round(mean_ms(amount_of("61,304"), amount_of("10"), amount_of("0")), 3)
    0.163
    >>> round(mean_ms(amount_of("35,732"), amount_of("6,575"), amount_of("184")), 3)
    184.009
    """
    if not waits.value > 0 or not math.isfinite(total_s.value):
        return printed_ms.value
    computed = total_s.value * 1000.0 / waits.value
    unsure = (total_s.unsure * 1000.0 + computed * waits.unsure * (waits.unsure > 0.5)) / waits.value
    return printed_ms.value if printed_ms.unsure < unsure else computed
