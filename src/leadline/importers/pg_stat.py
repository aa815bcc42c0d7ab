r"""Rates and latencies of PostgreSQL from snapshots of its cumulative statistics.

Reads:
    CSV of ``pg_stat_database``, ``pg_stat_wal``, ``pg_stat_io``, ``pg_stat_bgwriter`` or ``pg_stat_checkpointer``,
    taken again and again with a time column and appended to one file. A header once, or before every snapshot.

Sample:
    .. code-block:: text

        now,wal_records,wal_fpi,wal_bytes,wal_buffers_full,wal_write,wal_sync,wal_write_time,wal_sync_time,stats_reset
        2026-11-21 00:55:56.442699+00,36615,2238,48033876,2912,4284,348,5.39,624.944,2026-11-21 00:55:54.094768+00
        2026-11-21 00:55:57.495144+00,38856,2815,52648790,2912,4669,663,7.292,1025.019,2026-11-21 00:55:54.094768+00

Lost:
    What happened between a snapshot and a reset of the counters: an interval in which one falls, or ``stats_reset``
    changes, is not measured. The row of shared objects, which belong to no database. Latencies where the server does
    not time (track_io_timing, track_wal_io_timing): it counts 0 ms. Log writes with ``wal_sync_method = open_*``,
    which need no separate sync.

Units:
    Counters become differences per second; times are milliseconds. Log write latency is the mean sync
    (``wal_sync_time / wal_sync``), data read latency the mean read from the kernel, page cache hits included: of a
    block (``blk_read_time / blks_read``), or in ``pg_stat_io`` of an operation on any object but the log. Time that
    sessions spent in statements, in idle transactions and in reads is the share of one session's time. A time that
    stays 0 while its events are counted is not measured (``track_io_timing`` is off).

Sources:
    PostgreSQL 15 to 18 documentation, chapter "The Cumulative Statistics System".
"""

from __future__ import annotations

import csv
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from math import isnan

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import YEARS

Counters = dict[str, NDArray[np.float64]]  # column -> one value per snapshot

META = ImporterMeta(
    tool="pg_stat",
    layers=(Layer.DATABASE,),
    fields={
        "xact_commit + xact_rollback": Field("db_tps", "per_s"),
        "blk_read_time / blks_read": Field("db_data_read_latency_ms", "ms"),
        "read_time / reads": Field("db_data_read_latency_ms", "ms"),
        "wal_sync_time / wal_sync": Field("db_log_write_latency_ms", "ms"),
        "fsync_time / fsyncs": Field("db_log_write_latency_ms", "ms"),
        "checkpoints_timed": Field("db_checkpoints_timed_per_s", "per_s"),
        "checkpoints_req": Field("db_checkpoints_requested_per_s", "per_s"),
        "num_timed": Field("db_checkpoints_timed_per_s", "per_s"),
        "num_requested": Field("db_checkpoints_requested_per_s", "per_s"),
        "buffers_checkpoint": Field("db_checkpoint_pages_per_s", "per_s"),
        "buffers_written": Field("db_checkpoint_pages_per_s", "per_s"),
        "buffers_checkpoint + buffers_clean + buffers_backend": Field("db_page_writes_per_s", "per_s"),
        "blks_read": Field("db_page_reads_per_s", "per_s"),
        "blks_hit + blks_read": Field("db_logical_reads_per_s", "per_s"),
        "tup_returned": Field("db_rows_scanned_per_s", "per_s"),
        "tup_fetched": Field("db_rows_fetched_per_s", "per_s"),
        "tup_inserted": Field("db_rows_inserted_per_s", "per_s"),
        "tup_inserted + tup_updated + tup_deleted": Field("db_rows_changed_per_s", "per_s"),
        "temp_bytes": Field("db_temp_bytes_per_s", "bytes_per_s"),
        "sessions": Field("db_logons_per_s", "per_s"),
        "numbackends": Field("db_sessions_count", "count"),
        "wal_bytes": Field("db_log_bytes_per_s", "bytes_per_s"),
        "wal_records": Field("db_log_records_per_s", "per_s"),
        "wal_sync": Field("db_log_flushes_per_s", "per_s"),
        "active_time / xact_commit + xact_rollback": Field("db_transaction_active_ms", "ms"),
        "active_time": Field("db_active_time_pct", "permille"),
        "idle_in_transaction_time": Field("db_idle_in_transaction_time_pct", "permille"),
        "blk_read_time": Field("db_data_read_time_pct", "permille"),
        "wal_sync_time": Field("db_log_sync_time_pct", "permille"),
    },
    record=r"\copy (select now(), * from pg_stat_wal) to program 'cat >> pg_stat_wal.csv' with (format csv, header)",
)

