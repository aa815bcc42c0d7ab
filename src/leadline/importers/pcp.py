r"""Performance Co-Pilot: archives of ``pmlogger``, and the CSV that ``pmrep`` makes of them.

Reads:
    The archive whose ``NAME.meta`` is named or lies in the folder (through ``pmrep`` when PCP is installed), packed or
    not; CSV of ``pmrep -o csv``, extended (``-k``) or not, with rates or raw counters (``-r``).

Sample:
    .. code-block:: text

        Time,"kernel.all.cpu.user","hinv.ncpu","disk.dev.read-sda","disk.dev.read_rawactive-sda"
        2026-11-25 19:00:37,372.500,2,104.500,83.100

Lost:
    Metrics other than those of CPU, load, pressure, memory, swapping, disks and network. Labels. Without ``hinv.ncpu``
    or all shares of CPU time the shares of CPU cannot be told.

Units:
    Those of PCP: CPU time and disk time in ms (per second), KiB, pages of 4 KiB for swapping, bytes of networks. A CSV
    made with other units (``-b``, ``-y``) does not say so and is misread. Waits are time per request.

Sources:
    PCP: pmrep(1), LOGARCHIVE(5) (magic 0x50052600, volume -1 is the metadata), pmdalinux's help texts,
    /etc/pcp/derived/iostat.conf for the waits.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass, field
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.core.system.leftovers import scratch_folder
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import Columns
from leadline.importers._pcp.archive import RECORD, archive_of, export

if TYPE_CHECKING:
    from numpy.typing import NDArray

_CPU = {
    "user": "guest_cpu_user_pct",
    "nice": "guest_cpu_nice_pct",
    "sys": "guest_cpu_system_pct",
    "idle": "guest_cpu_idle_pct",
    "wait.total": "guest_cpu_iowait_pct",
    "irq.hard": "guest_cpu_irq_pct",
    "irq.soft": "guest_cpu_softirq_pct",
    "steal": "guest_cpu_steal_pct",
}
_NET = {"in": "rx", "out": "tx"}
META = ImporterMeta(
    tool="PCP",
    layers=(Layer.GUEST,),
    fields={
        **{f"kernel.{of}.cpu.{share}": Field(name, "pct") for of in ("all", "percpu") for share, name in _CPU.items()},
        "kernel.all.load-1 minute": Field("guest_load_1m", "count"),
        "kernel.all.load-5 minute": Field("guest_load_5m", "count"),
        "kernel.all.load-15 minute": Field("guest_load_15m", "count"),
        "kernel.all.running": Field("guest_run_queue_count", "count"),
        "kernel.all.blocked": Field("guest_blocked_count", "count"),
        "kernel.all.intr": Field("guest_interrupts_per_s", "per_s"),
        "kernel.all.pswitch": Field("guest_context_switches_per_s", "per_s"),
        "kernel.all.sysfork": Field("guest_forks_per_s", "per_s"),
        **{
            f"kernel.all.pressure.{resource}.{kind}.avg-10 second": Field(
                f"guest_pressure_{resource}_{kind}_pct", "pct"
            )
            for resource in ("cpu", "io", "memory")
            for kind in ("some", "full")
        },
        "mem.util.free": Field("guest_memory_free_mib", "kib"),
        "mem.util.available": Field("guest_memory_available_mib", "kib"),
        "mem.util.cached": Field("guest_memory_cached_mib", "kib"),
        "mem.util.bufmem": Field("guest_memory_buffers_mib", "kib"),
        "mem.util.active": Field("guest_memory_active_mib", "kib"),
        "mem.util.inactive": Field("guest_memory_inactive_mib", "kib"),
        "mem.util.dirty": Field("guest_memory_dirty_mib", "kib"),
        "mem.vmstat.pgmajfault": Field("guest_major_faults_per_s", "per_s"),
        "swap.used": Field("guest_swap_used_mib", "bytes"),
        "swap.pagesin": Field("guest_swap_in_kib_per_s", "kib_per_s"),
        "swap.pagesout": Field("guest_swap_out_kib_per_s", "kib_per_s"),
        "disk.dev.read": Field("disk_reads_per_s", "per_s"),
        "disk.dev.write": Field("disk_writes_per_s", "per_s"),
        "disk.dev.read_bytes": Field("disk_read_mib_per_s", "kib_per_s"),
        "disk.dev.write_bytes": Field("disk_write_mib_per_s", "kib_per_s"),
        "disk.dev.flush": Field("guest_disk_flushes_per_s", "per_s"),
        "disk.dev.avactive": Field("guest_disk_util_pct", "pct"),
        "disk.dev.aveq": Field("guest_disk_queue_count", "count"),
        "disk.dev.read_rawactive / read": Field("guest_disk_await_ms_read", "ms"),
        "disk.dev.write_rawactive / write": Field("guest_disk_await_ms_write", "ms"),
        "disk.dev.flush_rawactive / flush": Field("guest_disk_flush_latency_ms", "ms"),
        "disk.dev.r_await": Field("guest_disk_await_ms_read", "ms"),
        "disk.dev.w_await": Field("guest_disk_await_ms_write", "ms"),
        "disk.dev.f_await": Field("guest_disk_flush_latency_ms", "ms"),
        "network.tcp.outsegs": Field("net_tcp_segments_per_s", "per_s"),
        "network.tcp.retranssegs": Field("net_tcp_retransmits_per_s", "per_s"),
        **{f"network.interface.{at}.bytes": Field(f"net_{to}_mbit_per_s", "bytes_per_s") for at, to in _NET.items()},
        **{f"network.interface.{at}.packets": Field(f"net_{to}_packets_per_s", "per_s") for at, to in _NET.items()},
        **{f"network.interface.{at}.errors": Field(f"net_{to}_errors_per_s", "per_s") for at, to in _NET.items()},
        **{f"network.interface.{at}.drops": Field(f"net_{to}_dropped_per_s", "per_s") for at, to in _NET.items()},
    },
    record=RECORD,
    needs_tool="pcp",
    marks=("p\x05&", 'time,"'),
)

_MAGIC = b"\x50\x05\x26"  # at byte 4, behind the length of the label
_METADATA = b"\xff\xff\xff\xff"  # the volume's number at byte 20; later versions at byte 28
_LABELS = {2: 20, 3: 28}  # version of the label -> where the volume's number stands
_ANY_METRIC = re.compile(r'"(?:kernel|disk|mem|swap|network|hinv|proc|cgroup|filesys|nfs\d?|xfs|vfs|pmcd)\.[a-z]')
_ZONE = re.compile(r"(.{8,40}) UTC([+-]\d{1,2})(?::?(\d\d))?")
_COUNTERS = re.compile(
    r"kernel\.(?:all|percpu)\.cpu\.|disk\.(?:dev|dm|md)\.(?:read|write|flush|av)|swap\.pages|network\."
)
_DISK = re.compile(r"disk\.(?:dev|dm|md)\.")
_WAITS = (
    ("guest_disk_await_ms_read", "read_rawactive", "read"),
    ("guest_disk_await_ms_write", "write_rawactive", "write"),
    ("guest_disk_flush_latency_ms", "flush_rawactive", "flush"),
)
_PAGE_KIB = 4.0  # pages of x86 and of most ARM machines


def sniff(source: Source) -> int:
    """Sure by the magic number of archives, or by pmrep's heading with names of PCP's metrics."""
    if source.head[4:7] == _MAGIC:
        return 98
    first = source.head_text.lstrip("\ufeff\r\n ").partition("\n")[0].rstrip("\r")
    is_heading = first.removeprefix("Host,Interval,").startswith("Time")
    return 94 if is_heading and _ANY_METRIC.search(first) else 0


def read(source: Source, request: Request) -> Capture:
    """The machine's series, with those of its CPUs, disks and interfaces.

    Raises:
        InputError: no row of numbers, or an archive that pmrep does not read.
        ToolError: an archive, and PCP is not installed.
    """
    builder = CaptureBuilder(source.name, "pcp", META.tool)
    if source.head[4:7] != _MAGIC:
        return _read_csv(source, request, builder)
    at = _LABELS.get(source.head[7] if len(source.head) > 7 else 0, 20)
    if len(source.head) < at + 4:
        raise InputError(
            source.name,
            found="an archive of PCP that is cut within its label",
            expected="NAME.meta, NAME.index and NAME.0 as pmlogger wrote them",
            advice=f"Copy the archive again, or where it was recorded: {RECORD}",
        )
    if source.head[at : at + 4] != _METADATA:
        builder.warn("volume", "a part of an archive, which is read with its NAME.meta: name that or the folder")
        return builder.build()
    with scratch_folder("pcp") as folder:
        exported = folder / "pcp.csv"
        export(archive_of(source), exported, source.name, _requested())
        return _read_csv(Source(source.name, exported), request, builder)


def _requested() -> list[str]:
    """The metrics to export: those that fields and waits are made of, and the number of CPUs."""
    known = {field_name.partition("-")[0].partition(" ")[0] for field_name in META.fields if "await" not in field_name}
    waits = {f"disk.dev.{busy}" for _, busy, _ in _WAITS}
    return sorted(known | waits | {"hinv.ncpu"})


@dataclass(slots=True)
class _Rows:
    """The rows of a CSV, with their times."""

    names: list[str]
    times: list[int] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    host: str = ""
    zoned: bool = False


def _read_csv(source: Source, request: Request, builder: CaptureBuilder) -> Capture:
    rows = _rows(source, request, builder)
    if not rows.times:
        raise InputError(
            source.name,
            found="no row with a time and numbers",
            expected='Time,"disk.dev.read-sda" and rows below it',
            advice=f"Export it again: {META.record}",
        )
    order = np.argsort(np.array(rows.times, dtype=np.int64), kind="stable")
    times, first = np.unique(np.array(rows.times, dtype=np.int64)[order], return_index=True)
    matrix = np.array(rows.values)[order][first]
    table = {name: matrix[:, place] for place, name in enumerate(rows.names)}
    if _is_raw(table):
        builder.warn("raw", "raw counters (pmrep -r) were made into rates")
        table = {name: _rates(times, column) if _is_counter(name) else column for name, column in table.items()}
    if not rows.zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it, and so does pmrep -k")
    guest = Entity(EntityKind.GUEST, rows.host) if rows.host else UNNAMED_GUEST
    for (entity, metric), column in _series(table, guest, builder).items():
        known = np.isfinite(column)
        if known.any() and request.wants(metric):
            builder.add_series(metric, entity, times[known], column[known])
    return builder.build(host=rows.host or None, clock_known=rows.zoned)


def _rows(source: Source, request: Request, builder: CaptureBuilder) -> _Rows:
    """The rows that fit the heading; others are left out and counted."""
    text = source.text()
    lines = text.splitlines()
    if lines and not text.endswith(("\n", "\r")):
        builder.warn("cut", "the last row has no end and was left out")
        lines.pop()
    heading = next((place for place, line in enumerate(lines) if _ANY_METRIC.search(line)), None)
    if heading is None:
        return _Rows([])
    after = re.search(r'Time(.)"', lines[heading])
    mark = after[1] if after else ","
    cells = next(csv.reader([lines[heading].lstrip("\ufeff")], delimiter=mark))
    lead = cells.index("Time") + 1 if "Time" in cells else 1
    rows = _Rows(cells[lead:])
    for line in lines[heading + 1 :]:
        if not line.strip() or line.startswith("#") or line == lines[heading]:
            continue
        parts = line.split(mark)
        moment = _moment(parts[lead - 1], request, rows) if len(parts) == len(cells) else None
        if moment is None:
            builder.warn("left-out", "rows without a time, or with another number of cells than the heading")
            continue
        rows.host = parts[0].strip() if lead > 1 else rows.host
        rows.times.append(moment)
        rows.values.append([_number(part) for part in parts[lead:]])
    return rows


def _moment(text: str, request: Request, rows: _Rows) -> int | None:
    zone = _ZONE.fullmatch(text.strip())
    try:
        moment = datetime.fromisoformat((zone[1] if zone else text).strip())
        if not 1970 < moment.year < 2200:
            return None
        if zone:
            hours = int(zone[2])
            minutes = int(zone[3] or 0) * (-1 if zone[2].startswith("-") else 1)
            moment = moment.replace(tzinfo=timezone(timedelta(hours=hours, minutes=minutes)))
        rows.zoned = moment.tzinfo is not None
        return to_ns(moment, request)
    except (ValueError, OverflowError):
        return None


def _number(text: str) -> float:
    try:
        value = float(text) if len(text) < 40 else float("nan")
    except ValueError:
        return float("nan")
    return value if 0.0 <= value < 1e18 else float("nan")


def _is_counter(name: str) -> bool:
    """Whether PCP counts it up; derived waits and shares are values."""
    return _COUNTERS.match(name) is not None and "await" not in name and "avg" not in name


def _is_raw(table: Columns) -> bool:
    """Whether counters were not made into rates: filled from the first row on, and none ever falls."""
    counters = [column for name, column in table.items() if _is_counter(name) and np.isfinite(column).any()]
    if not counters or any(len(column) < 3 or not np.isfinite(column[0]) for column in counters):
        return False
    return all(bool(np.all(np.diff(column[np.isfinite(column)]) >= 0)) for column in counters)


def _rates(times: NDArray[np.int64], column: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rate [n] of a counter per second; NaN for the first and where the counter fell."""
    rates = np.full(len(column), np.nan)
    known = np.flatnonzero(np.isfinite(column))
    grown, seconds = np.diff(column[known]), np.diff(times[known]) / 1e9
    rates[known[1:]] = np.where(grown >= 0, grown / seconds, np.nan)
    return rates


