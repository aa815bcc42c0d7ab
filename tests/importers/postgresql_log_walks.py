"""Lock waits, statements and autovacuum runs of a text log, line by line with expressions: what the reader must agree
with.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.formats.logged_statements import KEPT_MAX, OTHERS, add_span
from leadline.formats.statements import shown_name, statement_name

_STAMP = re.compile(r"((?:19|20)\d\d-\d\d-\d\d \d\d:\d\d:\d\d)(\.\d{1,6})? ([A-Z]{1,5}|[+-]\d\d(?::?\d\d)?)\b")
_WAIT = re.compile(
    r"LOG:  process (\d{1,9}) (still waiting for|acquired) \w{1,40} on (.{1,200}) after (\d{1,12}\.\d+) ms"
)
_HOLDER = re.compile(r"DETAIL:  Process(?:es)? holding the lock: (\d{1,9})")
_FAILED = re.compile(r"\[(\d{1,9})\].{0,300}?(?:ERROR|FATAL):  ")

Clock = Callable[[str, str], float | None]  # UTC seconds of a date and time and its zone, as printed


@dataclass(slots=True)
class LoggedWait:
    """One wait for a lock.

    Attributes:
        start_s: UTC seconds; so is ``end_s``, NaN while it lasts.
        target: what is locked, as logged: "relation 16401 of database 5".
        holder: process that holds the lock; empty where it is not named.
    """

    start_s: float
    target: str
    end_s: float = float("nan")
    holder: str = ""


def logged_waits(lines: Iterable[str], clock: Clock) -> list[LoggedWait]:
    """The lock waits of a log, in the order of its lines; one that never ends lasts to the last line's time."""
    waits: list[LoggedWait] = []
    waiting: dict[str, LoggedWait] = {}
    latest: LoggedWait | None = None  # of the line before, to which a DETAIL belongs
    last_s = float("nan")
    for line in lines:
        match = _WAIT.search(line) if " ms" in line else None
        if match is None:
            holder = _HOLDER.search(line) if latest is not None else None
            failed = _FAILED.search(line) if waiting and ("ERROR" in line or "FATAL" in line) else None
            if holder is not None and latest is not None and not latest.holder:
                latest.holder = holder[1]
            if failed is not None and failed[1] in waiting:
                _end(waiting.pop(failed[1]), line_time(line, clock))
            latest = None
        else:
            pid, verb, target, after_ms = match.groups()
            moment_s = line_time(line, clock)
            if moment_s is None:
                continue
            wait = waiting.get(pid)
            if wait is None:
                wait = LoggedWait(moment_s - float(after_ms) / 1000.0, target)
                waits.append(wait)
            waiting[pid] = latest = wait
            if verb == "acquired":
                _end(waiting.pop(pid), moment_s)
        last_s = line_s if waiting and (line_s := line_time(line, clock)) is not None else last_s
    for wait in waiting.values():
        _end(wait, last_s)
    return waits


def _end(wait: LoggedWait, moment_s: float | None) -> None:
    wait.end_s = wait.start_s if moment_s is None else max(moment_s, wait.start_s)


def line_time(line: str, clock: Clock) -> float | None:
    """UTC seconds of the time that a line begins with; None where it begins with none."""
    match = _STAMP.match(line)
    if match is None:
        return None
    whole = clock(match[1], match[3])
    return None if whole is None else whole + float(match[2] or 0.0)


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
