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

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

KEPT_MAX = 20  # names, those that took most time
OTHERS = "other statements"


@dataclass(frozen=True, slots=True)
class LoggedWork:
    """All that was at work under one name, as changes by second.

    Attributes:
        name: of a statement, or of a worker with its table.
        total_s: how long all took.
        begin_s: UTC second in which the first began.
        seconds: UTC seconds int64 [k] in which something changes.
        whole: how many more are there from each of them on, [k].
        part: how much is there within each of them beside these, [k].
    """

    name: str
    is_worker: bool
    total_s: float
    begin_s: int
    seconds: NDArray[np.int64]
    whole: NDArray[np.float64]
    part: NDArray[np.float64]


def works_of(names: Sequence[str], starts_s: NDArray[np.float64], ends_s: NDArray[np.float64]) -> list[LoggedWork]:
    """Statements by name, each there from one UTC second [k] to another [k]."""
    codes = {name: code for code, name in enumerate(dict.fromkeys(names))}
    of_name = np.array([codes[name] for name in names], dtype=np.int64)
    works = []
    for name, code in codes.items():
        start, end = starts_s[of_name == code], ends_s[of_name == code]
        first, last = np.floor(start), np.floor(end)
        is_long = last > first
        one = np.ones(int(is_long.sum()))
        begin_part = np.where(is_long, first + 1.0 - start, end - start)
        works.append(
            LoggedWork(
                name,
                is_worker=False,
                total_s=float((end - start).sum()),
                begin_s=int(first.min()),
                seconds=np.concatenate((first, first[is_long] + 1.0, last[is_long])).astype(np.int64),
                whole=np.concatenate((np.zeros(len(start)), one, -one)),
                part=np.concatenate((begin_part, np.zeros(len(one)), (end - last)[is_long])),
            )
        )
    return works


def at_work(
    works: Iterable[LoggedWork], first_s: int, step_s: int, step_count: int
) -> dict[tuple[str, bool], NDArray[np.float64]]:
    """How many of each name were at work, mean over each step [n], for those that took most time.

    Statements of other names are added up as `OTHERS`, workers of other names are left out.
    """
    total_s: Counter[tuple[str, bool]] = Counter()
    by_name: dict[tuple[str, bool], list[LoggedWork]] = defaultdict(list)
    for work in works:
        key = (work.name, work.is_worker)
        total_s[key] += work.total_s  # type: ignore[assignment]
        by_name[key].append(work)
    kept = [name for name, _ in total_s.most_common(KEPT_MAX)]
    others = [name for name in by_name if name not in set(kept) and not name[1]]
    groups = {name: by_name[name] for name in kept}
    for name in others:
        groups.setdefault((OTHERS, False), []).extend(by_name[name])
    return {name: _counts(group, first_s, step_s, step_count) for name, group in groups.items()}


def _counts(works: list[LoggedWork], first_s: int, step_s: int, step_count: int) -> NDArray[np.float64]:
    seconds = np.concatenate([work.seconds for work in works])
    whole = np.concatenate([work.whole for work in works])
    part = np.concatenate([work.part for work in works])
    places, into_step = np.divmod(seconds - first_s, step_s)
    inside = (places >= 0) & (places < step_count)
    begun = float(whole[places < 0].sum())
    places, whole, part, into_step = places[inside], whole[inside], part[inside], into_step[inside]
    counts = np.bincount(places, weights=part + whole * (step_s - into_step), minlength=step_count) / step_s
    begun_before = np.cumsum(np.bincount(places, weights=whole, minlength=step_count))
    counts[1:] += begun_before[:-1]
    at_least_none: NDArray[np.float64] = np.maximum(counts + begun, 0.0)  # a clock that is set back changes the order
    return at_least_none


def add_span(counts: NDArray[np.float64], start: float, end: float) -> None:
    """Add one that was there from step ``start`` to step ``end`` to the means over steps [n]."""
    low, high = max(start, 0.0), min(end, float(len(counts)))
    if not low < high:
        return
    first, last = int(low), min(int(high), len(counts) - 1)
    counts[first : last + 1] += 1.0
    counts[first] -= low - first
    counts[last] -= last + 1 - high
