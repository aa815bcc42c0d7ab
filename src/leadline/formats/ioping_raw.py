"""Raw statistics of ioping: lines of eight or ten numbers, and the command that may stand before them.

A line covers a request (``-p 1``), some requests or a period (``-p N``, ``-P``) or a whole run (``-B``).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.histogram import Histogram
from leadline.formats.loadtool import sample_histogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

COLUMNS = ("count", "time", "iops", "bps", "min", "avg", "max", "mdev", "made", "ran")  # times in ns
OLD_COUNT = 8  # columns before version 0.9
LINE = re.compile(r"[0-9]{1,40}(?: [0-9]{1,40}){7}(?: [0-9]{1,40} [0-9]{1,40})?")
PROMPT = re.compile(r"(?:\S.{0,80}[$#>%] |[$#>%] )(?:\S{0,200}/)?(?P<command>ioping .*)")
_BLOCK = re.compile(r"^(?:[0-9]{1,40}+(?: [0-9]{1,40}+){9}+\n){2,}+", re.MULTILINE)
_VALUE_MAX = 1e15  # Judgement: eleven days in nanoseconds, a petabyte a second


def parts(text: str) -> Iterator[tuple[int, str | NDArray[np.float64]]]:
    """A text as lines and as tables of neighbouring lines of ten numbers, each with the index of its (first) line."""
    position = index = 0
    for block in _BLOCK.finditer(text):
        for line in text[position : block.start()].splitlines():
            yield index, line
            index += 1
        table = np.fromstring(block[0], dtype=np.float64, sep=" ").reshape(-1, len(COLUMNS))
        yield index, table
        index += len(table)
        position = block.end()
    for line in text[position:].splitlines():
        yield index, line
        index += 1


def row_of(line: str) -> NDArray[np.float64]:
    """A line that matches `LINE` as a table [1, 10]; NaN for what old versions did not print."""
    values = [float(part) for part in line.split()]
    return np.array([[*values, *[np.nan] * (len(COLUMNS) - len(values))]])


def agree(table: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Whether rows [n, 10] are ioping's [n]: the mean is the time by the count, the rate its inverse."""
    count, spent, rate, _, low, mean, high = table[:, :7].T
    with np.errstate(divide="ignore", invalid="ignore"):
        means = (low <= mean) & (mean <= high) & (np.abs(mean - spent / count) <= 1.0)
        rates = np.abs(rate - count * 1e9 / spent) <= 1.0 + rate * 1e-3
    plausible = (spent > 0) & (np.nan_to_num(table).max(axis=1) < _VALUE_MAX) & means & rates
    nothing = (count == 0) & (spent == 0) & (rate == 0) & (mean == 0)
    sound: NDArray[np.bool_] = nothing | (plausible & (count > 0))
    return sound


def is_raw(line: str) -> bool:
    """Whether a line is ioping's."""
    return LINE.fullmatch(line) is not None and bool(agree(row_of(line))[0])


def rates(table: NDArray[np.float64]) -> tuple[float, float, float]:
    """Requests and bytes per second of those made, pauses included, and for how many seconds; NaN: not known."""
    column = dict(zip(COLUMNS, table.T, strict=True))
    ran_s = float(column["ran"].sum()) / 1e9
    busy = column["iops"] > 0
    if not ran_s > 0 or not busy.any():
        return float("nan"), float("nan"), ran_s if ran_s > 0 else float("nan")
    per_s = float(column["made"].sum()) / ran_s
    return per_s, per_s * float((column["bps"][busy] / column["iops"][busy]).mean()), ran_s


def histogram(table: NDArray[np.float64]) -> Histogram | None:
    """Of every request; None when a line covers several."""
    count = table[:, 0]
    if not (count == 1).any() or (count > 1).any():
        return None
    return sample_histogram(table[count == 1, COLUMNS.index("avg")], "ns")


def asked(command: str) -> tuple[str, str]:
    """Target and way (``read``, ``write``; empty: both, or not known) of a command."""
    try:
        words = shlex.split(command)
    except ValueError:
        return "", ""
    options = [word for word in words[1:-1] if word.startswith("-")]
    if any(option in ("-G", "-read-write") for option in options):
        return words[-1], ""
    return words[-1], "write" if any(option.startswith(("-W", "-write")) for option in options) else "read"
