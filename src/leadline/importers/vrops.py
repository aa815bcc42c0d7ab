"""vROps (Aria Operations): statistics and properties of VMs and hosts, of its REST API or written by vrops-export.

Reads:
    JSON of ``GET /api/resources/stats`` and ``POST .../stats/query`` (``values``, or one of them), and of
    ``GET /api/resources/ID/properties``. JSON (compact, elastic, chatty) and CSV of vrops-export.

Sample:
    .. code-block:: json

        {"values": [{"resourceId": "60508ea6-287b-42be-953c-1554e506cdc1", "stat-list": {"stat": [
          {"timestamps": [1795163400000, 1795163700000],
           "statKey": {"key": "virtualDisk:scsi0:1|totalReadLatency_average"}, "data": [0.6, 14.8]}]}}]}

Lost:
    Names: statistics know a resource by its id only. The properties of the same resource, or ``vrops_id`` in an
    inventory, tell its name. Whether it is a VM or a host is told from its counters; a resource of another kind is left
    out. ``Aggregate of all instances`` and counters without a canonical metric are kept as ``raw.vrops.KEY`` when
    everything is asked for. vrops-export prints the names of its definition file: those of its samples are known, and
    all keys with ``allMetrics``. Sums per 20 s, which vROps averages over its interval.

Units:
    Percentages are per cent. ``cpu|readyPct`` and ``costopPct`` are averages of the vCPUs. Sizes are KiB, throughputs
    KiB per second, latencies ms. Times are UTC milliseconds; vrops-export prints the local time of where it ran. A
    sample is the average of five minutes that end there.

Sources:
    VMware Aria Operations, metric definitions (virtual machine, host system); REST API: resource statistics.
    vrops-export, recorded answers of the API, its samples and docs/json.md.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import Any

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.json_documents import NUMBER_MAX
from leadline.formats.samples import Samples, epoch_ns
from leadline.formats.stamps import StampReader
from leadline.formats.vcenter.counters import CounterSamples
from leadline.importers._vrops.exported import KEYS, Exported, is_exported, of_document, of_rows, runs_of

META = ImporterMeta(
    tool="vROps REST",
    marks=('"stat-list"', '"statkey"', '"property"', '"resourcename"', "resname"),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH),
    fields={
        "vm:cpu|readyPct": Field("cpu_ready_pct", "pct"),
        "vm:cpu|costopPct": Field("cpu_costop_pct", "pct"),
        "vm:cpu|capacity_contentionPct": Field("cpu_latency_pct", "pct"),
        "vm:mem|host_contentionPct": Field("memory_latency_pct", "pct"),
        "host:mem|host_usagePct": Field("host_memory_used_pct", "pct"),
    },
    record="curl -s -H 'Accept: application/json' 'https://VROPS/suite-api/api/resources/stats?resourceId=ID' > s.json",
)

_STATS = re.compile(r'"stat-list"\s*:|"statKey"\s*:\s*\{\s*"key"')
_EXPORTED = re.compile(r'\{\s*"data"\s*:\s*\[\s*\{\s*"(?:resourceName|t)"\s*:')
_EXPORTED_ROWS = re.compile(r"timestamp,resName,[^\n]{1,4000}")
_PROPERTIES = re.compile(r'"property"\s*:\s*\[\s*\{\s*"name"\s*:\s*"[^"]*\|')
_VM_KEY = re.compile(r"(?:virtualDisk|guestfilesystem|guest)[|:]")
_HOST_KEY = re.compile(r"storageAdapter[|:]|cpu\|vcpus_allocated_on_all_|mem\|host_usable$")
_COUNTER = re.compile(r"(\w+)(?::([^|]+))?\|(\w+)_(average|latest)")
_AGGREGATE = "Aggregate of all instances"
_HARDWARE = re.compile(r"vmx-0*([0-9]{1,3})")

# Properties that are settings: the setting, and what to multiply the number by; 0 is for text.
_VM_SETTINGS: dict[str, tuple[str, float]] = {
    "config|hardware|numCpu": ("vcpu_count", 1),
    "config|hardware|numSockets": ("socket_count", 1),
    "config|hardware|numCoresPerSocket": ("cores_per_socket", 1),
    "config|hardware|memoryKB": ("memory_mib", 1 / 1024),
    "config|cpuAllocation|limit": ("cpu_limit_mhz", 1),
    "config|cpuAllocation|reservation": ("cpu_reservation_mhz", 1),
    "config|cpuAllocation|shares|shares": ("cpu_shares", 1),
    "config|memoryAllocation|shares|shares": ("memory_shares", 1),
    "config|guestFullName": ("guest_os", 0),
    "summary|guest|toolsVersion": ("tools_version", 0),
}
_FLAGS = {
    "config|extraConfig|mem_hotadd": "memory_hot_add",
    "config|extraConfig|vcpu_hotadd": "cpu_hot_add",
    "summary|config|isTemplate": "template",
}
_COUNTS = frozenset({"vcpu_count", "socket_count", "cores_per_socket"})


def sniff(source: Source) -> int:
    """Sure by the keys of the API's answers in JSON."""
    text = source.head_uncut.lstrip("\ufeff \t\r\n")
    if text[:1] != "{":
        return 90 if _EXPORTED_ROWS.match(text) else 0
    if _EXPORTED.match(text) and '"resourceName"' in text:
        return 90
    if _STATS.search(text) and '"timestamps"' in text:
        return 92
    return 85 if _PROPERTIES.search(text) and '"resourceId"' in text else 0


