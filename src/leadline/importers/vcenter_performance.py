"""vCenter's performance counters as PowerCLI's Get-Stat exports them.

Reads:
    CSV of ``Get-Stat | Export-Csv`` of VMs, hosts and datastores, real-time or historical, with the columns in any
    order, separated by commas, semicolons or tabs, in the locale of the recorder; the ``#TYPE`` line may be there.

Sample:
    .. code-block:: text

        "Value","Timestamp","MetricId","Unit","Description","Entity","EntityId","IntervalSecs","Instance"
        "2,35","20.11.2026 08:30:20","cpu.latency.average","%","...","db01","VirtualMachine-vm-90","20",""
        "1380","20.11.2026 08:30:20","cpu.ready.summation","millisecond","...","db01","VirtualMachine-vm-90","20","0"

Lost:
    The host of a VM, which the export does not name. Counters without a canonical metric, and sums over parts (all
    network cards of a VM) that no metric has, are kept as ``raw.vcenter.COUNTER`` when everything is asked for. Ready
    time of a whole VM is per vCPU where its vCPUs are in the file too, else it is the sum over them.

Units:
    As the column Unit says; ``percent`` is hundredths of a per cent as in the API, ``%`` is per cent. Milliseconds of
    an interval become per cent of it by IntervalSecs, counts become rates. KB is KiB.

Sources:
    VMware PowerCLI reference: Get-Stat. vSphere Web Services API reference: PerformanceManager. VMware KB 2002181.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.vcenter.counters import HOST_COUNTERS, STORE_COUNTERS, VM_COUNTERS, CounterSamples
from leadline.formats.vcenter.numbers import bad_line, cell_number, cell_value

_UNITS = {"interval": "pct", "each": "per_s"}

META = ImporterMeta(
    tool="vCenter performance (Get-Stat)",
    marks=("metricid",),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH, Layer.DATASTORE, Layer.NETWORK),
    fields={
        f"{kind}:{name}": Field(counter.metric, _UNITS.get(counter.unit, counter.unit))
        for kind, table in (("vm", VM_COUNTERS), ("host", HOST_COUNTERS), ("datastore", STORE_COUNTERS))
        for name, counter in table.items()
    },
    record="Get-Stat -Entity (Get-VM db01) -Realtime -Stat cpu.*,mem.*,virtualdisk.* | Export-Csv -NoType stat.csv",
)

_NEEDED = ("timestamp", "value", "metricid", "entity")
_KINDS = {
    "virtualmachine": EntityKind.VM,
    "hostsystem": EntityKind.HOST,
    "clustercomputeresource": EntityKind.CLUSTER,
    "datastore": EntityKind.DATASTORE,
}
_HEAD_LINES = 3  # a #TYPE line and an empty one may come before the header


@dataclass(frozen=True, slots=True)
class _Header:
    line: int
    delimiter: str
    columns: dict[str, int]


def sniff(source: Source) -> int:
    """Sure by the names of Get-Stat's columns."""
    header = _header(source.head_uncut.lstrip("\ufeff").splitlines()[:_HEAD_LINES])
    return 0 if header is None else 95


def read(source: Source, request: Request) -> Capture:
    """Series of every entity and counter.

    Raises:
        InputError: the header is missing, or a row has other columns, no number or no time.
        UsageError: the request names a date or time zone that does not exist.
    """
    text = source.text().lstrip("\ufeff")
    lines = text.splitlines()
    header = _header(lines[:_HEAD_LINES])
    if header is None:
        raise InputError(
            source.name,
            found="no header of Get-Stat",
            expected="the columns Timestamp, Value, MetricId and Entity",
            advice="Record it with Get-Stat ... | Export-Csv -NoType FILE.",
        )
    builder = CaptureBuilder(source.name, "vcenter-performance", META.tool)
    rows = list(_rows(lines, header, source, text.endswith(("\n", "\r")) and not request.truncate_last, builder))
    times = _times([row[1]["timestamp"] for row in rows], [row[0] for row in rows], source, request, builder)
    samples = CounterSamples("vcenter", request)
    for (line, row), time_ns in zip(rows, times.ns, strict=True):
        owner = Entity(_KINDS.get(row["entityid"].partition("-")[0].casefold(), EntityKind.VM), row["entity"])
        run = samples.put(owner, row["metricid"], row["instance"], time_ns, cell_value(row["value"], source, line))
        if row["unit"]:
            run.unit = row["unit"]
        interval = cell_number(row["intervalsecs"])
        if interval is not None and 0 < interval < 1e8:
            run.interval_s = interval
    samples.into(builder)
    return builder.build(clock_known=times.known)


def _header(lines: list[str]) -> _Header | None:
    for number, line in enumerate(lines):
        for delimiter in (",", ";", "\t"):
            names = [name.strip().strip('"').casefold() for name in line.split(delimiter)]
            if set(_NEEDED) <= set(names):
                return _Header(number, delimiter, {name: i for i, name in enumerate(names)})
    return None


def _rows(
    lines: list[str], header: _Header, source: Source, whole: bool, builder: CaptureBuilder
) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows with their line numbers; a last line that was cut off is dropped and said."""
    width = max(header.columns.values()) + 1
    body = lines[header.line + 1 :]
    reader = csv.reader((line.replace("\0", "") for line in body), delimiter=header.delimiter)
    last = len(lines)
    while body and not body[-1].strip():
        body.pop()
        last -= 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise bad_line(source, header.line + 1 + reader.line_num, str(error), "a row of quoted cells") from error
        line = header.line + 1 + reader.line_num
        if not any(cells):
            continue
        if len(cells) != width:
            if line >= last and not whole:
                builder.warn("cut", "the last row was cut off and left out")
                return
            raise bad_line(source, line, f"{len(cells)} cells", f"{width}, as the header has")
        names = ("timestamp", "value", "metricid", "entity", "unit", "entityid", "intervalsecs", "instance")
        row = {name: cells[header.columns[name]].strip() if name in header.columns else "" for name in names}
        if line >= last and not whole and (cell_number(row["value"]) is None or parse_stamp(row["timestamp"]) is None):
            builder.warn("cut", "the last row was cut off and left out")
            return
        if row["metricid"] and row["entity"]:
            yield line, row


@dataclass(frozen=True, slots=True)
class _Times:
    ns: list[int]
    known: bool


def _times(stamps: list[str], lines: list[int], source: Source, request: Request, builder: CaptureBuilder) -> _Times:
    """UTC nanoseconds of stamps. Get-Stat prints the newest first, so the order of days is read from the end."""
    first_lines: dict[str, int] = {}
    for stamp, line in zip(stamps, lines, strict=True):
        first_lines.setdefault(stamp, line)
    distinct = list(reversed(first_lines))
    reader = StampReader.of(distinct, [], source, request, builder)
    if not reader.order.certain:
        other = StampReader.of(distinct[::-1], [], source, request, builder)
        reader = other if other.order.certain else reader
    for stamp, line in first_lines.items():
        parsed = parse_stamp(stamp)
        if parsed is None or reader.order.day(parsed.day) is None:
            raise bad_line(source, line, f"the time {stamp[:40]!r}", "a date and a time")
    moments = dict(zip(distinct, reader.times_ns(distinct, None).tolist(), strict=True))
    return _Times([moments[stamp] for stamp in stamps], reader.known)