# Columns that tell a view, most telling first.
_VIEWS: dict[str, frozenset[str]] = {
    "pg_stat_database": frozenset({"datname", "xact_commit", "blks_read"}),
    "pg_stat_io": frozenset({"backend_type", "object", "context", "reads"}),
    "pg_stat_wal": frozenset({"wal_records", "wal_bytes"}),
    "pg_stat_checkpointer": frozenset({"num_timed", "num_requested"}),
    "pg_stat_bgwriter": frozenset({"buffers_clean", "maxwritten_clean"}),
}
_TEXTS = frozenset({"datid", "datname", "backend_type", "object", "context", "stats_reset", "checksum_last_failure"})
_IDENTITY = ("datid", "datname", "backend_type", "object", "context")
_EVENTS = {"blk_read_time": "blks_read", "read_time": "reads", "wal_sync_time": "wal_sync", "fsync_time": "fsyncs"}
_GAUGES = frozenset({"numbackends", "op_bytes"})
_COUNTS_MIN = {"db_transaction_active_ms": 30}  # Judgement: the mean of fewer is that of whoever samples the server
_OWN = frozenset().union(*_VIEWS.values()) | _TEXTS | _GAUGES
_NUMBER = re.compile(r"-?\d{1,19}(?:\.\d{1,19})?(?:[eE][+-]?\d{1,2})?")
_EPOCH = re.compile(r"\d{9,10}(?:\.\d{1,9})?")
_NOTHING = frozenset({"", r"\N"})
_SEPARATORS = ",;\t|"
_CLUSTER = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)


