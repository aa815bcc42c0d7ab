"""Lock waits as a PostgreSQL log tells them (``log_lock_waits``): who waited for what, from when to when, behind whom.

A wait is logged once, when it has lasted ``deadlock_timeout``, and once more when the lock was acquired:

.. code-block:: text

    ... [13604] LOG:  process 13604 still waiting for ShareLock on transaction 15075 after 1000.099 ms
    ... [13604] DETAIL:  Process holding the lock: 13605. Wait queue: 13604.
    ... [13604] LOG:  process 13604 acquired ShareLock on transaction 15075 after 3000.250 ms

Source: PostgreSQL ``src/backend/storage/lmgr/proc.c``, ProcSleep.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from leadline.formats.logged_statements import add_span

HOLDERS_MAX = 10  # that are kept by name, those behind which most waited


@dataclass(frozen=True, slots=True)
class LoggedWait:
    """One wait for a lock.

    Attributes:
        start_s: UTC seconds; so is ``end_s``.
        target: what is locked, as logged: "relation 16401 of database 5".
        holder: process that holds the lock; empty where it is not named.
        queue_count: processes in the longest queue that was logged with it, itself among them; 0 where none was.
        queue_s: when that was logged, in UTC seconds.
    """

    start_s: float
    end_s: float
    target: str
    holder: str = ""
    queue_count: int = 0
    queue_s: float = 0.0


def queue_counts(waits: Iterable[LoggedWait], first_s: int, step_s: int, step_count: int) -> NDArray[np.float64]:
    """The longest queue that was logged in each step [n], NaN where none was."""
    counts = np.full(step_count, np.nan)
    for wait in waits:
        step = int((wait.queue_s - first_s) / step_s)
        if wait.queue_count and 0 <= step < step_count:
            counts[step] = np.fmax(counts[step], wait.queue_count)
    return counts


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
