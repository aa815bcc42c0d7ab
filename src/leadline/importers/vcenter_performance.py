"""vCenter's performance counters as PowerCLI's Get-Stat exports them.

Reads:
    CSV of ``Get-Stat | Export-Csv`` of VMs, hosts and datastores, real-time or historical, with the columns in any
    order, separated by commas, semicolons or tabs, in the locale of the recorder; the ``#TYPE`` line may be there.
    Tables with a column per counter, or a column per VM where the file's name says the counter. What the console
    prints (``Format-Table``, ``Format-List``).

Sample:
    .. code-block:: text

        "Value","Timestamp","MetricId","Unit","Description","Entity","EntityId","IntervalSecs","Instance"
        "2,35","20.11.2026 08:30:20","cpu.latency.average","%","...","db01","VirtualMachine-vm-90","20",""
        "1380","20.11.2026 08:30:20","cpu.ready.summation","millisecond","...","db01","VirtualMachine-vm-90","20","0"

Lost:
    The host of a VM, which the export does not name. Counters without a canonical metric, and sums over parts (all
    network cards of a VM) that no metric has, are kept as ``raw.vcenter.COUNTER`` when everything is asked for. Ready
    time of a whole VM is per vCPU where its vCPUs are in the file too, else it is the sum over them. Without the column
    EntityId, what only hosts have, or a name with a domain, makes an entity a host; others are VMs, and it is said.

Units:
    As the column Unit says; ``percent`` is hundredths of a per cent as in the API, ``%`` is per cent. Milliseconds of
    an interval become per cent of it by IntervalSecs, else by the distance of times; counts become rates. KB is KiB.

Sources:
    VMware PowerCLI reference: Get-Stat. vSphere Web Services API reference: PerformanceManager. VMware KB 2002181.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.vcenter.counters import (
    HOST_COUNTERS,
    REALTIME_S,
    STORE_COUNTERS,
    VM_COUNTERS,
    CounterSamples,
    counters_of,
)
from leadline.formats.vcenter.get_stat import RECORD, StatRow, delimited_header, delimited_rows, nameless
from leadline.formats.vcenter.get_stat_console import is_console_list, is_console_table, list_rows, table_rows
from leadline.formats.vcenter.numbers import bad_line, cell_number, cell_value

_UNITS = {"interval": "pct", "each": "per_s"}

META = ImporterMeta(
    tool="vCenter performance (Get-Stat)",
    marks=("metricid", "timestamp", ".average", ".summation", ".latest", ".maximum"),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH, Layer.DATASTORE, Layer.NETWORK),
    fields={
        f"{kind}:{name}": Field(counter.metric, _UNITS.get(counter.unit, counter.unit))
        for kind, table in (("vm", VM_COUNTERS), ("host", HOST_COUNTERS), ("datastore", STORE_COUNTERS))
        for name, counter in table.items()
    },
    record=RECORD,
)

_KINDS = {
    "virtualmachine": EntityKind.VM,
    "hostsystem": EntityKind.HOST,
    "clustercomputeresource": EntityKind.CLUSTER,
    "datastore": EntityKind.DATASTORE,
}
_OF_HOSTS = frozenset({"storageadapter", "storagepath"})
_HOST_NAME = re.compile(
    r"[A-Za-z][\w-]{0,62}(?:\.[\w-]{1,62}){2,8}"
)  # a name with its domain, as hosts have in vCenter
_UNNAMED_VM = "vm"
_SUMS = frozenset({"interval", "each"})


def sniff(source: Source) -> int:
    """Sure by the names of Get-Stat's properties and counters."""
    head = source.head_uncut
    header = delimited_header(head, source.name)
    if header is not None:
        is_whole = {"value", "metricid", "entity"} <= header.columns.keys()
        return 95 if is_whole else 90 if header.is_complete else 0  # a map may tell of it
    if "metricid" not in head.casefold():
        return 0
    return 93 if is_console_table(head) or is_console_list(head) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of every entity and counter.

    Raises:
        InputError: nothing says the counter, or a row has other columns, no number or no time.
        UsageError: the request names a date or time zone that does not exist.
    """
    builder = CaptureBuilder(source.name, "vcenter-performance", META.tool)
    rows = _named(_rows(source, request, builder), builder)
    times = _times([row.timestamp for row in rows], [row.line for row in rows], source, request, builder)
    owners = _owners(rows, builder)
    _check_minutes(rows, source)
    samples = CounterSamples("vcenter", request)
    for row, time_ns in zip(rows, times.ns, strict=True):
        owner = owners[row.entity, row.kind]
        interval = cell_number(row.interval)
        value = cell_value(row.value, source, row.line)
        run = samples.put(owner, row.metric, row.instance, time_ns, value)
        if row.unit:
            run.unit = row.unit
        if interval is not None and 0 < interval < 1e8:
            known = counters_of(owner.kind).get(row.metric.casefold())
            if run.interval_s > 0 and known is not None and known.unit in _SUMS:
                run.values[-1] *= run.interval_s / interval  # as if it were of the interval of the first sample
            else:
                run.interval_s = interval
    samples.into(builder)
    return builder.build(clock_known=times.known)


def _rows(source: Source, request: Request, builder: CaptureBuilder) -> list[StatRow]:
    """The samples, in whichever form they are.

    Raises:
        InputError: it is none of them, or a line is no sample.
    """
    text = source.text().lstrip("\ufeff")
    header = delimited_header(text[: len(source.head_uncut)], source.name)
    if header is not None and not header.is_complete:
        raise nameless(source)
    if header is not None:
        return list(delimited_rows(text, header, source, builder, truncate_last=request.truncate_last))
    if is_console_table(text):
        return list(table_rows(text, source, builder))
    if is_console_list(text):
        return list(list_rows(text, source, builder))
    raise InputError(
        source.name,
        found="no header of Get-Stat",
        expected="the columns Timestamp, Value, MetricId and Entity",
        advice="Record it with Get-Stat ... | Export-Csv -NoType FILE.",
    )


def _named(rows: list[StatRow], builder: CaptureBuilder) -> list[StatRow]:
    """Samples with a counter and an entity; where none has an entity, they are of one VM without a name."""
    rows = [row for row in rows if row.metric]
    if any(row.entity for row in rows):
        return [row for row in rows if row.entity]
    if rows:
        builder.warn("no-entity", "the export does not say of which VM it is: select Entity, too; taken for one VM")
    return [replace(row, entity=_UNNAMED_VM) for row in rows]


def _owners(rows: list[StatRow], builder: CaptureBuilder) -> dict[tuple[str, str], Entity]:
    """The entity of each name and kind; a kind that is not said is that which has such counters."""
    counters: dict[tuple[str, str], set[tuple[str, str]]] = {}
    for row in rows:
        counters.setdefault((row.entity, row.kind), set()).add((row.metric.casefold(), row.instance.casefold()))
    owners = {}
    guessed: dict[EntityKind, list[str]] = {}
    for (name, printed), seen in counters.items():
        kind = _KINDS.get(printed.casefold())
        if kind is None:
            kind = EntityKind.HOST if _is_of_host(seen) or _HOST_NAME.fullmatch(name) else EntityKind.VM
            guessed.setdefault(kind, []).append(name)
        owners[name, printed] = Entity(kind, name)
    for kind, names in guessed.items():
        shown = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
        builder.warn("kind", f"taken for a {kind.value}: {shown}; select EntityId, too, and the export says it")
    return owners


def _is_of_host(seen: set[tuple[str, str]]) -> bool:
    """Whether counters and their instances are those that only a host has."""
    for name, instance in seen:
        if name.partition(".")[0] in _OF_HOSTS or instance.startswith(("vmnic", "vmhba")):
            return True
        if name in HOST_COUNTERS and name not in VM_COUNTERS:
            return True
    return False


def _check_minutes(rows: list[StatRow], source: Source) -> None:
    """Refuse samples whose times lost their seconds where there are several in a minute.

    Raises:
        InputError: there are.
    """
    seen = set()
    for row in rows:
        key = (row.timestamp, row.entity, row.metric, row.instance)
        if row.minute and key in seen:
            problem = f"several samples of {row.timestamp[:40]!r}: the seconds were dropped, as spreadsheets do"
            raise InputError(
                source.name,
                found=problem,
                expected=f"times with seconds, {REALTIME_S:g} s apart",
                advice="Export it again, and do not store it from a spreadsheet.",
            )
        seen.add(key)


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
