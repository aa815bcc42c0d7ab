r"""Statements and autovacuum runs as a PostgreSQL log tells them: which was at work, from when to when.

A statement is logged when it ends (``log_min_duration_statement``, ``log_duration`` with its text), and so is a vacuum
(``log_autovacuum_min_duration``), each with the time that it took:

.. code-block:: text

    ... [24700] LOG:  duration: 9007.983 ms  statement: COMMIT
    ... [24701] LOG:  duration: 11201.500 ms  execute S_1: select *
        from orders where id = $1
    ... [24702] LOG:  automatic vacuum of table "shop.public.orders": index scans: 1
        system usage: CPU: user: 1.23 s, system: 0.40 s, elapsed: 12.34 s

Source: PostgreSQL ``src/backend/tcop/postgres.c``, check_log_duration; ``src/backend/access/heap/vacuumlazy.c``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.formats.statements import shown_name, statement_name

KEPT_MAX = 20  # names, those that took most time
OTHERS = "other statements"
_READ_CHARACTERS = 1024  # of a statement; the table is named near its beginning
_DURATION = re.compile(r"LOG:  duration: (\d{1,12}\.\d+) ms  (?:statement|execute [^:]{1,100}): (.*)", re.DOTALL)
_VACUUM = re.compile(
    r'LOG:  automatic (?:aggressive )?(?:vacuum|analyze)(?: to prevent wraparound)? of table "([^"]+)"'
)
_ELAPSED = re.compile(r"elapsed: (\d{1,9}\.\d+) s")

TimeOf = Callable[
    [str], float | None
]  # UTC seconds of the time that a line begins with; None where it begins with none


@dataclass(frozen=True, slots=True)
class LoggedSpan:
    """What was at work from ``start_s`` to ``end_s``, UTC seconds; the name is that of a statement or of a table."""

    name: str
    start_s: float
    end_s: float
    is_worker: bool = False


def logged_spans(lines: Iterable[str], time_of: TimeOf) -> Iterator[LoggedSpan]:
    """The statements and autovacuum runs of a log, in the order of its lines."""
    for first, text in _messages(lines):
        match = _DURATION.search(text)
        vacuum = _VACUUM.search(text) if match is None else None
        elapsed = _ELAPSED.search(text) if vacuum is not None else None
        if match is None and elapsed is None:
            continue
        end_s = time_of(first)
        if end_s is None:
            continue
        if match is not None:
            yield LoggedSpan(shown_name(statement_name(match[2])), end_s - float(match[1]) / 1000.0, end_s)
        elif vacuum is not None and elapsed is not None:
            name = f"autovacuum worker on {vacuum[1].rpartition('.')[2]}"
            yield LoggedSpan(name, end_s - float(elapsed[1]), end_s, is_worker=True)


def _messages(lines: Iterable[str]) -> Iterator[tuple[str, str]]:
    """The first line of each message that has a duration, and the message with the lines that go on with it."""
    first, text = "", ""
    for line in lines:
        if line.startswith(("\t", " ", "\n")):
            if text and len(text) < _READ_CHARACTERS:
                text += line
            continue
        if text:
            yield first, text
        is_one = "LOG:  duration: " in line or "LOG:  automatic " in line
        first, text = (line, line[: 2 * _READ_CHARACTERS]) if is_one else ("", "")
    if text:
        yield first, text


def longest(spans: Iterable[LoggedSpan]) -> tuple[list[tuple[str, bool]], float]:
    """The names that took most time, each with whether it is a worker, and when the first of all began."""
    total_s: Counter[tuple[str, bool]] = Counter()
    begin_s = float("inf")
    for span in spans:
        total_s[span.name, span.is_worker] += span.end_s - span.start_s  # type: ignore[assignment]
        begin_s = min(begin_s, span.start_s)
    return [name for name, _ in total_s.most_common(KEPT_MAX)], begin_s


def at_work(
    spans: Iterable[LoggedSpan], names: Iterable[tuple[str, bool]], first_s: int, step_s: int, step_count: int
) -> dict[tuple[str, bool], NDArray[np.float64]]:
    """How many of each name were at work, mean over each step [n]; statements of other names as `OTHERS`."""
    counts = {name: np.zeros(step_count) for name in names}
    for span in spans:
        key = (span.name, span.is_worker)
        if key not in counts and span.is_worker:
            continue
        chosen = counts.get(key)
        if chosen is None:
            chosen = counts.setdefault((OTHERS, False), np.zeros(step_count))
        add_span(chosen, (span.start_s - first_s) / step_s, (span.end_s - first_s) / step_s)
    return counts


def add_span(counts: NDArray[np.float64], start: float, end: float) -> None:
    """Add one that was there from step ``start`` to step ``end`` to the means over steps [n]."""
    low, high = max(start, 0.0), min(end, float(len(counts)))
    if not low < high:
        return
    first, last = int(low), min(int(high), len(counts) - 1)
    counts[first : last + 1] += 1.0
    counts[first] -= low - first
    counts[last] -= last + 1 - high