def _series(table: Columns, guest: Entity, builder: CaptureBuilder) -> dict[tuple[Entity, str], NDArray[np.float64]]:
    """The columns [n] in the metric's unit, by entity and metric."""
    by_entity: dict[Entity, Columns] = {}
    for name, column in table.items():
        metric, _, item = name.partition("-")
        known = META.fields.get(name) or META.fields.get(_DISK.sub("disk.dev.", metric))
        if known is None or "cpu." in metric:
            continue
        scale = factor(known.unit, metric_of(known.metric).unit)
        if metric.startswith("swap.pages"):
            scale *= _PAGE_KIB
        elif metric.endswith(".avactive"):
            scale = 0.1  # ms of a second as percent
        elif metric.endswith(".aveq"):
            scale = 1e-3  # ms of waiting in a second, all requests together
        by_entity.setdefault(_placed(metric, item, guest), {}).setdefault(known.metric, column * scale)
    for entity, columns in _cpu_shares(table, guest, builder).items():
        add_cpu_busy(columns)
        by_entity.setdefault(entity, {}).update(columns)
    for name, column in table.items():
        _add_wait(table, (name, column), guest, by_entity)
    return {(entity, metric): column for entity, columns in by_entity.items() for metric, column in columns.items()}


def _placed(metric: str, item: str, guest: Entity) -> Entity:
    if item and metric.startswith("disk."):
        return Entity(EntityKind.BLOCK_DEVICE, item, guest)
    if item and metric.startswith("network.interface."):
        return Entity(EntityKind.NIC, item, guest)
    return guest