def sniff(source: Source) -> int:
    """Sure by the columns of a view beside a column of times."""
    lines = source.head_uncut.splitlines()
    return 95 if lines and _header(lines[0]) is not None else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of the snapshots.

    Raises:
        InputError: a row is damaged, or there are not two snapshots of anything.
    """
    builder = CaptureBuilder(source.name, "pg-stat", META.tool)
    lines = source.lines()
    header = _header(lines[0]) if lines else None
    if header is None:
        raise _refused(source, 1, "no header of a view with a column of times")
    reader = _Reader(source, request, builder, header)
    reader.read(lines)
    has_rates = False
    for (kind, name), snapshots in reader.snapshots.items():
        entity = _CLUSTER if not name else Entity(EntityKind.DATABASE, name, UNNAMED_GUEST)
        builder.inventory.add(entity, source.name, engine="postgresql")
        has_rates |= _emit(entity, kind, snapshots, (builder, request))
    if not has_rates:
        raise _refused(source, len(lines), "one snapshot: counters make rates only between two")
    return builder.build(clock_known=reader.zoned or request.timezone is not None)


@dataclass(frozen=True, slots=True)
class _Header:
    view: str
    separator: str
    columns: tuple[str, ...]
    time_index: int


def _header(line: str) -> _Header | None:
    """What the first line says; None when it is no header of a view with times."""
    for separator in _SEPARATORS:
        columns = tuple(cell.strip().strip('"').casefold() for cell in line.split(separator))
        view = next((name for name, needed in _VIEWS.items() if needed <= set(columns)), None)
        if view is not None and len(set(columns)) == len(columns):
            times = [i for i in (0, len(columns) - 1) if columns[i] not in _OWN and _is_time(columns[i])]
            return _Header(view, separator, columns, times[0]) if times else None
    return None


def _is_time(name: str) -> bool:
    """Whether a column added to a view is its time: no column of the views themselves is named like one."""
    plain = ("now", "ts", "at", "clock", "epoch", "date_part", "extract")
    return (
        name in plain
        or name.startswith(("time", "clock_", "collected", "sampled", "captured", "snap"))
        or (name.endswith(("_at", "timestamp", "_ts")))
    )


@dataclass(slots=True)
class _Snapshots:
    """Values of one thing, a row per moment."""

    columns: Sequence[str]
    resets: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    moments: dict[int, int] = field(default_factory=dict)

    def add(self, time_ns: int, reset: str, row: list[float]) -> None:
        """Take in a row; rows of one moment are parts of one whole and are added up, nulls left out."""
        at = self.moments.setdefault(time_ns, len(self.rows))
        if at == len(self.rows):
            self.rows.append(row)
            self.resets.append(reset)
        else:
            both = zip(self.rows[at], row, strict=True)
            self.rows[at] = [b if isnan(a) else a if isnan(b) else a + b for a, b in both]


@dataclass(slots=True)
class _Reader:
    """State of reading row by row."""

    source: Source
    request: Request
    builder: CaptureBuilder
    header: _Header
    zoned: bool = True
    snapshots: dict[tuple[str, str], _Snapshots] = field(default_factory=dict)

    def read(self, lines: list[str]) -> None:
        """Read all rows.

        Raises:
            InputError: one is damaged.
        """
        body = lines[1:]
        if body and not self.source.text().endswith(("\n", "\r")):
            self.builder.warn("cut", "the last row has no end and was left out")
            body.pop()
        seen: set[tuple[str, ...]] = set()
        for number, line in enumerate(body, 2):
            if not line.strip() or line == lines[0]:
                continue
            try:
                cells = next(csv.reader([line], delimiter=self.header.separator, strict=True))
                identity = self._row([cell.strip() for cell in cells])
            except (ValueError, OverflowError, csv.Error) as error:
                raise _refused(self.source, number, f"{str(error)[:40]!r} in {line[:60]!r}") from None
            if identity in seen:
                raise _refused(self.source, number, f"a second row of the same moment: {line[:60]!r}")
            seen.add(identity)
        if not self.zoned and self.request.timezone is None:
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")

    def _row(self, cells: list[str]) -> tuple[str, ...]:
        """Add a row and return its time and identity; raises ValueError for a damaged row."""
        header = self.header
        if len(cells) != len(header.columns):
            message = f"{len(cells)} cells, {len(header.columns)} columns"
            raise ValueError(message)
        named = dict(zip(header.columns, cells, strict=True))
        time_ns = self._time(cells[header.time_index])
        numbers = [c for i, c in enumerate(header.columns) if i != header.time_index and c not in _TEXTS]
        row = [_number(named[name]) for name in numbers]
        kind, name = header.view, ""
        if kind == "pg_stat_database":
            name = named["datname"]
        elif kind == "pg_stat_io":
            kind = "pg_stat_io.wal" if named["object"] == "wal" else "pg_stat_io.data"
        if kind != "pg_stat_database" or name not in _NOTHING:
            snapshots = self.snapshots.setdefault((kind, name), _Snapshots(numbers))
            snapshots.add(time_ns, named.get("stats_reset", ""), row)
        return (str(time_ns), *(named.get(column, "") for column in _IDENTITY))

    def _time(self, text: str) -> int:
        if _EPOCH.fullmatch(text):
            moment = datetime.fromtimestamp(float(text), tz=UTC)
        else:
            moment = datetime.fromisoformat(text)
        if moment.year not in YEARS:
            raise ValueError(text)
        self.zoned = self.zoned and moment.tzinfo is not None
        return to_ns(moment, self.request)


def _number(text: str) -> float:
    """A counter's value, NaN where it is null."""
    if text in _NOTHING:
        return float("nan")
    if _NUMBER.fullmatch(text) is None:
        raise ValueError(text)
    return float(text)


