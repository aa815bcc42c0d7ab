"""Advanced performance charts as the vSphere web client exports them to CSV.

Reads:
    The CSV of one advanced performance chart: ``Time``, then a column per counter and object whose heading is the
    counter's English label, ``for`` and the object or the part of it. Commas, semicolons or tabs between cells, decimal
    points or commas, cells in quotes or not.

Sample:
    .. code-block:: text

        Time,Ready for db01,Ready for 0,Usage in MHz for db01
        Fri Nov 20 08:30:20 GMT+0100 2026,1380,690,4113
        Fri Nov 20 08:30:40 GMT+0100 2026,1402,711,4250

Lost:
    Whether an object is a VM or a host, which the export does not say: counters and parts that only one of them has
    decide, else a name with dots is taken for a host, and it is said. Parts (``Ready for 0``) of a chart without a
    column of its object, or with several objects, have no owner to be put under. Ready time of a whole VM is per vCPU
    only where the chart has all of its vCPUs. A label that several groups of counters share (``Usage``) and nothing
    else in the chart decides is kept as ``raw.vcenter.chart.LABEL``.

Units:
    The export prints none: each counter has the one the API gives it, per cent as the client shows it and not in
    hundredths; what is above 200 % is left out and said. Milliseconds and counts are of the interval between samples.
    KB is KiB. Times have the zone they print, others that of the recorder.

Sources:
    vSphere Web Services API: PerfCounterInfo.nameInfo; the labels of a real vCenter, as govmomi's simulator holds them.
    A public reader of such exports of 2020 and 2022 (step ``extract`` of a pipeline over data of Polcom's cloud):
    headings ``Usage in MHz for``, ``Host consumed % for``, ``Data receive rate for``, times with ``GMT+0200``.
    No public example of a workbook (XLS, XLSX) of these charts was found: none is read.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.vcenter.counters import HOST_COUNTERS, VM_COUNTERS, CounterSamples
from leadline.formats.vcenter.labels import COUNTERS_BY_LABEL
from leadline.formats.vcenter.numbers import bad_line, cell_number, cell_value

_UNITS = {"interval": "pct", "each": "per_s"}
META = ImporterMeta(
    tool="vSphere performance chart",
    marks=("time",),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH, Layer.NETWORK),
    fields={
        f"{kind}:{label}[{group}]": Field(counter.metric, _UNITS.get(counter.unit, counter.unit))
        for kind, table in (("vm", VM_COUNTERS), ("host", HOST_COUNTERS))
        for label, groups in COUNTERS_BY_LABEL.items()
        for group, name in groups.items()
        if (counter := table.get(name)) is not None
    },
    record="vSphere Client: Monitor > Performance > Advanced > Export > CSV, with the object itself in the chart",
)

# What only one kind of object has: the forms of its parts, and labels of counters.
_PARTS = (
    (re.compile(r"(?:scsi|ide|sata|nvme)\d+:\d+", re.IGNORECASE), ("virtualdisk",), EntityKind.VM),
    (re.compile(r"vmnic\d+"), ("net",), EntityKind.HOST),
    (re.compile(r"vmhba\d+"), ("storageadapter",), EntityKind.HOST),
    (re.compile(r"(?:naa|eui|t10|mpx)\.\S+"), ("disk",), None),
    (re.compile(r"\d{1,5}"), ("cpu", "net"), None),
)
_OF_KIND = {
    EntityKind.VM: frozenset({"balloon target", "swap target", "overlap", "run"}),
    EntityKind.HOST: frozenset({"vmkernel consumed", "free state", "core utilization", "swap consumed"}),
}
_FLASH = re.compile(r"[A-Z][a-z]{2} ([A-Z][a-z]{2}) (\d{1,2}) (\d\d:\d\d:\d\d) GMT([+-]\d{4}) (\d{4})")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SUM_SPREAD = 0.02  # Judgement: rounding of each part
_PERCENT_MAX = 200.0  # Judgement: turbo takes a busy CPU above 100 %; hundredths of a per cent are far above


@dataclass(frozen=True, slots=True)
class _Column:
    """A column: its label, what it is of, the groups the form of that allows (none: it is an object, no part)."""

    label: str
    name: str
    groups: tuple[str, ...] = ()
    kind: EntityKind | None = None


@dataclass(frozen=True, slots=True)
class _Placed:
    """Where a column's samples go."""

    owner: Entity
    counter: str
    instance: str


