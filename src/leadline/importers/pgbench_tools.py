"""The latency tables pgbench-tools makes from pgbench's log: per second, one row each or one row per metric.

Reads:
    ``latency_1s.csv`` (a row per second) and ``latency_metric.csv`` (a row per second and metric).

Sample:
    .. code-block:: text

        collected,samples,min_latency,avg_latency,max_latency
        1598650497,5280,0.405,3.3450000000000000,20.324

        collected,value,metric
        2020-08-28 21:34:57,20.324,max_latency

Lost:
    Nothing. The first and last second are covered by the run in part and are kept as they are.

Units:
    Latency in milliseconds; samples are transactions per second. ``collected`` is the second's start.

Sources:
    pgbench-tools, ``benchwarmer`` and its ``timed_latency`` queries.
"""

from __future__ import annotations

import csv
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns, bad_line, epoch_ns

if TYPE_CHECKING:
    from collections.abc import Iterator

META = ImporterMeta(
    tool="pgbench-tools",
    marks=("collected,",),
    layers=(Layer.DATABASE,),
    fields={
        "samples": Field("db_tps", "per_s"),
        "rate": Field("db_tps", "per_s"),
        "min_latency": Field("db_latency_ms_min", "ms"),
        "avg_latency": Field("db_latency_ms", "ms"),
        "max_latency": Field("db_latency_ms_max", "ms"),
    },
    record="pgbench-tools: ./runset, then its latency_1s.csv",
)
DATABASE = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)
NS_PER_S = 1_000_000_000
_NUMBER = re.compile(r"\d{1,15}(\.\d+)?")
_WIDE, _LONG = "collected,samples,min_latency,avg_latency,max_latency", "collected,value,metric"


def sniff(source: Source) -> int:
    """Sure by the header; the long form is shared with other tables, so its first metric must be one of these."""
    lines = source.head_uncut.splitlines()[:2]
    if lines[:1] == [_WIDE]:
        return 95
    return 95 if lines[:1] == [_LONG] and len(lines) > 1 and lines[1].rpartition(",")[2] in META.fields else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the database per second.

    Raises:
        InputError: a row before the last is damaged.
    """
    builder = CaptureBuilder(source.name, "pgbench-tools", META.tool)
    lines = source.lines()
    header = lines[0].split(",") if lines else []
    rows: dict[int, dict[str, float]] = {}
    zoned = True
    for index, line in enumerate(lines[1:], start=1):
        try:
            row = next(csv.reader([line]), [])
            start_ns, with_zone = _start_ns(row[0], request, source.name, index)
            cells = list(_cells(header, row))
        except (ValueError, IndexError, OverflowError, csv.Error) as error:
            if index == len(lines) - 1:
                builder.warn("cut", "the last row is cut and was dropped")
                break
            raise bad_line(source.name, index, line, f"a row of {lines[0][:60]}") from error
        zoned = zoned and with_zone
        rows.setdefault(start_ns + NS_PER_S, {}).update(cells)
    if not rows:
        raise bad_line(source.name, 1, "no row", "rows of latencies")
    if not zoned:
        builder.warn("no-zone", f"times have no zone; taken as {request.timezone or 'UTC'}")
    times = np.array(sorted(rows), dtype=np.int64)
    metrics = dict.fromkeys(metric for row_of in rows.values() for metric in row_of)
    columns = {metric: [rows[time].get(metric, NAN) for time in times.tolist()] for metric in metrics}
    add_columns(builder, request, DATABASE, times, columns, interval_s=1.0)
    return builder.build(clock_known=zoned or request.timezone is not None)


def _start_ns(text: str, request: Request, name: str, index: int) -> tuple[int, bool]:
    """UTC nanoseconds of a row's time, and whether its zone is known."""
    if text.isdecimal():
        return epoch_ns(float(text), name, index), True
    moment = datetime.fromisoformat(text)
    known = moment.tzinfo is not None
    checked = epoch_ns(moment.timestamp() if known else moment.replace(tzinfo=UTC).timestamp(), name, index)
    return (checked, True) if known else (to_ns(moment, request), False)


def _cells(header: list[str], row: list[str]) -> Iterator[tuple[str, float]]:
    """Canonical metric and value of every cell; raises ValueError for a row of another shape."""
    pairs = [(row[2], row[1])] if header[1:] == ["value", "metric"] else list(zip(header[1:], row[1:], strict=True))
    for field_name, text in pairs:
        field = META.fields.get(field_name)
        if field is None:
            message = f"no metric {field_name}"
            raise ValueError(message)
        if text and not _NUMBER.fullmatch(text):
            message = f"{text!r} is no number"
            raise ValueError(message)
        yield field.metric, float(text) if text else NAN
