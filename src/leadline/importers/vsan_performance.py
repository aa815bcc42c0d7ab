"""vSAN's performance service: what clusters, hosts, disk groups and disks measured, as its API returns it.

Reads:
    JSON of ``VsanPerfQueryPerf``: objects ``VsanPerfEntityMetricCSV`` (an entity, comma-joined times, and for each
    label comma-joined values), alone, in a list, or under ``returnval``; keys in either case.

Sample:
    .. code-block:: json

        {"entityRefId": "cluster-domclient:5270dc4d-3594-cc26-b33d-f6be33ddb353",
         "sampleInfo": "2026-11-20 08:30:00,2026-11-20 08:35:00",
         "value": [{"metricId": {"label": "latencyAvgRead"}, "values": "512,48211"}]}

Lost:
    Names: the service knows hosts, disks and VMs by their UUID. An inventory with these UUIDs (vCenter's, or ``uuid``
    in an inventory file) tells them. Which disk group a capacity disk belongs to. Labels without a canonical metric are
    kept as ``raw.vsan.TYPE.LABEL`` when everything is asked for. Where several labels make one metric (reads and
    writes, received and sent, worlds of a host) rates are added, and of latencies, losses and congestions the highest
    counts.

Units:
    Latencies are microseconds, throughputs bytes per second, losses and retransmissions per mille, congestion 0 to 255,
    shares per cent. Times are UTC.

Sources:
    vSAN Management API reference: VsanPerfEntityMetricCSV, VsanPerfMetricSeriesCSV, VsanPerfMetricId.
    VMware KB 2144493, vSAN performance graphs (labels and units). vSAN performance dashboards of HCIBench.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.json_documents import NUMBER_MAX, json_array, json_documents
from leadline.formats.samples import Samples, iso_ns

_US, _RATE, _BYTES, _COUNT = "us", "per_s", "bytes_per_s", "count"
_CONGESTIONS = ("ssd", "log", "mem", "slab", "comp", "iops")


def _of(types: tuple[str, ...], labels: dict[str, Field]) -> dict[str, Field]:
    return {f"{kind}.{label}": field for kind in types for label, field in labels.items()}


_CLIENT = {
    "latencyAvgRead": Field("vsan_client_latency_us_read", _US),
    "latencyAvgWrite": Field("vsan_client_latency_us_write", _US),
    "latencyStddev": Field("vsan_client_latency_us_stddev", _US),
    "iopsRead": Field("vsan_client_iops", _RATE),
    "iopsWrite": Field("vsan_client_iops", _RATE),
    "throughputRead": Field("vsan_client_bytes_per_s", _BYTES),
    "throughputWrite": Field("vsan_client_bytes_per_s", _BYTES),
    "oio": Field("vsan_client_outstanding_count", _COUNT),
    "congestion": Field("vsan_congestion_count", _COUNT),
    "readCongestion": Field("vsan_congestion_count", _COUNT),
    "writeCongestion": Field("vsan_congestion_count", _COUNT),
    "clientCacheHitRate": Field("vsan_read_cache_hit_pct", "pct"),
}
_BACKEND = {
    "latencyAvgRead": Field("vsan_backend_latency_us_read", _US),
    "latencyAvgWrite": Field("vsan_backend_latency_us_write", _US),
    "iopsResyncRead": Field("vsan_resync_iops", _RATE),
    "iopsRecWrite": Field("vsan_resync_iops", _RATE),
    "latAvgResyncRead": Field("vsan_resync_latency_us", _US),
    "latencyAvgRecWrite": Field("vsan_resync_latency_us", _US),
}
_NET = {
    "rxPacketsLossRate": Field("vsan_net_loss_permille", "permille"),
    "txPacketsLossRate": Field("vsan_net_loss_permille", "permille"),
    "portRxDrops": Field("vsan_net_port_drops_permille", "permille"),
    "portTxDrops": Field("vsan_net_port_drops_permille", "permille"),
    "rxThroughput": Field("vsan_net_bytes_per_s", _BYTES),
    "txThroughput": Field("vsan_net_bytes_per_s", _BYTES),
}
_DISK_RATE = {"iopsDevRead": Field("disk_iops", _RATE), "iopsDevWrite": Field("disk_iops", _RATE)}


def _device(metric: str) -> dict[str, Field]:
    labels = ("latencyDevRead", "latencyDevWrite", "latencyDevDAvg")
    return {label: Field(metric, _US) for label in labels} | _DISK_RATE


_CACHE = _device("vsan_cache_device_latency_us") | {
    "wbFreePct": Field("vsan_write_buffer_free_pct", "pct"),
    "plogTotalTputDrained": Field("vsan_destage_bytes_per_s", _BYTES),
    "rcHitRate": Field("vsan_read_cache_hit_pct", "pct"),
}
_VSCSI = {
    "iopsRead": Field("disk_reads_per_s", _RATE),
    "iopsWrite": Field("disk_writes_per_s", _RATE),
    "throughputRead": Field("disk_read_mib_per_s", _BYTES),
    "throughputWrite": Field("disk_write_mib_per_s", _BYTES),
    "latencyRead": Field("virtual_disk_latency_ms_read", _US),
    "latencyWrite": Field("virtual_disk_latency_ms_write", _US),
}
_WORLDS = ("dom-world-cpu", "lsom-world-cpu", "nic-world-cpu", "cmmds-world-cpu", "rdt-world-cpu", "vsan-cpu")

META = ImporterMeta(
    tool="vSAN performance service",
    marks=('"entityrefid"',),
    layers=(Layer.DATASTORE, Layer.STORAGE_PATH),
    fields={
        **_of(("cluster-domclient", "host-domclient"), _CLIENT),
        **_of(("cluster-domcompmgr", "host-domcompmgr"), _BACKEND),
        **_of(
            ("disk-group",), {f"{k}Congestion": Field("vsan_disk_group_congestion_count", _COUNT) for k in _CONGESTIONS}
        ),
        **_of(("cache-disk",), _CACHE),
        **_of(("capacity-disk",), _device("vsan_capacity_device_latency_us")),
        **_of(("vsan-esa-disk-scsifw", "vsan-esa-disk-layer"), _device("vsan_esa_device_latency_us")),
        **_of(("vsan-host-net", "vsan-vnic-net", "vsan-pnic-net"), _NET),
        "vsan-host-net.tcpTxRexmitRate": Field("vsan_net_retransmit_permille", "permille"),
        "vsan-vnic-net.tcpTxRexmitRate": Field("vsan_net_retransmit_permille", "permille"),
        "vsan-host-net.tcpRxErrRate": Field("vsan_net_retransmit_permille", "permille"),
        "vsan-pnic-net.pauseCount": Field("vsan_net_pause_permille", "permille"),
        **_of(("rdt-network-latency",), {"avgLatency": Field("vsan_net_rdt_latency_us", _US)}),
        **_of(_WORLDS, {"readyPct": Field("vsan_kernel_ready_pct", "pct")}),
        **_of(("host-memory-heap",), {"heapUtil": Field("vsan_memory_heap_pct", "pct")}),
        **_of(("host-memory-slab",), {"slabUtil": Field("vsan_memory_heap_pct", "pct")}),
        "host-cpu.pcpuUsedPct": Field("host_cpu_used_pct", "pct"),
        "host-cpu.pcpuUtilPct": Field("host_cpu_util_pct", "pct"),
        "host-cpu.coreUtilPct": Field("host_cpu_core_util_pct", "pct"),
        "system-mem.pctMemUsed": Field("host_memory_used_pct", "pct"),
        **_of(("vscsi",), _VSCSI),
        "virtual-disk.NIOPS": Field("virtual_disk_normalised_iops", _RATE),
        "virtual-disk.NIOPSDelayed": Field("virtual_disk_delayed_iops", _RATE),
    },
    record="VsanPerfQueryPerf of the vSAN Management API, saved as JSON",
)
SUMS = frozenset(
    {"vsan_client_iops", "vsan_client_bytes_per_s", "vsan_resync_iops", "vsan_net_bytes_per_s", "disk_iops"}
)
_LOG = Field("vsan_disk_group_congestion_count_log", _COUNT)  # beside the highest of all kinds

_MARK = re.compile(r'"entityRefId"\s*:\s*"[\w.-]{3,60}:', re.IGNORECASE)
_SERIES = re.compile(r'"(?:sampleInfo|metricId)"\s*:', re.IGNORECASE)
_KINDS = {"cluster": EntityKind.CLUSTER, "disk-group": EntityKind.DISK_GROUP, "cache-disk": EntityKind.DISK_GROUP}
_DEVICES = re.compile(r"capacity-disk|vsan-esa-disk-.*")
_VM_PARTS = {"vscsi", "virtual-disk"}


def sniff(source: Source) -> int:
    """Sure by the API's keys in JSON."""
    text = source.head_text
    if text.lstrip("\ufeff \t\r\n")[:1] not in ("{", "["):
        return 0
    return 95 if _MARK.search(text) and _SERIES.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of what is asked for, of every entity in the file.

    Raises:
        InputError: it is not JSON, holds no entity of the service, or times and values do not fit together.
    """
    builder = CaptureBuilder(source.name, "vsan-performance", META.tool)
    samples = Samples(SUMS)
    count = 0
    for record in _entities(_documents(source, builder)):
        count += 1
        _add(record, f"{source.name}: entity {count}", request, samples)
    if not count:
        raise InputError(
            source.name,
            found="no entity with samples",
            expected="VsanPerfEntityMetricCSV with entityRefId, sampleInfo and value",
            advice="Save what VsanPerfQueryPerf returns as JSON.",
        )
    samples.into(builder)
    return builder.build()


def _documents(source: Source, builder: CaptureBuilder) -> list[Any]:
    text = source.text().lstrip("\ufeff \t\r\n")
    if text.startswith("["):
        elements, cut = json_array(text, source.name)
    else:
        documents = json_documents(text, source.name)
        elements, cut = documents.documents, documents.cut
    if cut:
        builder.warn("cut", "the file ends inside of an entity, which was left out")
    return [document.value for document in elements]


def _get(record: dict[str, Any], key: str) -> Any:  # noqa: ANN401 - whatever JSON holds
    return record.get(key, record.get(key[0].upper() + key[1:]))


def _entities(values: Any) -> Iterator[dict[str, Any]]:  # noqa: ANN401
    for value in values if isinstance(values, list) else [values]:
        if isinstance(value, dict) and isinstance(_get(value, "entityRefId"), str):
            yield value
        elif isinstance(value, dict) and isinstance(_get(value, "returnval"), list):
            yield from (e for e in _get(value, "returnval") if isinstance(e, dict) and _get(e, "entityRefId"))


def _parts(value: Any) -> list[str]:  # noqa: ANN401 - a comma-joined text or a list
    if isinstance(value, list):
        return [str(item) for item in value]
    return value.split(",") if isinstance(value, str) and value else []


def _add(record: dict[str, Any], where: str, request: Request, samples: Samples) -> None:
    kind, _, uuid = str(_get(record, "entityRefId")).partition(":")
    stamps = _parts(_get(record, "sampleInfo"))
    times = [iso_ns(stamp) for stamp in stamps]
    if None in times:
        raise _mismatch(where, f"the time {stamps[times.index(None)][:30]!r}", "a time like 2026-11-20 08:30:00")
    entity = _entity(kind, uuid)
    listed = _get(record, "value")
    for series in listed if isinstance(listed, list) else []:
        identity = _get(series, "metricId") if isinstance(series, dict) else None
        label = _get(identity, "label") if isinstance(identity, dict) else None
        if not isinstance(label, str) or not label:
            continue
        known = META.fields.get(f"{kind}.{label}")
        metric = f"raw.vsan.{kind}.{label}" if known is None else known.metric
        if not request.wants(metric) and not (label == "logCongestion" and request.wants(_LOG.metric)):
            continue
        values = [_number(text) for text in _parts(_get(series, "values"))]
        if len(values) != len(times):
            raise _mismatch(f"{where}, {label}", f"{len(values)} values", f"{len(times)}, one for each time")
        scale = 1.0 if known is None else factor(known.unit, metric_of(metric).unit)
        # Worlds and network cards of one host are parts as labels are.
        samples.extend(
            metric, entity, (t for t in times if t is not None), (v * scale for v in values), f"{uuid} {label}"
        )
        if f"{kind}.{label}" == "disk-group.logCongestion":
            samples.extend(_LOG.metric, entity, (t for t in times if t is not None), values)


def _entity(kind: str, uuid: str) -> Entity:
    name = uuid.partition("|")[0]
    if kind in _VM_PARTS:
        owner, _, disk = re.sub(r"[|/]", "\0", uuid, count=1).partition("\0")
        vm = Entity(EntityKind.VM, owner)
        return Entity(EntityKind.VIRTUAL_DISK, disk, vm) if disk else vm
    if _DEVICES.fullmatch(kind):
        return Entity(EntityKind.DEVICE, name)
    if kind == "virtual-machine":
        return Entity(EntityKind.VM, name)
    return Entity(_KINDS.get(kind) or _KINDS.get(kind.partition("-")[0]) or EntityKind.HOST, name)


def _number(text: str) -> float:
    """A value; NaN for what is none, which is how a missing sample is written."""
    try:
        value = float(text)
    except ValueError:
        return math.nan
    return value if abs(value) < NUMBER_MAX else math.nan


def _mismatch(where: str, problem: str, expected: str) -> InputError:
    return InputError(where, found=problem, expected=expected, advice="Query it again and save the answer unchanged.")
