"""Lock waits as a PostgreSQL log tells them (``log_lock_waits``): who waited for what, from when to when, behind whom.

A wait is logged once, when it has lasted ``deadlock_timeout``, and once more when the lock was acquired:

.. code-block:: text

    ... [13604] LOG:  process 13604 still waiting for ShareLock on transaction 15075 after 1000.099 ms
    ... [13604] DETAIL:  Process holding the lock: 13605. Wait queue: 13604.
    ... [13604] LOG:  process 13604 acquired ShareLock on transaction 15075 after 3000.250 ms

Source: PostgreSQL ``src/backend/storage/lmgr/proc.c``, ProcSleep.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.formats.logged_statements import add_span

HOLDERS_MAX = 10  # that are kept by name, those behind which most waited
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


def blocked_counts(waits: Iterable[LoggedWait], first_s: int, step_s: int, step_count: int) -> NDArray[np.float64]:
    """Sessions that waited, mean over each step [n]."""
    counts = np.zeros(step_count)
    for wait in waits:
        add_span(counts, (wait.start_s - first_s) / step_s, (wait.end_s - first_s) / step_s)
    return counts


def by_holder(waits: Iterable[LoggedWait]) -> dict[str, list[LoggedWait]]:
    """The waits behind each process that held a lock, by its name, those behind which most time was waited."""
    behind: dict[str, list[LoggedWait]] = {}
    targets: dict[str, Counter[str]] = {}
    for wait in waits:
        if wait.holder:
            behind.setdefault(wait.holder, []).append(wait)
            targets.setdefault(wait.holder, Counter())[wait.target] += 1
    waited = {pid: sum(wait.end_s - wait.start_s for wait in group) for pid, group in behind.items()}
    most = sorted(behind, key=lambda pid: -waited[pid])[:HOLDERS_MAX]
    return {f"pid {pid} (holds {targets[pid].most_common(1)[0][0]})": behind[pid] for pid in most}


def _end(wait: LoggedWait, moment_s: float | None) -> None:
    wait.end_s = wait.start_s if moment_s is None else max(moment_s, wait.start_s)


def line_time(line: str, clock: Clock) -> float | None:
    """UTC seconds of the time that a line begins with; None where it begins with none."""
    match = _STAMP.match(line)
    if match is None:
        return None
    whole = clock(match[1], match[3])
    return None if whole is None else whole + float(match[2] or 0.0)
