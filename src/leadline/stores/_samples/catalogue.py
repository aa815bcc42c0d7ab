"""The catalogue of the sample store: which files count, what is known of entities, when there were samples.

A segment counts from the moment its row is committed; what a row names is complete and on the disk. ``generation``
changes with every commit, so that a reader sees whether files were replaced while it read.
"""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterable, Sequence
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leadline.core.io.private import private_file
from leadline.stores._facts import GONE, StoredFact, facts_of

NS_PER_S = 1_000_000_000
NS_PER_MINUTE = 60 * NS_PER_S
NS_PER_DAY = 86_400 * NS_PER_S
MINUTES_PER_DAY = 1440
_SCHEMA = """
create table if not exists segment (
    path text primary key, turn integer not null, metric text not null, step_s integer not null,
    span_s integer not null, start_ns integer not null, first_ns integer not null, last_ns integer not null,
    sample_count integer not null, size_bytes integer not null
) without rowid;
create index if not exists segment_by_metric on segment (metric, start_ns);
create table if not exists fact (
    entity text not null, setting text not null, value text not null, source text not null, guessed integer not null,
    changed_ns integer not null, primary key (entity, setting)
) without rowid;
create table if not exists presence (day integer primary key, minutes blob not null);
create table if not exists state (name text primary key, value integer not null) without rowid;
"""


@dataclass(frozen=True, slots=True)
class Segment:
    """A file of samples or of a roll-up.

    Attributes:
        path: relative to the folder of the store.
        turn: order of writing; of two samples of the same time that of the earlier turn is kept.
        metric: of all of it.
        step_s: 0 of raw samples, else the length of a cell.
        span_s: an hour or a day.
        start_ns: of the hour or day.
        first_ns: the first sample or cell.
        last_ns: the last one.
        sample_count: measured samples that it has or was made of.
        size_bytes: of the file.
    """

    path: str
    turn: int
    metric: str
    step_s: int
    span_s: int
    start_ns: int
    first_ns: int
    last_ns: int
    sample_count: int
    size_bytes: int

    @property
    def end_ns(self) -> int:
        """Of the hour or day."""
        return self.start_ns + self.span_s * NS_PER_S

    @property
    def day(self) -> int:
        """Days since 1970 of its start."""
        return self.start_ns // NS_PER_DAY


class SampleCatalogue:
    """The SQLite file of a store; threads share one connection, and none sees a transaction of another half done."""

    def __init__(self, path: Path, *, read_only: bool) -> None:
        if not read_only:
            private_file(path)
        self._lock = threading.RLock()
        self._base = sqlite3.connect(path, timeout=30.0, isolation_level=None, check_same_thread=False)
        if read_only:
            self._base.execute("pragma query_only = on")
        else:
            self._base.execute("pragma journal_mode = wal")
            self._base.execute("pragma synchronous = full")
            self._base.executescript(_SCHEMA)

    def close(self) -> None:
        """Give up the file."""
        with self._lock:
            self._base.close()

    def state(self, name: str) -> int:
        """A number that is kept, 0 where there is none."""
        with self._lock:
            row = self._base.execute("select value from state where name = ?", (name,)).fetchone()
        return 0 if row is None else int(row[0])

    def segments(
        self, metrics: Iterable[str] | None = None, *, span_ns: tuple[int, int] | None = None
    ) -> list[Segment]:
        """The segments of some metrics (or all) that lie in a span, in the order of writing."""
        query, values = "select * from segment where 1", []
        if span_ns is not None:
            query, values = f"{query} and first_ns < ? and last_ns >= ?", [span_ns[1], span_ns[0]]
        with self._lock:
            rows = self._base.execute(f"{query} order by turn", values).fetchall()
        chosen = None if metrics is None else set(metrics)
        return [Segment(*row) for row in rows if chosen is None or row[2] in chosen]

    def replace(
        self,
        added: Sequence[Segment],
        removed: Sequence[Segment] = (),
        *,
        facts: Sequence[StoredFact] = (),
        presence: dict[int, bytes] | None = None,
        state: dict[str, int] | None = None,
    ) -> None:
        """Let some segments count and others no more, all at once."""
        with self._lock:
            base = self._base
            base.execute("begin immediate")
            try:
                base.executemany("delete from segment where path = ?", [(segment.path,) for segment in removed])
                base.executemany(f"insert into segment values ({','.join('?' * 10)})", map(astuple, added))
                rows = [(entity, name, json.dumps(value), *rest) for entity, name, value, *rest in facts]
                base.executemany("insert or replace into fact values (?, ?, ?, ?, ?, ?)", rows)
                for day, minutes in (presence or {}).items():
                    self._add_presence(day, minutes)
                changes = {**(state or {}), "generation": self.state("generation") + 1}
                base.executemany("insert or replace into state values (?, ?)", changes.items())
                base.execute("commit")
            except BaseException:
                base.execute("rollback")
                raise

    def facts(self) -> list[StoredFact]:
        """The last value of each setting."""
        with self._lock:
            rows = self._base.execute("select * from fact").fetchall()
        return facts_of(rows)

    def forget_gone(self, before_ns: int) -> None:
        """Drop the settings of entities that are gone since before a time."""
        old = "select entity from fact where setting = ? and value = 'true' and changed_ns < ?"
        with self._lock:
            self._base.execute(f"delete from fact where entity in ({old})", (GONE, before_ns))

    def presence(self) -> dict[int, bytes]:
        """Day since 1970 -> a bit for each minute in which there was a sample."""
        with self._lock:
            return dict(self._base.execute("select day, minutes from presence order by day").fetchall())

    def _add_presence(self, day: int, minutes: bytes) -> None:
        row = self._base.execute("select minutes from presence where day = ?", (day,)).fetchone()
        if row is not None:
            minutes = (np.frombuffer(minutes, np.uint8) | np.frombuffer(row[0], np.uint8)).tobytes()
        self._base.execute("insert or replace into presence values (?, ?)", (day, minutes))


def minutes_present(times_ns: Iterable[np.ndarray[Any, np.dtype[np.int64]]]) -> dict[int, bytes]:
    """Day since 1970 -> a bit for each minute in which there is a sample."""
    minutes = np.unique(np.concatenate([*times_ns, np.empty(0, np.int64)]) // NS_PER_MINUTE)
    days = {}
    for day in np.unique(minutes // MINUTES_PER_DAY).tolist():
        bits = np.zeros(MINUTES_PER_DAY, dtype=bool)
        bits[minutes[minutes // MINUTES_PER_DAY == day] % MINUTES_PER_DAY] = True
        days[day] = np.packbits(bits).tobytes()
    return days


def gaps_of(presence: dict[int, bytes], longest_s: int) -> list[tuple[int, int]]:
    """Spans of more than so many seconds without any sample, between the first and the last one; in nanoseconds."""
    minutes = [
        np.flatnonzero(np.unpackbits(np.frombuffer(bits, np.uint8))) + day * MINUTES_PER_DAY
        for day, bits in sorted(presence.items())
    ]
    if not minutes:
        return []
    present = np.concatenate(minutes)
    after = np.flatnonzero(np.diff(present) * 60 > longest_s + 60)
    starts, ends = (present[after] + 1) * NS_PER_MINUTE, present[after + 1] * NS_PER_MINUTE
    return list(zip(starts.tolist(), ends.tolist(), strict=True))