def read(source: Source, request: Request) -> Capture:
    """Series of statistics, or settings of a VM's properties.

    Raises:
        InputError: it is not whole JSON or no answer of the API, or times and values do not fit together.
    """
    builder = CaptureBuilder(source.name, "vrops", META.tool)
    text = source.text().lstrip("\ufeff")
    if _EXPORTED_ROWS.match(text.lstrip()):
        return _exported(list(of_rows(text.lstrip())), source, request, builder)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _bad(
            f"{source.name}:{getattr(error, 'lineno', 1)}", f"JSON that breaks ({str(error)[:80]})", "a whole document"
        ) from error
    answer = document if isinstance(document, dict) else {}
    if is_exported(answer):
        return _exported(list(of_document(answer)), source, request, builder)
    resources = answer.get("values") if isinstance(answer.get("values"), list) else [answer]
    counters, samples = CounterSamples("vrops", request), Samples()
    has_content = False
    for resource in resources or []:
        stats = _map(_map(resource).get("stat-list")).get("stat")
        if isinstance(stats, list):
            has_content = True
            _add_stats(_map(resource), source.name, builder, counters, samples)
    if isinstance(answer.get("property"), list):
        has_content = True
        _add_properties(answer, builder)
    if not has_content:
        raise _bad(source.name, "no statistics and no properties", "values with a stat-list, or a list of property")
    samples.into(builder)
    counters.into(builder)
    return builder.build()


def _map(value: Any) -> dict[str, Any]:  # noqa: ANN401 - whatever JSON holds
    return value if isinstance(value, dict) else {}


def _runs(stats: list[Any], where: str) -> Iterator[tuple[str, list[int], list[float]]]:
    """Keys with times in UTC nanoseconds and values."""
    for stat in stats:
        key = _map(_map(stat).get("statKey")).get("key")
        if not isinstance(key, str) or not key:
            continue
        stamps, data = _map(stat).get("timestamps"), _map(stat).get("data")
        if not isinstance(stamps, list) or not isinstance(data, list) or len(stamps) != len(data):
            raise _bad(f"{where}, {key[:60]}", "times and values that do not fit together", "one value for each time")
        times = [epoch_ns(_number(stamp), 1_000_000) for stamp in stamps]  # NaN is no time either
        if None in times:
            raise _bad(
                f"{where}, {key[:60]}", f"the time {stamps[times.index(None)]!r}"[:60], "milliseconds since 1970"
            )
        yield key, [t for t in times if t is not None], [_number(v) for v in data]


def _number(value: Any) -> float:  # noqa: ANN401
    if isinstance(value, bool) or not isinstance(value, int | float) or not abs(value) < NUMBER_MAX:
        return math.nan
    return float(value)


