"""The average at the end of a flat file, as the counts of a load; rows of the console while it runs.

Source: Vdbench User Guide 5.04.07, "Flatfile", "Sample output"; the importer vdbench, which reads whole flat files.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace

from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Result
from leadline.formats.vdbench.table import BYTES_PER_MIB, cell

_ROW = re.compile(r"\d\d:\d\d:\d\d[.,]\d{3} +(\d{1,9}) +(\d{1,12}[.,]\d{1,6}) +(\d{1,12}[.,]\d{1,6}) ")
_AVERAGE = re.compile(r"avg_(\d{1,9})-(\d{1,9})")
_BUCKET = re.compile(r"^ *\d[\d.,]* <  ", re.MULTILINE)
_DIRECTIONS = ("read", "write")


def second_of(line: str) -> tuple[int, float, float] | None:
    """Return interval, operations per second and bytes per second of a console's row; None of every other line.

    >>> second_of("14:56:43.056           1       89.0     0.35    4096  40.45    5.395 ...")
    (1, 89.0, 367001.6)
    """
    match = _ROW.match(line)
    if match is None:
        return None
    return int(match[1]), float(match[2].replace(",", ".")), float(match[3].replace(",", ".")) * BYTES_PER_MIB


def average_of(text: str) -> dict[str, float]:
    """Return the last average of a flat file by column, and its ``seconds`` at one interval a second; empty: none."""
    header: list[str] = []
    average: dict[str, float] = {}
    for line in text.splitlines():
        words = line.split()
        if words[:1] == ["tod"]:
            header = words
            continue
        if len(words) != len(header) or "Interval" not in header:
            continue
        spanned = _AVERAGE.fullmatch(words[header.index("Interval")])
        if spanned is None:
            continue
        after = header.index("Interval") + 1
        try:
            average = {n: cell(word, decimal_comma=True) for n, word in zip(header[after:], words[after:], strict=True)}
        except ValueError:
            continue
        average["seconds"] = float(int(spanned[2]) - int(spanned[1]) + 1)
    return average


def has_bucket(text: str) -> bool:
    """Whether a histogram's file holds a histogram: vdbench makes the file in any case."""
    return _BUCKET.search(text) is not None


def joined(results: Sequence[Result]) -> tuple[Result, ...]:
    """Return the results of one run with those of its histograms in them, by direction.

    A flat file has the rates and latencies, another file the histograms. The flat file counts reads and writes, and
    bytes of both together: a direction has the share of its requests, which have the same sizes. An operation that
    was not done is left out.

    Args:
        results: of one step, as the importers read its files.
    """
    histograms = {
        (result.job, operation.name): operation.histogram
        for result in results
        for operation in result.operations
        if operation.histogram is not None
    }
    with_rates = [result for result in results if any(o.per_s == o.per_s for o in result.operations)]
    return tuple(_by_direction(result, histograms) for result in with_rates)


def _by_direction(result: Result, histograms: dict[tuple[str, str], Histogram]) -> Result:
    whole = result.operation("io")
    done = [o for o in map(result.operation, _DIRECTIONS) if o is not None and o.per_s > 0]
    if whole is None or not done:
        return result
    operations = []
    for operation in done:
        histogram = histograms.get((result.job, operation.name))
        operations.append(
            replace(
                operation,
                bytes_per_s=whole.bytes_per_s * operation.per_s / whole.per_s,
                count=operation.per_s * result.duration_s if histogram is None else float(histogram.total),
                latency_ms=whole.latency_ms if len(done) == 1 else operation.latency_ms,
                histogram=histogram,
            )
        )
    return replace(result, operations=tuple(operations))
