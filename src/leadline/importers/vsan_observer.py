"""vSAN Observer: what hosts, disk groups, disks and VMs measured, as the pages of HCIBench or of RVC load it.

Reads:
    The JSON files under ``jsonstats`` beside ``stats.html``, which ``vsan.observer`` of RVC writes. The HCIBench
    releases that run the Observer keep them in the folder of a test case (``iotest-fio-8vm/jsonstats``). Read are
    ``dom/domobj-client-*``, ``domobj-total-*`` (owners) and ``domobj-compmgr-*``; ``lsom/physdisk-*``, ``cong-*`` and
    ``ssd-*``; ``vm/vscsi-*``; ``pcpu/pcpu-*``; ``mem/system-*``; and ``misc/pnics-*``, which has the host in its name
    only.

Sample:
    .. code-block:: json

        {"uuid": "client-esx01.example",
         "stats": {"readCount": {"avgs": [0.0, 1000.0], "times": [1763625600.75, 1763625660.75]},
                   "readLatency": {"avgs": [0, 600], "times": [1763625600.75, 1763625660.75]}}}

Lost:
    The first sample of a rate, for which Observer writes 0. Means over an interval without I/O. A counter that began
    anew cannot be told from idleness: both are 0. Latencies are whole microseconds, cut off. Of a resync only the
    writes. The other files: objects and components (``domobj-UUID``, ``lsomcomp``), logs of disks (``plog``, ``disk``),
    TCP, worlds, heaps, inventory. ``*_thumb.json`` repeats its neighbour. The raw ``observer.json``. What has no metric
    of its own (the owners', among others) is kept as ``raw.vsan-observer.KIND.NAME`` when everything is asked for.

Units:
    Times are seconds since 1970. Latencies are microseconds, blocks 512 bytes, congestion 0 to 255, shares per cent.

Sources:
    HCIBench appliance: rvc/observer/inventory-analyzer.rb, which writes the files; graphs.js, which shows their units;
    lib/parsing_script and lib/getCpuUsage.rb, which name the folders.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.json_documents import NUMBER_MAX, json_documents, object_in
from leadline.formats.samples import Samples, epoch_ns
from leadline.formats.vcenter.vsan_labels import SUMS

NS_PER_US = 1000
_US, _RATE, _BYTES, _COUNT = "us", "per_s", "bytes_per_s", "count"
_DISK_COUNTS = ("readIOs", "writeIOs")
_CONGESTIONS = ("mem", "slab", "ssd", "iops", "log", "comp")


def _disk(metric: str) -> dict[str, Field]:
    names = ("readLatency", "writeLatency", "dAvgLatency")
    return {name: Field(metric, _US) for name in names} | {name: Field("disk_iops", _RATE) for name in _DISK_COUNTS}


_FIELDS: dict[str, dict[str, Field]] = {
    "client": {
        "readLatency": Field("vsan_client_latency_us_read", _US),
        "writeLatency": Field("vsan_client_latency_us_write", _US),
        "readCount": Field("vsan_client_iops", _RATE),
        "writeCount": Field("vsan_client_iops", _RATE),
        "readBytes": Field("vsan_client_bytes_per_s", _BYTES),
        "writeBytes": Field("vsan_client_bytes_per_s", _BYTES),
        "readCongestion": Field("vsan_congestion_count", _COUNT),
        "writeCongestion": Field("vsan_congestion_count", _COUNT),
        "numOIO": Field("vsan_client_outstanding_count", _COUNT),
    },
    "compmgr": {
        "readLatency": Field("vsan_backend_latency_us_read", _US),
        "writeLatency": Field("vsan_backend_latency_us_write", _US),
        "recoveryWriteCount": Field("vsan_resync_iops", _RATE),
        "recoveryWriteLatency": Field("vsan_resync_latency_us", _US),
    },
    "cong": {f"{kind}Congestion": Field("vsan_disk_group_congestion_count", _COUNT) for kind in _CONGESTIONS},
    "ssd": {"wbFillPct": Field("vsan_write_buffer_free_pct", "pct")},
    "cache": _disk("vsan_cache_device_latency_us"),
    "capacity": _disk("vsan_capacity_device_latency_us"),
    "device": {
        "readIOs": Field("disk_reads_per_s", _RATE),
        "writeIOs": Field("disk_writes_per_s", _RATE),
        "read": Field("disk_read_mib_per_s", "sectors_per_s"),
        "write": Field("disk_write_mib_per_s", "sectors_per_s"),
    },
    "vscsi": {
        "numReads": Field("disk_reads_per_s", _RATE),
        "numWrites": Field("disk_writes_per_s", _RATE),
        "bytesRead": Field("disk_read_mib_per_s", _BYTES),
        "bytesWrite": Field("disk_write_mib_per_s", _BYTES),
        "latencyReads": Field("virtual_disk_latency_ms_read", _US),
        "latencyWrites": Field("virtual_disk_latency_ms_write", _US),
    },
    "pcpu": {"usedPct": Field("host_cpu_core_util_pct", "pct")},
    "system": {"pctMemUsed": Field("host_memory_used_pct", "pct")},
    "pnics": {
        "rxbytes": Field("net_rx_mbit_per_s", _BYTES),
        "txbytes": Field("net_tx_mbit_per_s", _BYTES),
        "rxpkt": Field("net_rx_packets_per_s", _RATE),
        "txpkt": Field("net_tx_packets_per_s", _RATE),
        "rxdrp": Field("net_rx_dropped_per_s", _RATE),
        "txdrp": Field("net_tx_dropped_per_s", _RATE),
        "rxerror": Field("net_rx_errors_per_s", _RATE),
        "txerror": Field("net_tx_errors_per_s", _RATE),
    },
}
META = ImporterMeta(
    tool="vSAN Observer",
    marks=('"avgs"',),
    layers=(Layer.DATASTORE, Layer.STORAGE_PATH, Layer.NETWORK),
    fields={f"{kind}.{name}": field for kind, fields in _FIELDS.items() for name, field in fields.items()},
    record="vsan.observer CLUSTER --generate-html-bundle /tmp      (in RVC; or a result folder of HCIBench)",
)
_LOG = Field("vsan_disk_group_congestion_count_log", _COUNT)  # beside the highest of all kinds
_DOM_IO = ("read", "write", "recoveryWrite")
# A mean is of the I/O that these count: where there was none, nothing was measured.
_COUNTED_BY: dict[str, tuple[str, ...]] = {
    **{f"{io}{mean}": (f"{io}Count",) for io in _DOM_IO for mean in ("LatencySq", "Congestion")},
    "recoveryWriteLatency": ("recoveryWriteCount",),
    "readLatency": ("readCount", "readIOs"),
    "writeLatency": ("writeCount", "writeIOs"),
    **dict.fromkeys(("dAvgLatency", "gAvgLatency", "kAvgLatency"), _DISK_COUNTS),
    "numOIO": ("totalCount",),
    "latencyReads": ("numReads",),
    "latencyWrites": ("numWrites",),
    "usedPct": ("elapsedTime",),
}
_SERIES = re.compile(r'"avgs"\s*:\s*\[')
_DOM = re.compile(r'"uuid"\s*:\s*"(?:client|total|compmgr)-|"file"\s*:\s*"(?:physdisk|cong|ssd)-')
# Of the counters the one a file begins with: the others may lie beyond what is looked at.
_OTHER = re.compile(r'"(?:wdtTime|totalMbMemUsed|pnics)"\s*:|"disk"\s*:\s*"')
_DOM_NAME = re.compile(r"(client|total|compmgr)-(.{1,253})")
_GROUPED = re.compile(r"(physdisk|cong|ssd)-")
_PNICS_NAME = re.compile(r"pnics-(.{1,253})\.json")


@dataclass(frozen=True, slots=True)
class ObserverTable:
    """The counters of one entity, as one file holds them."""

    kind: str
    entity: Entity
    counters: dict[str, Any]


def sniff(source: Source) -> int:
    """Sure by the counters' names; small copies for thumbnails are left to their originals."""
    text = source.head_text
    if text.lstrip("\ufeff \t\r\n")[:1] != "{" or _file_name(source).endswith("_thumb.json"):
        return 0
    is_known = _DOM.search(text) is not None or _OTHER.search(text) is not None
    return 93 if is_known and _SERIES.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the entities of one file.

    Raises:
        InputError: it is not JSON, holds no counters that are read, or times and values do not fit together.
    """
    builder = CaptureBuilder(source.name, "vsan-observer", META.tool)
    samples = Samples(SUMS)
    is_read = False
    documents = json_documents(source.text(), source.name)
    if documents.cut:
        builder.warn("cut", "the file ends inside of a document, which was left out")
    for document in documents.documents:
        for table in _tables(document.value, source):
            is_read = True
            _add(table, f"{source.name}:{document.line}", request, samples, builder)
    if not is_read:
        raise InputError(
            source.name,
            found="no counters of a host, disk or VM",
            expected="a file of jsonstats such as dom/domobj-client-HOST.json",
            advice="Name the folder that holds stats.html.",
        )
    samples.into(builder)
    return builder.build()


def _file_name(source: Source) -> str:
    return PurePosixPath(source.name.rpartition("!")[2].replace("\\", "/")).name


def _tables(record: dict[str, Any], source: Source) -> Iterator[ObserverTable]:
    """The tables of counters in one document; nothing where it is of another kind."""
    counters = object_in(record, "stats")
    host = Entity(EntityKind.HOST, _text(record, "hostname") or _text(record, "host") or "host")
    dom = _DOM_NAME.fullmatch(_text(record, "uuid"))
    grouped = _GROUPED.match(_text(record, "file"))
    if dom is not None:
        kind = "owner" if dom[1] == "total" else dom[1]
        yield ObserverTable(kind, Entity(EntityKind.HOST, dom[2]), counters)
    elif grouped is not None:
        yield from _of_disks(grouped[1], record, host, counters)
    elif _text(record, "vm") and _text(record, "disk"):
        vm = Entity(EntityKind.VM, _text(record, "vm"))
        yield ObserverTable("vscsi", Entity(EntityKind.VIRTUAL_DISK, _text(record, "disk"), vm), counters)
    elif "pnics" in record:
        named = _PNICS_NAME.fullmatch(_file_name(source))
        owner = None if named is None else Entity(EntityKind.HOST, named[1])
        for name, table in _objects(object_in(record, "pnics")):
            yield ObserverTable("pnics", Entity(EntityKind.NIC, name, owner), table)
    elif "pctMemUsed" in counters:
        yield ObserverTable("system", host, counters)
    else:
        for name, table in _objects(counters):
            if "coreHaltTime" in table:
                yield ObserverTable("pcpu", Entity(EntityKind.PCPU, name, host), table)


def _of_disks(kind: str, record: dict[str, Any], host: Entity, counters: dict[str, Any]) -> Iterator[ObserverTable]:
    """Tables of a disk group, which has the UUID of its cache disk, or of a disk."""
    uuid, name = _text(record, "uuid"), _text(record, "dev")
    if kind != "physdisk":
        yield ObserverTable(kind, Entity(EntityKind.DISK_GROUP, name or uuid, host), counters)
        return
    device = Entity(EntityKind.DEVICE, name, host)
    yield ObserverTable("device", device, counters)
    # RVC's vsan.disks_stats calls them so too, whatever the medium.
    if record.get("isSsd") == 1 and uuid:
        yield ObserverTable("cache", Entity(EntityKind.DISK_GROUP, uuid, host), counters)
    elif record.get("isSsd") == 0:
        yield ObserverTable("capacity", device, counters)


def _objects(holder: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    return ((name, value) for name, value in holder.items() if isinstance(value, dict))


def _text(record: dict[str, Any], key: str) -> str:
    value = record.get(key)
    return value if isinstance(value, str) else ""


def _add(table: ObserverTable, where: str, request: Request, samples: Samples, builder: CaptureBuilder) -> None:
    fields = _FIELDS.get(table.kind, {})
    for name, counter in _objects(table.counters):
        known = fields.get(name)
        if known is None and table.kind in ("cache", "capacity"):
            continue  # kept with the device
        metric = f"raw.vsan-observer.{table.kind}.{name}" if known is None else known.metric
        is_log = table.kind == "cong" and name == "logCongestion"
        if not request.wants(metric) and not (is_log and request.wants(_LOG.metric)):
            continue
        points = _points(counter, f"{where}, {name}")
        if points is None:
            builder.warn("mixed", f"{table.kind} {name}: several of one name were recorded as one; left out")
            continue
        values = _measured(points, name, table.counters, where)
        if known is not None:
            scale = factor(known.unit, metric_of(metric).unit)
            values = [100.0 - value if name == "wbFillPct" else value * scale for value in values]
        if points:
            samples.extend(metric, table.entity, points, values, name)
        if points and is_log:
            samples.extend(_LOG.metric, table.entity, points, values)


def _points(counter: dict[str, Any], where: str) -> dict[int, float] | None:
    """Values by UTC nanosecond; None where a moment is there twice, which happens when two VMs have one name.

    Observer keeps a rate or a mean by its time, and all times: a time that is there twice has one value. It knows no
    rate at the first time and writes 0. A level, which it does not divide, equals its total throughout.

    Raises:
        InputError: a time is none, or there are not as many values as times.
    """
    times, means = counter.get("times"), counter.get("avgs")
    if not isinstance(times, list) or not isinstance(means, list):
        raise _mismatch(where, "no list of times and avgs", "both")
    stamps = [_time_ns(moment, where) for moment in times]
    if len(means) != len(dict.fromkeys(stamps)):
        raise _mismatch(where, f"{len(means)} values", f"{len(dict.fromkeys(stamps))}, one for each time")
    if len(means) != len(stamps):
        return None
    first = 0 if means == counter.get("total") else 1
    return {stamp: _number(value) for stamp, value in list(zip(stamps, means, strict=True))[first:]}


def _measured(points: dict[int, float], name: str, counters: dict[str, Any], where: str) -> list[float]:
    """The values of points; NaN for a mean of no I/O."""
    counts = [
        _points(counters[key], where) or {} for key in _COUNTED_BY.get(name, ()) if isinstance(counters.get(key), dict)
    ]
    if not counts:
        return list(points.values())
    return [
        value if any(count.get(stamp, 0.0) > 0 for count in counts) else math.nan for stamp, value in points.items()
    ]


def _time_ns(moment: Any, where: str) -> int:  # noqa: ANN401 - whatever JSON holds
    # In whole microseconds: as a float, nanoseconds would be off by some hundred.
    stamp = None if math.isnan(_number(moment)) else epoch_ns(round(_number(moment) * 1e6), NS_PER_US)
    if stamp is None:
        raise _mismatch(where, f"the time {str(moment)[:30]!r}", "seconds since 1970 such as 1763625600.75")
    return stamp


def _number(value: Any) -> float:  # noqa: ANN401 - whatever JSON holds
    """A value; NaN for what is none."""
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < NUMBER_MAX:
        return math.nan
    return float(value)


def _mismatch(where: str, problem: str, expected: str) -> InputError:
    return InputError(
        where, found=problem, expected=expected, advice="Copy the file again from the folder of the pages."
    )