def _emit(entity: Entity, kind: str, snapshots: _Snapshots, into: tuple[CaptureBuilder, Request]) -> bool:
    """Add the series of one thing; False when there are fewer than two snapshots of it."""
    builder, request = into
    times = np.array(list(snapshots.moments), dtype=np.int64)
    if len(times) < 2:
        return False
    if np.any(np.diff(times) < 0):
        builder.warn("clock-back", "the clock went back while recording; snapshots are in the order of their times")
    order = np.argsort(times)
    times, values = times[order], np.array(snapshots.rows, dtype=np.float64)[order]
    steps = _steps(snapshots, values, np.array(snapshots.resets)[order], builder)
    seconds = np.diff(times) / 1e9
    levels = {name: values[1:, i] for i, name in enumerate(snapshots.columns) if name in _GAUGES}
    for metric, series in _canonical((steps, levels), seconds, kind, builder).items():
        if request.wants(metric) and not np.isnan(series).all():
            builder.add_series(metric, entity, times[1:], series)
    if request.metrics is None:
        for i, name in enumerate(snapshots.columns):
            raw = values[1:, i] if name in _GAUGES else steps[name] / seconds
            suffix = "" if name in _GAUGES else "_per_s"
            if not np.isnan(raw).all():
                builder.add_series(f"{RAW_PREFIX}{kind}.{name}{suffix}", entity, times[1:], raw)
    return True


def _steps(
    snapshots: _Snapshots, values: NDArray[np.float64], resets: NDArray[np.str_], builder: CaptureBuilder
) -> Counters:
    """What each counter grew by from snapshot to snapshot, NaN over a reset."""
    counting = [i for i, name in enumerate(snapshots.columns) if name not in _GAUGES]
    steps = np.diff(values, axis=0)
    again = (steps[:, counting] < 0).any(axis=1) | (resets[1:] != resets[:-1])
    if again.any():
        builder.warn("reset", "counters were reset: those intervals are not measured", int(again.sum()))
    steps[again] = np.nan
    return {name: steps[:, i] for i, name in enumerate(snapshots.columns)}


def _canonical(
    counters: tuple[Counters, Counters], seconds: NDArray[np.float64], kind: str, builder: CaptureBuilder
) -> Counters:
    """Canonical metrics, one value per interval, of what counters grew by and of levels."""
    steps, levels = counters
    metrics: Counters = {}
    for formula, known in META.fields.items():
        names, divisors = (part.split(" + ") if part else [] for part in _parted(formula))
        there = levels if known.unit == "count" else steps
        if not {*names, *divisors} <= set(there) or known.metric in metrics:
            continue
        of_log = known.metric == "db_log_write_latency_ms"
        if kind.startswith("pg_stat_io") and of_log != kind.endswith(".wal"):
            continue
        if known.unit == "count":
            metrics[known.metric] = levels[names[0]]
            continue
        grown = np.sum([steps[name] for name in names], axis=0)
        if not divisors:
            if _is_timed(steps, names[0]):
                metrics[known.metric] = grown / seconds * factor(known.unit, metric_of(known.metric).unit)
            continue
        if not _is_timed(steps, names[0]):
            builder.warn("not-timed", f"{names[0]} stays 0: the server does not time it (track_*_io_timing)")
            continue
        count = np.sum([steps[name] for name in divisors], axis=0)
        least = _COUNTS_MIN.get(known.metric, 1)
        metrics[known.metric] = np.divide(grown, count, out=np.full(len(count), np.nan), where=count >= least)
    return metrics


def _parted(formula: str) -> tuple[str, str]:
    """The counters that are added up, and those that the sum is divided by."""
    above, _, below = formula.partition(" / ")
    return above, below


def _is_timed(steps: Counters, name: str) -> bool:
    """Whether a counter is no time, or a time that the server measures: one that grows while its events are counted."""
    events = steps.get(_EVENTS.get(name, ""))
    return events is None or bool(np.nansum(events) == 0 or np.nansum(steps[name]) > 0)


def _refused(source: Source, line: int, problem: str) -> InputError:
    return InputError(
        f"{source.name}:{line}",
        found=problem,
        expected="CSV snapshots of one pg_stat view with a column of times, such as now(), first or last",
        advice=f"Record again, every few seconds: {META.record}",
    )
