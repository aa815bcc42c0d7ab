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
from leadline.formats.vcenter.vsan_labels import SUMS, VSAN_LABELS

META = ImporterMeta(
    tool="vSAN performance service",
    marks=('"entityrefid"',),
    layers=(Layer.DATASTORE, Layer.STORAGE_PATH),
    fields=VSAN_LABELS,
    record="VsanPerfQueryPerf of the vSAN Management API, saved as JSON",
)
_LOG = Field("vsan_disk_group_congestion_count_log", "count")  # beside the highest of all kinds

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