def _add_wait(
    table: Columns, busy: tuple[str, NDArray[np.float64]], guest: Entity, by_entity: dict[Entity, Columns]
) -> None:
    """Add the time per request of a disk, from its busy time and its requests; NaN where there was none."""
    name, column = busy
    metric, _, disk = name.partition("-")
    for wait, part, requests in _WAITS:
        if not disk or not metric.endswith(f".{part}"):
            continue
        counts = table.get(f"{metric.removesuffix(part)}{requests}-{disk}")
        if counts is not None:
            values = np.divide(column, counts, out=np.full(len(column), np.nan), where=counts > 0)
            by_entity.setdefault(_placed(metric, disk, guest), {})[wait] = values


def _cpu_shares(table: Columns, guest: Entity, builder: CaptureBuilder) -> dict[Entity, Columns]:
    """Shares of CPU time in percent, of the machine and of each CPU, from ms per second."""
    shares: dict[Entity, Columns] = {}
    for name, column in table.items():
        metric, _, item = name.partition("-")
        for of, entity in (("all", guest), ("percpu", Entity(EntityKind.CPU, item.removeprefix("cpu"), guest))):
            prefix = f"kernel.{of}.cpu."
            if metric.startswith(prefix) and metric.removeprefix(prefix) in _CPU:
                shares.setdefault(entity, {})[_CPU[metric.removeprefix(prefix)]] = column * 0.1
    whole = shares.get(guest)
    if whole is None:
        return shares
    count = table.get("hinv.ncpu")
    known = np.nanmax(count) if count is not None and np.isfinite(count).any() else np.nan
    if not known > 0 and {"guest_cpu_idle_pct", "guest_cpu_user_pct", "guest_cpu_system_pct"} <= whole.keys():
        known = max(np.round(np.nanmedian(np.sum(list(whole.values()), axis=0)) / 100.0), 1.0)
    if known > 0:
        shares[guest] = {name: column / known for name, column in whole.items()}
    else:
        builder.warn("no-cpu-count", "shares of CPU need hinv.ncpu, or user, sys and idle, and were left out")
        del shares[guest]
    return shares