def _exported(values: list[Exported], source: Source, request: Request, builder: CaptureBuilder) -> Capture:
    """Series of what vrops-export wrote."""
    if not values:
        raise _bad(source.name, "no value of a resource", "a time, a resource and numbers")
    moments = list(dict.fromkeys(one.moment for one in values))
    times_ns = StampReader.of(moments, (), source, request, builder).times_ns(moments, None).tolist()
    counters, samples = CounterSamples("vrops", request), Samples()
    for resource, by_key in runs_of(values, dict(zip(moments, times_ns, strict=True))).items():
        kind = _kind(list(by_key)) or (EntityKind.VM if not by_key.keys().isdisjoint(KEYS.values()) else None)
        if kind is None:
            builder.warn("kind", "statistics of what is neither a VM nor a host were left out")
            continue
        _put([(key, *run) for key, run in by_key.items()], Entity(kind, resource), counters, samples)
    samples.into(builder)
    counters.into(builder)
    return builder.build()


def _add_stats(
    resource: dict[str, Any], name: str, builder: CaptureBuilder, counters: CounterSamples, samples: Samples
) -> None:
    resource_id = resource.get("resourceId")
    label = resource_id if isinstance(resource_id, str) and resource_id else "resource"
    runs = list(_runs(resource["stat-list"]["stat"], f"{name}: {label}"))
    kind = _kind([key for key, _, _ in runs])
    if kind is None:
        builder.warn("kind", "statistics of what is neither a VM nor a host were left out")
        return
    _put(runs, Entity(kind, label), counters, samples)


def _put(
    runs: list[tuple[str, list[int], list[float]]], owner: Entity, counters: CounterSamples, samples: Samples
) -> None:
    """Add the statistics of one resource, those that are asked for."""
    request = counters.request
    for key, times, values in runs:
        known = META.fields.get(f"{owner.kind.value}:{key}")
        counter = _COUNTER.fullmatch(key)
        if known is not None:
            if request.wants(known.metric):
                samples.extend(known.metric, owner, times, values)
        elif counter is not None and counter[2] != _AGGREGATE:
            for time_ns, value in zip(times, values, strict=True):
                counters.put(owner, f"{counter[1]}.{counter[3]}.{counter[4]}", counter[2] or "", time_ns, value)
        elif request.metrics is None:
            samples.extend(f"raw.vrops.{key}", owner, times, values)


def _kind(keys: list[str]) -> EntityKind | None:
    if any(_HOST_KEY.match(key) for key in keys):
        return EntityKind.HOST
    return EntityKind.VM if any(_VM_KEY.match(key) for key in keys) else None


def _add_properties(answer: dict[str, Any], builder: CaptureBuilder) -> None:
    """Settings of a VM; properties of other resources hold none."""
    values = {
        str(entry["name"]): str(entry.get("value")) for entry in map(_map, answer["property"]) if entry.get("name")
    }
    if "config|hardware|numCpu" not in values:
        builder.warn("kind", "properties of what is not a VM were left out")
        return
    facts: dict[str, Any] = {}
    for name, (setting, scale) in _VM_SETTINGS.items():
        text = values.get(name, "")
        if not scale:
            facts[setting] = text or None
            continue
        try:
            number = float(text) * scale
        except ValueError:
            continue
        if 0 <= number < 1e15 and (setting not in _COUNTS or number.is_integer()):
            facts[setting] = int(number) if setting in _COUNTS else number
    for name, setting in _FLAGS.items():
        facts[setting] = {"true": True, "false": False}.get(values.get(name, "").casefold())
    version = _HARDWARE.fullmatch(values.get("config|version", ""))
    facts["hardware_version"] = None if version is None else int(version[1])
    resource_id = answer.get("resourceId")
    facts["vrops_id"] = resource_id if isinstance(resource_id, str) and resource_id else None
    vm = Entity(EntityKind.VM, values.get("config|name") or str(resource_id))
    builder.inventory.add(vm, builder.info.name, **facts)
    guest = values.get("summary|guest|hostName")
    if guest:
        builder.inventory.links[Entity(EntityKind.GUEST, guest)] = vm


def _bad(where: str, problem: str, expected: str) -> InputError:
    return InputError(where, found=problem, expected=expected, advice="Query it again and save the answer unchanged.")
