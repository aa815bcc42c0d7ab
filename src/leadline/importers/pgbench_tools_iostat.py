"""The table that pgbench-tools makes of iostat's reports: one row for each time, disk and column.

Reads:
    ``iostat.csv`` (collected, value, metric), of Linux's extended reports.

Sample:
    .. code-block:: text

        collected,value,metric
        2015-01-03 16:40:48.768959,5999.6,sdc_r/s
        2015-01-03 16:40:48.768959,0.27,sdc_await

Lost:
    Nothing. Rows that hold no number or no column of iostat are left out and counted.

Units:
    Those of iostat: ``MB`` is MiB, ``avgrq-sz`` counts sectors of 512 bytes, awaits are milliseconds. A time is the end
    of an interval. An await or size of 0.0 where there was no request is "not measured".

Sources:
    pgbench-tools, regress/golden/iostat.csv and its import of operating system statistics. iostat(1).
"""

from __future__ import annotations

import csv
import math
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.printed import number_of
from leadline.formats.stamps import YEARS
from leadline.formats.sysstat.iostat_columns import FIELDS
from leadline.formats.tables import SampleTable, TableScheme, emit

if TYPE_CHECKING:
    from leadline.core.io.source import Source
    from leadline.formats.tables import Columns

_FIELDS = {name: field for name, field in FIELDS.items() if not field.metric.startswith("guest_cpu")}

META = ImporterMeta(
    tool="pgbench-tools",
    marks=("collected,value,metric",),
    layers=(Layer.GUEST,),
    fields=_FIELDS,
    record="pgbench-tools: ./runset, then its iostat.csv; better: S_TIME_FORMAT=ISO iostat -x -t 5 > iostat.txt",
)

_HEADER = "collected,value,metric"
_NAMES = (*_FIELDS, "rrqm/s", "wrqm/s", "drqm/s", "%drqm", "dareq-sz")
_OF_REQUESTS = ("guest_disk_await_ms", "guest_disk_io_size_kib", "guest_disk_service_ms")


def sniff(source: Source) -> int:
    """Sure by the header and a first metric that is a column of iostat."""
    lines = source.head_uncut.splitlines()[:2]
    is_known = len(lines) > 1 and lines[0].strip() == _HEADER and _named(lines[1].rpartition(",")[2]) is not None
    return 95 if is_known else 0


def read(source: Source, request: Request) -> Capture:
    """The disks of a guest.

    Raises:
        InputError: no row has a number of a disk.
    """
    builder = CaptureBuilder(source.name, "pgbench-tools-iostat", META.tool)
    reports: dict[tuple[int, str], dict[str, float]] = {}
    zoned = True
    moments: dict[str, tuple[int, bool] | None] = {}
    for line in source.lines()[1:]:
        cells = _cells(line)
        known = _named(cells[2]) if len(cells) == 3 else None
        value = number_of(cells[1]) if known is not None else math.nan
        if known is not None and cells[0] not in moments:
            moments[cells[0]] = _moment(cells[0], request)
        moment = moments.get(cells[0]) if known is not None else None
        if known is None or moment is None or not 0 <= value:
            if line.strip():
                builder.warn("left-out", "rows without a number of a column of iostat were left out")
            continue
        zoned &= moment[1]
        reports.setdefault((moment[0], known[0]), {})[known[1]] = value
    if not reports:
        raise InputError(
            source.name,
            found="no row with a number of a disk",
            expected="a time, a number and a name such as sdc_r/s",
            advice=f"Record it with: {META.record}",
        )
    names = tuple(dict.fromkeys(name for report in reports.values() for name in report))
    table = SampleTable("disk", names)
    for (moment_ns, device), report in sorted(reports.items(), key=lambda item: item[0][0]):
        table.add(moment_ns, device, [report.get(name, math.nan) for name in names])
    if not zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    scheme = TableScheme("iostat", _FIELDS, _entity, derive=_derive)
    emit(table, np.array(table.moments, dtype=np.int64), scheme, builder, request)
    return builder.build(clock_known=zoned or request.timezone is not None)


def _entity(group: str, item: str) -> Entity:
    del group
    return Entity(EntityKind.BLOCK_DEVICE, item, UNNAMED_GUEST)


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line], strict=True), [])
    except csv.Error:
        return []


def _named(text: str) -> tuple[str, str] | None:
    """The disk and the column of a metric such as ``sdc_r/s``; None for another."""
    parts = text.strip()[:200].split("_")
    for place in range(1, len(parts)):
        name = "_".join(parts[place:])
        if name in _NAMES:
            return "_".join(parts[:place]), name
    return None


def _moment(text: str, request: Request) -> tuple[int, bool] | None:
    """A time as UTC nanoseconds, and whether it says its zone; None where it is none."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return (to_ns(moment, request), moment.tzinfo is not None) if moment.year in YEARS else None


def _derive(columns: Columns) -> None:
    """Add the requests of reads and writes together; forget the latencies of none."""
    reads, writes = columns.get("disk_reads_per_s"), columns.get("disk_writes_per_s")
    if reads is None or writes is None:
        return
    columns.setdefault("disk_iops", reads + writes)
    for ending, rate in (("", reads + writes), ("_read", reads), ("_write", writes)):
        for beginning in _OF_REQUESTS:
            if (column := columns.get(beginning + ending)) is not None:
                columns[beginning + ending] = np.where((rate == 0) & (column == 0), np.nan, column)
