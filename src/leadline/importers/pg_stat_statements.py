r"""Which statements of a PostgreSQL server took the time: the view pg_stat_statements as CSV, once or again and again.

Reads:
    The view with a header line, as COPY and ``psql --csv`` write it (comma, semicolon, tab or bar), of PostgreSQL 9.4
    to 18; the columns ``query``, ``calls`` and ``total_exec_time`` (``total_time`` before 13) are needed. With a column
    of times first (``now``, ``ts``) several snapshots in one file are samples.

Sample:
    .. code-block:: text

        now,queryid,query,calls,total_exec_time,rows,shared_blks_read,blk_read_time
        2026-11-24 10:00:00+00,1720608767,SELECT * FROM orders WHERE id = $1,35732,6575000.0,35732,357320,6400000.0
        2026-11-24 10:01:00+00,1720608767,SELECT * FROM orders WHERE id = $1,35790,6635000.0,35790,357900,6450000.0

Lost:
    Users and databases: a statement of several is one. All but the fifty statements that took most time are summed. The
    text is kept without literals, because those of commands are not replaced by the server. A snapshot without a time
    becomes facts of its statements: calls, times and shares since the last reset.

Units:
    Times are milliseconds. Between two snapshots the time that a statement took, per millisecond, is the number of
    sessions that ran it. A snapshot whose counts are lower than before follows a reset and begins anew.

Sources:
    PostgreSQL documentation, pg_stat_statements (versions 1.3 to 1.12 of the extension).
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import YEARS
from leadline.formats.statements import normalised, shown_name, statement_name

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="pg_stat_statements",
    layers=(Layer.DATABASE,),
    fields={
        "total_exec_time": Field("db_statement_sessions_count", "count"),
        "calls": Field("db_statement_calls_per_s", "per_s"),
        "total_exec_time, calls": Field("db_statement_ms", "ms"),
    },
    record='psql --csv -c "SELECT now(), * FROM pg_stat_statements" > pg_stat_statements.csv',
)

_SEPARATORS = ",;\t|"
_TIMES = ("now", "clock_timestamp", "ts", "time", "sampled_at", "statement_timestamp")
_TOTAL = ("total_exec_time", "total_time")
# What a row counts, by the names of its versions: our name, and theirs.
_COUNTS = {
    "calls": ("calls",),
    "exec_ms": _TOTAL,
    "blocks_read": ("shared_blks_read",),
    "read_ms": ("shared_blk_read_time", "blk_read_time"),
    "temp_blocks": ("temp_blks_written",),
    "wal_bytes": ("wal_bytes",),
}
_FIELD_BYTES_MAX = 16 << 20  # a statement of a generator may be longer than the csv module's limit
_KEPT_MAX = 50
_OTHERS = "other statements"
_SERVER = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)


def sniff(source: Source) -> int:
    """Sure by the columns that no other view has together."""
    lines = source.head_uncut.splitlines()
    return 97 if lines and _header(lines[0]) is not None else 0  # the importer pg-stat knows some of the columns


def _header(line: str) -> tuple[str, list[str]] | None:
    """Separator and columns; None where the line is no header of the view."""
    for separator in _SEPARATORS:
        names = [part.strip().strip('"').casefold() for part in line.strip().split(separator)]
        if {"query", "calls"} <= set(names) and set(_TOTAL) & set(names) and len(set(names)) == len(names):
            return separator, names
    return None


_Key = tuple[str, str]  # query id, text without literals


@dataclass(slots=True)
class _Snapshot:
    """The statements of one moment, with what each has counted since the last reset."""

    time_ns: int | None
    counts: dict[_Key, dict[str, float]] = field(default_factory=dict)


def read(source: Source, request: Request) -> Capture:
    """The statements as series between snapshots, or as facts of one.

    Raises:
        InputError: a row is damaged, or there is none.
    """
    builder = CaptureBuilder(source.name, "pg-stat-statements", META.tool)
    header = _header(source.text().split("\n", 1)[0])
    if header is None:
        raise _refused(source.name, "no header of pg_stat_statements")
    snapshots, zoned = _snapshots(source, header, builder, request)
    if not snapshots:
        raise _refused(source.name, "no row of a statement")
    builder.inventory.add(_SERVER, source.name, engine="postgresql")
    timed = all(snapshot.time_ns is not None for snapshot in snapshots)
    if timed and not zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    names = _names(snapshots)
    if timed and len(snapshots) > 1:
        _add_series(snapshots, names, builder, request)
    else:
        _add_facts(snapshots[-1], names, builder)
    return builder.build(clock_known=zoned or request.timezone is not None)


def _snapshots(
    source: Source, header: tuple[str, list[str]], builder: CaptureBuilder, request: Request
) -> tuple[list[_Snapshot], bool]:
    """The snapshots in order of time, and whether all of their times have a zone.

    Raises:
        InputError: a row is damaged.
    """
    separator, names = header
    columns = {ours: next((names.index(n) for n in theirs if n in names), None) for ours, theirs in _COUNTS.items()}
    query_at = names.index("query")
    id_at = names.index("queryid") if "queryid" in names else None
    timed = names[0] in _TIMES
    snapshots: dict[int | None, _Snapshot] = {}
    zoned = timed
    for line, row in _rows(source, separator, names, builder):
        try:
            moment = _moment(row[0]) if timed else None
            values = {ours: float(row[at] or 0) for ours, at in columns.items() if at is not None}
        except ValueError as error:
            raise _refused(f"{source.name}:{line}", str(error)[:120]) from None
        if not all(np.isfinite(value) and value >= 0 for value in values.values()):
            raise _refused(f"{source.name}:{line}", "a count that is no number of 0 or more")
        zoned = zoned and moment is not None and moment.tzinfo is not None
        time_ns = None if moment is None else to_ns(moment, request)
        snapshot = snapshots.setdefault(time_ns, _Snapshot(time_ns))
        key = ("" if id_at is None else row[id_at].strip(), normalised(row[query_at]))
        counts = snapshot.counts.setdefault(key, dict.fromkeys(values, 0.0))
        for name, value in values.items():
            counts[name] += value
    return sorted(snapshots.values(), key=lambda one: one.time_ns or 0), zoned


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    if moment.year not in YEARS:
        raise ValueError(text)
    return moment


def _rows(source: Source, separator: str, names: list[str], builder: CaptureBuilder) -> Iterator[tuple[int, list[str]]]:
    """Rows with the line they end in; repeated headers are left out, and so is a last row that is cut.

    Raises:
        InputError: a row has another number of fields than the header.
    """
    text = source.text().replace("\r\n", "\n")
    limit = csv.field_size_limit(_FIELD_BYTES_MAX)
    try:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
        rows = [(reader.line_num, row) for row in reader if row]
    except csv.Error as error:
        raise _refused(source.name, str(error)) from error
    finally:
        csv.field_size_limit(limit)
    for place, (line, row) in enumerate(rows):
        if [cell.strip().casefold() for cell in row] == names:
            continue
        is_footer = len(row) == 1 and row[0].startswith("(") and row[0].endswith(" rows)")
        if len(row) == len(names):
            yield line, row
        elif place == len(rows) - 1:
            if not is_footer:
                builder.warn("cut", f"line {line} is cut and was left out")
        else:
            raise _refused(f"{source.name}:{line}", f"{len(row)} fields, the header has {len(names)}")


def _names(snapshots: list[_Snapshot]) -> dict[_Key, tuple[str, dict[str, Any]]]:
    """Of the statements that took most time the name, told apart by their ids, and what is known of them."""
    first, last = snapshots[0].counts, snapshots[-1].counts
    took = {key: counts["exec_ms"] for key, counts in last.items()}
    if len(snapshots) > 1:
        took = {key: abs(total - first[key]["exec_ms"] if key in first else total) for key, total in took.items()}
    kept = sorted(took, key=lambda key: -took[key])[:_KEPT_MAX]
    same = Counter(statement_name(text) for _, text in kept)
    names: dict[_Key, tuple[str, dict[str, Any]]] = {}
    for query_id, text in kept:
        name = statement_name(text)
        label = shown_name(name)
        if same[name] > 1:
            label = f"{label} ({query_id or text})"
        is_name = text in {"", shown_name(name)}  # Leadline records texts on request alone
        facts = {
            "statement": shown_name(name),
            "query_id": query_id or None,
            "statement_text": None if is_name else text,
        }
        names[query_id, text] = (label, facts)
    return names


def _add_series(
    snapshots: list[_Snapshot], names: dict[_Key, tuple[str, dict[str, Any]]], builder: CaptureBuilder, request: Request
) -> None:
    """Add what each statement did between snapshots."""
    times = np.array([snapshot.time_ns for snapshot in snapshots], dtype=np.int64)
    seconds = np.diff(times) / 1e9
    keys = list(dict.fromkeys(key for snapshot in snapshots for key in snapshot.counts))
    places = {key: i for i, key in enumerate(names)}
    row_of = np.array([places.get(key, len(names)) for key in keys])
    risen = {}
    for name in ("calls", "exec_ms"):
        # A statement that is not in a snapshot did nothing before it; lower than before: a reset.
        totals = np.array([[s.counts.get(key, {}).get(name, 0.0) for s in snapshots] for key in keys])
        steps = np.diff(totals, axis=1)
        steps = np.where(steps < 0, totals[:, 1:], steps)
        sums = np.zeros((len(names) + 1, len(seconds)))
        np.add.at(sums, row_of, steps)
        risen[name] = sums
    with np.errstate(divide="ignore", invalid="ignore"):
        mean_ms = np.where(risen["calls"] > 0, risen["exec_ms"] / risen["calls"], np.nan)
    metrics = {
        "db_statement_sessions_count": risen["exec_ms"] / 1000.0 / seconds,
        "db_statement_calls_per_s": risen["calls"] / seconds,
        "db_statement_ms": mean_ms,
    }
    labels = [*names.values(), (_OTHERS, {})]
    for place, (label, facts) in enumerate(labels[: None if len(keys) > len(names) else -1]):
        entity = builder.inventory.add(Entity(EntityKind.STATEMENT, label, _SERVER), builder.info.name, **facts)
        for metric, values in metrics.items():
            if request.wants(metric):
                builder.add_series(metric, entity, times[1:], values[place])


def _add_facts(snapshot: _Snapshot, names: dict[_Key, tuple[str, dict[str, Any]]], builder: CaptureBuilder) -> None:
    """Add what each statement has counted since the last reset."""
    whole_ms = sum(counts["exec_ms"] for counts in snapshot.counts.values())
    for key, (label, facts) in names.items():
        counts = snapshot.counts[key]
        known = {
            "calls": int(counts["calls"]),
            "exec_s": round(counts["exec_ms"] / 1000.0, 3),
            "exec_ms_mean": round(counts["exec_ms"] / counts["calls"], 3) if counts["calls"] else None,
            "time_share": round(counts["exec_ms"] / whole_ms, 4) if whole_ms else None,
            "read_s": round(counts["read_ms"] / 1000.0, 3) if "read_ms" in counts else None,
            "blocks_read": int(counts["blocks_read"]) if "blocks_read" in counts else None,
            "temp_blocks_written": int(counts["temp_blocks"]) if "temp_blocks" in counts else None,
            "wal_bytes": int(counts["wal_bytes"]) if "wal_bytes" in counts else None,
        }
        entity = Entity(EntityKind.STATEMENT, label, _SERVER)
        builder.inventory.add(entity, builder.info.name, **(facts | known))


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="pg_stat_statements as CSV with query, calls and total_exec_time",
        advice=f"Record it again: {META.record}",
    )