def sniff(source: Source) -> int:
    """Sure where the first cell is Time and all headings are labels of counters with the name of an object."""
    header = _header(source.head_uncut.lstrip("\ufeff").partition("\n")[0])
    if header is None:
        return 0
    known = sum(column.label.casefold() in COUNTERS_BY_LABEL for column in header[1])
    return 93 if known == len(header[1]) else 60 if known else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the chart's objects and their parts.

    Raises:
        InputError: the header is missing, or a row has other columns, no number or no time.
        UsageError: the request names a date or time zone that does not exist.
    """
    text = source.text().lstrip("\ufeff")
    lines = text.splitlines()
    header = _header(lines[0]) if lines else None
    if header is None:
        raise InputError(
            source.name,
            found="no header of an exported chart",
            expected="Time, then columns such as 'Ready for db01'",
            advice="Export an advanced performance chart of the vSphere Client as CSV, in English.",
        )
    builder = CaptureBuilder(source.name, "vcenter-chart", META.tool)
    whole = text.endswith(("\n", "\r")) and not request.truncate_last
    rows = list(_rows(lines, header, source, whole, builder))
    stamps = [_iso(cells[0]) for _, cells in rows]
    reader = StampReader.of(stamps, [], source, request, builder)
    for (line, cells), stamp in zip(rows, stamps, strict=True):
        parsed = parse_stamp(stamp)
        if parsed is None or reader.order.day(parsed.day) is None:
            raise bad_line(source, line, f"the time {cells[0][:40]!r}", "a date and a time")
    times = reader.times_ns(stamps, None).tolist()
    columns: dict[_Placed, list[float]] = {}
    for index, placed in enumerate(_placed(header[1], builder), 1):
        values = [cell_value(cells[index], source, line) for line, cells in rows]
        if placed is None or _too_many_percent(placed, values, builder):
            continue
        if placed in columns:
            builder.warn("twice", "a column is there twice; the last one counts")
        columns[placed] = values
    samples = CounterSamples("vcenter", request, vcpu_counts=_vcpu_counts(columns), all_parts=False)
    for placed, values in columns.items():
        for time_ns, value in zip(times, values, strict=True):
            samples.put(placed.owner, placed.counter, placed.instance, time_ns, value)
    samples.into(builder)
    return builder.build(clock_known=reader.known)


def _header(line: str) -> tuple[str, list[_Column]] | None:
    """The separator and the columns behind the time; None when the line heads no chart."""
    for delimiter in (",", ";", "\t"):
        try:
            names = next(csv.reader([line.strip("\r\0")], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error:
            return None
        while names and not names[-1].strip():
            names.pop()
        if len(names) < 2 or names[0].strip().casefold() != "time":
            continue
        columns = [_column(name) for name in names[1:]]
        if all(column is not None for column in columns):
            return delimiter, [column for column in columns if column is not None]
    return None


def _column(heading: str) -> _Column | None:
    """``Read latency for scsi0:1`` taken apart; an object's own name may hold " for " too."""
    parts = heading.strip().split(" for ")
    if len(parts) < 2 or not all(parts):
        return None
    label, name = parts[0].strip(), " for ".join(parts[1:]).strip()
    for form, groups, kind in _PARTS:
        if form.fullmatch(name):
            return _Column(label, name, groups, kind)
    return _Column(label, name)


def _placed(columns: list[_Column], builder: CaptureBuilder) -> list[_Placed | None]:
    """Return the entity and counter of each column; None, with a warning, for parts whose owner is not known."""
    objects = list(dict.fromkeys(column.name for column in columns if not column.groups))
    kind = _kind(columns, objects, builder)
    shared = _shared_group(columns)
    placed: list[_Placed | None] = []
    for column in columns:
        counters = COUNTERS_BY_LABEL.get(column.label.casefold(), {})
        fitting = [group for group in counters if not column.groups or group in column.groups]
        group = shared if shared in fitting else fitting[0] if len(fitting) == 1 else None
        counter = counters[group] if group is not None else f"chart.{column.label}"
        if not column.groups:
            placed.append(_Placed(Entity(kind, column.name), counter, ""))
        elif len(objects) == 1:
            placed.append(_Placed(Entity(kind, objects[0]), counter, column.name))
        else:
            message = "parts were left out: the chart has no column of the one object they belong to; export it too"
            builder.warn("owner", message)
            placed.append(None)
    return placed


