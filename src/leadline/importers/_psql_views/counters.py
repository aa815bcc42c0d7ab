"""Counters of PostgreSQL's views of statistics in one snapshot: facts, and means since the last reset."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.printed_tables import PrintedTable, TableError

if TYPE_CHECKING:
    from leadline.core.model.capture import CaptureBuilder

NAN = float("nan")
_VIEWS: dict[str, frozenset[str]] = {
    "pg_stat_database": frozenset({"datname", "blks_read", "blks_hit"}),
    "pg_stat_io": frozenset({"backend_type", "object", "reads"}),
    "pg_stat_wal": frozenset({"wal_records", "wal_bytes"}),
    "pg_stat_checkpointer": frozenset({"num_timed", "num_requested"}),
    "pg_stat_bgwriter": frozenset({"buffers_clean", "maxwritten_clean"}),
}
COUNTERS = frozenset().union(*_VIEWS.values()) - {"backend_type", "datname"}
# Facts of the server by the columns of all versions: counts, and milliseconds as seconds.
_COUNTS = {
    "checkpoints_timed": "checkpoints_timed_count",
    "num_timed": "checkpoints_timed_count",
    "checkpoints_req": "checkpoints_requested_count",
    "num_requested": "checkpoints_requested_count",
    "buffers_checkpoint": "checkpoint_pages_count",
    "buffers_written": "checkpoint_pages_count",
    "buffers_clean": "background_writer_pages_count",
    "buffers_backend": "session_written_pages_count",
    "buffers_backend_fsync": "session_fsyncs_count",
    "maxwritten_clean": "background_writer_stops_count",
    "wal_buffers_full": "wal_buffers_full_count",
    "deadlocks": "deadlocks_count",
    "temp_files": "temp_files_count",
    "temp_bytes": "temp_bytes",
    "wal_bytes": "wal_bytes",
}
_TIMES = {
    **{"checkpoint_write_time": "checkpoint_write_s", "write_time": "checkpoint_write_s"},
    **{"checkpoint_sync_time": "checkpoint_sync_s", "sync_time": "checkpoint_sync_s"},
}
_NUMBER = re.compile(r"-?\d{1,24}(?:\.\d{1,19})?(?:[eE][+-]?\d{1,2})?")
_CLUSTER = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)


def view_of(columns: frozenset[str]) -> str:
    """The view of statistics with these columns; empty where there is none."""
    return next((name for name, needed in _VIEWS.items() if needed <= columns), "")


def add_counters(view: str, table: PrintedTable, into: tuple[CaptureBuilder, Request, int]) -> None:
    """Add what one snapshot of a view counts since the last reset.

    Raises:
        TableError: a counter is no number.
    """
    builder = into[0]
    of_io: dict[str, float] = {}
    for line, cells in table.records():
        row = {name: _number(name, text, line) for name, text in cells.items() if _is_counter(name)}
        if view == "pg_stat_io":
            if cells.get("object") != "wal":
                for name, value in row.items():
                    of_io[name] = of_io.get(name, 0.0) + (0.0 if np.isnan(value) else value)
            continue
        name = cells.get("datname", "") if view == "pg_stat_database" else ""
        if view == "pg_stat_database" and not name:
            continue  # shared objects belong to no database
        entity = Entity(EntityKind.DATABASE, name, UNNAMED_GUEST) if name else _CLUSTER
        times = {} if view == "pg_stat_database" else _TIMES
        facts: dict[str, Any] = {ours: row[theirs] for theirs, ours in _COUNTS.items() if row.get(theirs, NAN) >= 0}
        facts |= {ours: row[theirs] / 1000.0 for theirs, ours in times.items() if row.get(theirs, NAN) >= 0}
        if cells.get("stats_reset"):
            facts["stats_reset"] = cells["stats_reset"]
        builder.inventory.add(entity, builder.info.name, engine="postgresql", **facts)
        _add_means(entity, row, into)
    if of_io:
        _mean(_CLUSTER, "db_data_read_latency_ms", (of_io.get("read_time", 0.0), of_io.get("reads", 0.0)), into)


def _is_counter(name: str) -> bool:
    return name in _COUNTS or name in _TIMES or name in {"blks_read", "blks_hit", "blk_read_time", "reads", "read_time"}


def _number(name: str, text: str, line: int) -> float:
    if not text or text == r"\N":
        return NAN
    if _NUMBER.fullmatch(text) is None:
        raise TableError(line, f"{name} is {text[:40]!r}")
    return float(text)


def _add_means(entity: Entity, row: Mapping[str, float], into: tuple[CaptureBuilder, Request, int]) -> None:
    """Add the mean read and the share of pages in the buffers since the last reset."""
    if not {"blks_read", "blks_hit"} <= set(row):
        return
    read, hit = row["blks_read"], row["blks_hit"]
    _mean(entity, "db_data_read_latency_ms", (row.get("blk_read_time", NAN), read), into)
    _mean(entity, "db_buffer_hit_pct", (100.0 * hit, hit + read), into)


def _mean(entity: Entity, metric: str, of: tuple[float, float], into: tuple[CaptureBuilder, Request, int]) -> None:
    """Add a mean since the last reset; nothing where nothing was counted or timed."""
    (whole, count), (builder, request, time_ns) = of, into
    if count > 0 and whole > 0 and request.wants(metric):
        times, values = np.array([time_ns], dtype=np.int64), np.array([whole / count])
        builder.add_series(metric, entity, times, values, since_boot=True)