def _kind(columns: list[_Column], objects: list[str], builder: CaptureBuilder) -> EntityKind:
    """Whether the chart is of VMs or hosts, by what only one of them has, else by the look of the names."""
    labels = {column.label.casefold() for column in columns}
    for kind, kind_labels in _OF_KIND.items():
        if labels & kind_labels or any(column.kind is kind for column in columns):
            return kind
    kind = EntityKind.HOST if objects and all("." in name for name in objects) else EntityKind.VM
    builder.warn("kind", f"the export does not say what {', '.join(objects[:3])} is; taken for a {kind.value}")
    return kind


def _shared_group(columns: list[_Column]) -> str | None:
    """The one group of counters that has all labels of the chart; a chart is of one group."""
    groups: set[str] | None = None
    for column in columns:
        column_groups = set(COUNTERS_BY_LABEL.get(column.label.casefold(), {}))
        column_groups = column_groups & set(column.groups) or column_groups
        if column_groups:
            groups = column_groups if groups is None else groups & column_groups
    return next(iter(groups)) if groups is not None and len(groups) == 1 else None


def _rows(
    lines: list[str], header: tuple[str, list[_Column]], source: Source, whole: bool, builder: CaptureBuilder
) -> Iterator[tuple[int, list[str]]]:
    """Rows with their line numbers; a last line that was cut off is dropped and said."""
    delimiter, columns = header
    last = max((number for number, line in enumerate(lines, 1) if line.strip()), default=0)
    for number, line in enumerate(lines[1:], 2):
        if not line.strip():
            continue
        try:
            cells = next(csv.reader([line.replace("\0", "")], delimiter=delimiter, skipinitialspace=True), [])
        except csv.Error as error:
            raise bad_line(source, number, str(error), "a row of cells") from error
        while len(cells) > len(columns) + 1 and not cells[-1].strip():
            cells.pop()
        cells = [cell.strip() for cell in cells]
        fits = len(cells) == len(columns) + 1
        if number == last and not whole and not (fits and all(cell_number(c) is not None for c in cells[1:] if c)):
            builder.warn("cut", "the last row was cut off and left out")
            return
        if not fits:
            raise bad_line(source, number, f"{len(cells)} cells", f"{len(columns) + 1}, as the header has")
        yield number, cells


def _iso(stamp: str) -> str:
    """The time as printed, that of the older client (``Fri Sep 6 02:00:00 GMT+0200 2019``) as ISO 8601."""
    match = _FLASH.fullmatch(stamp.strip())
    if match is None or match[1] not in _MONTHS:
        return stamp
    return f"{match[5]}-{_MONTHS.index(match[1]) + 1:02d}-{int(match[2]):02d} {match[3]}{match[4]}"


def _too_many_percent(placed: _Placed, values: list[float], builder: CaptureBuilder) -> bool:
    table = HOST_COUNTERS if placed.owner.kind is EntityKind.HOST else VM_COUNTERS
    known = table.get(placed.counter)
    highest = max((value for value in values if math.isfinite(value)), default=0.0)
    if known is None or known.unit != "pct" or highest <= _PERCENT_MAX:
        return False
    builder.warn("unit", f"{known.metric} was left out: {highest:g} is more than per cent can be")
    return True


def _vcpu_counts(columns: dict[_Placed, list[float]]) -> dict[Entity, int]:
    """How many vCPUs VMs have whose vCPUs are all in the chart: their sums are then those of the whole VM."""
    counts: dict[Entity, int] = {}
    for whole, values in columns.items():
        group, _, rollup = whole.counter.partition(".")
        if group == "cpu" and rollup.endswith("summation") and not whole.instance and whole.owner.kind is EntityKind.VM:
            parts = {p.instance: v for p, v in columns.items() if (p.owner, p.counter) == (whole.owner, whole.counter)}
            del parts[""]
            total, sums = sum(_known(values)), sum(sum(_known(part)) for part in parts.values())
            if parts.keys() == {str(i) for i in range(len(parts))} and abs(sums - total) <= _SUM_SPREAD * total:
                counts[whole.owner] = len(parts)
    return {owner: count for owner, count in counts.items() if count}


def _known(values: list[float]) -> list[float]:
    return [value for value in values if math.isfinite(value)]
