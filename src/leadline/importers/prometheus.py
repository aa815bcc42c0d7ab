"""Prometheus text: one scrape of vmware_exporter, node_exporter or Telegraf's vSphere input.

Reads:
    The text exposition format (and OpenMetrics), saved with curl: ``vmware_*`` families of VMs, hosts and datastores,
    ``vsphere_*`` families as Telegraf's Prometheus output names them, and those ``node_*`` families that say what is
    now, not what was counted since boot.

Sample:
    .. code-block:: text

        # TYPE vmware_vm_cpu_ready_summation gauge
        vmware_vm_cpu_ready_summation{cluster_name="",host_name="esx01",vm_name="db01"} 110.0
        node_memory_MemAvailable_bytes 8.589934592e+09 1795163400000

Lost:
    Counters since boot (``node_disk_reads_completed_total``): a rate needs two scrapes, which a saved scrape does not
    hold. Families of other exporters. vmware_exporter's counters of a whole machine that no metric has (network cards,
    disks) are kept as ``raw.prometheus.COUNTER`` when everything is asked for.

Units:
    vmware_exporter passes the API's values on: hundredths of a per cent, KiB, milliseconds of 20 s; memory of machines
    is MiB, sizes of datastores bytes. A timestamp is in milliseconds (OpenMetrics: seconds); without one a sample is of
    the moment the file was last written.

Sources:
    Prometheus documentation, exposition formats. OpenMetrics 1.0. pryorda/vmware_exporter, README. node_exporter,
    collectors.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.samples import NS_PER_S, Samples, epoch_ns
from leadline.formats.vcenter.counters import REALTIME_S, CounterSamples, counters_of

META = ImporterMeta(
    tool="Prometheus text",
    marks=("vmware_", "vsphere_", "node_"),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.GUEST),
    fields={
        "node_load1": Field("guest_load_1m", "count"),
        "node_load5": Field("guest_load_5m", "count"),
        "node_load15": Field("guest_load_15m", "count"),
        "node_procs_running": Field("guest_run_queue_count", "count"),
        "node_procs_blocked": Field("guest_blocked_count", "count"),
        "node_memory_MemFree_bytes": Field("guest_memory_free_mib", "bytes"),
        "node_memory_MemAvailable_bytes": Field("guest_memory_available_mib", "bytes"),
        "node_memory_Cached_bytes": Field("guest_memory_cached_mib", "bytes"),
        "node_memory_Buffers_bytes": Field("guest_memory_buffers_mib", "bytes"),
        "node_memory_Active_bytes": Field("guest_memory_active_mib", "bytes"),
        "node_memory_Inactive_bytes": Field("guest_memory_inactive_mib", "bytes"),
        "node_memory_Dirty_bytes": Field("guest_memory_dirty_mib", "bytes"),
    },
    record="curl -s http://EXPORTER:9272/metrics > scrape.txt",
)

_MARK = re.compile(
    r"^(?:v(?:mware|sphere)_(?:vm|host|datastore)_\w+\{"
    r"|node_\w+(?:\{[^\n]*\})? [-+]?[0-9.]+(?:e[-+]?[0-9]+)?(?: [0-9.]+)?$)",
    re.MULTILINE,
)
_LINE = re.compile(r"([a-zA-Z_:][\w:]*)\s*(\{.*\})?\s+(\S+)(?:\s+(-?[0-9.]+))?(?:\s+#.*)?")
_LABEL = re.compile(r'\s*([a-zA-Z_]\w*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')
_ESCAPE = re.compile(r"\\(.)")
_COUNTER = re.compile(
    r"(vmware|vsphere)_(?:vm|host|datastore)_([A-Za-z]+)_(\w+)_(summation|average|latest|maximum|minimum)"
)
_INSTANCES = ("cpu", "disk", "interface", "lun", "adapter", "path")  # Telegraf's labels for parts
_TOTALS = frozenset({"instance-total", "*"})
_BYTES_PER_GIB = 2**30

# Families that are settings of a VM, host or datastore: the setting, and what to multiply the value by.
_VALUES: dict[str, tuple[str, float]] = {
    "vmware_vm_num_cpu": ("vcpu_count", 1),
    "vmware_vm_memory_max": ("memory_mib", 1),
    "vmware_vm_snapshots": ("snapshot_count", 1),
    "vmware_host_num_cpu": ("core_count", 1),
    "vmware_host_memory_max": ("memory_mib", 1),
    "vmware_datastore_capacity_size": ("capacity_gib", 1 / _BYTES_PER_GIB),
    "vmware_datastore_freespace_size": ("free_gib", 1 / _BYTES_PER_GIB),
    "vmware_datastore_provisoned_size": ("provisioned_gib", 1 / _BYTES_PER_GIB),
    "vmware_datastore_hosts": ("host_count", 1),
}
_FLAGS = {
    "vmware_vm_template": "template",
    "vmware_host_maintenance_mode": "maintenance_mode",
    "vmware_datastore_accessible": "accessible",
}
# Families whose value is 1 and whose labels are the settings: label -> setting.
_LABELS: dict[str, dict[str, str]] = {
    "vmware_vm_guest_tools_version": {"tools_version": "tools_version"},
    "vmware_vm_guest_tools_version_status": {"tools_version_status": "tools_version_status"},
    "vmware_host_product_info": {"version": "version"},
    "vmware_host_hardware_info": {"hardware_model": "model", "hardware_cpu_model": "cpu_model"},
    "vmware_datastore_type": {"ds_type": "type"},
}
_COUNTS = frozenset({"vcpu_count", "snapshot_count", "core_count", "host_count"})
_UNKNOWN_TOOLS = "2147483647"  # what the API says where no tools are installed


@dataclass(frozen=True, slots=True)
class _Sample:
    name: str
    labels: dict[str, str]
    value: float
    time_ns: int | None


def sniff(source: Source) -> int:
    """Sure by families of the exporters it knows."""
    return 90 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """One sample of each series, and the settings the families hold.

    Raises:
        InputError: a line is neither a comment nor a sample, or no family is known.
    """
    builder = CaptureBuilder(source.name, "prometheus", META.tool)
    samples = list(_samples(source, request, builder))
    timed = all(sample.time_ns is not None for sample in samples)
    if samples and not timed:
        builder.warn("no-times", "samples have no time; they were taken to be of when the file was last written")
    counters = CounterSamples("prometheus", request, percent_scale=0.01)
    guest = _guest(samples)
    nodes = Samples()
    unknown = 0
    ages: dict[Entity, dict[str, float]] = {}
    for sample in samples:
        time_ns = source.mtime_ns if sample.time_ns is None else sample.time_ns
        owner = _owner(sample)
        field = META.fields.get(sample.name)
        if field is not None:
            if request.wants(field.metric):
                value = sample.value * factor(field.unit, metric_of(field.metric).unit)
                nodes.put(field.metric, guest, time_ns, value)
        elif owner is None:
            unknown += not sample.name.startswith("node_")
        elif (counter := _COUNTER.fullmatch(sample.name)) is not None:
            _add_counter(owner, sample, counter, time_ns, counters)
        elif sample.name == "vmware_vm_snapshot_timestamp_seconds":
            _add_age(ages.setdefault(owner, {}), sample, time_ns)
        else:
            _add_facts(owner, sample, builder, counters)
    if not any(name.startswith(("vmware_", "vsphere_", "node_")) for name in {sample.name for sample in samples}):
        raise InputError(
            source.name,
            found="no family of vmware_exporter, Telegraf's vSphere input or node_exporter",
            expected="lines like vmware_vm_cpu_ready_summation{...} 110.0",
            advice="Save the exporter's own /metrics page.",
        )
    if unknown:
        builder.warn("unknown", "samples of other families were left out", unknown)
    for vm, snapshot_ages in ages.items():
        if snapshot_ages:
            oldest = max(snapshot_ages.values())
            builder.inventory.add(vm, source.name, snapshot_ages_days=snapshot_ages, snapshot_age_days=oldest)
    nodes.into(builder)
    _add_guest_facts(guest, samples, builder)
    counters.into(builder)
    return builder.build(clock_known=timed, host=None if guest is UNNAMED_GUEST else guest.name)


def _samples(source: Source, request: Request, builder: CaptureBuilder) -> Iterator[_Sample]:
    text = source.text()
    lines = text.splitlines()
    scale = NS_PER_S if any(line.strip() == "# EOF" for line in lines[-3:]) else 1_000_000  # OpenMetrics: seconds
    for number, line in enumerate(lines, start=1):
        bare = line.strip()
        if not bare or bare.startswith("#"):
            continue
        sample = _parsed(bare, scale)
        if sample is None:
            if number == len(lines) and (request.truncate_last or not text.endswith(("\n", "\r"))):
                builder.warn("cut", "the last line was cut off and left out")
                return
            raise InputError(
                f"{source.name}:{number}",
                found=repr(bare[:60]),
                expected='name{label="text"} number',
                advice="Save the scrape again, for example with curl.",
            )
        yield sample


def _parsed(line: str, scale: int) -> _Sample | None:
    match = _LINE.fullmatch(line)
    if match is None:
        return None
    labels = _labels(match[2][1:-1]) if match[2] else {}
    try:
        value = float(match[3])
        time_ns = None if match[4] is None else epoch_ns(float(match[4]), scale)
    except ValueError:
        return None
    if labels is None or "_" in match[3] or (match[4] is not None and time_ns is None):
        return None
    return _Sample(match[1], labels, value if abs(value) < 1e300 else math.nan, time_ns)


def _labels(text: str) -> dict[str, str] | None:
    labels = {}
    position = 0
    while position < len(text):
        match = _LABEL.match(text, position)
        if match is None:
            return None
        labels[match[1]] = _ESCAPE.sub(lambda part: "\n" if part[1] == "n" else part[1], match[2])
        position = match.end()
    return labels


def _owner(sample: _Sample) -> Entity | None:
    """The VM, host or datastore a sample of vCenter is of."""
    labels = sample.labels
    exporter, _, rest = sample.name.partition("_")
    if exporter not in {"vmware", "vsphere"}:
        return None
    is_telegraf = exporter == "vsphere"
    host_name = labels.get("esxhostname" if is_telegraf else "host_name")
    vm_name = labels.get("vmname" if is_telegraf else "vm_name")
    store_name = labels.get("dsname" if is_telegraf else "ds_name")
    host = Entity(EntityKind.HOST, host_name) if host_name else None
    if rest.startswith("vm_") and vm_name:
        return Entity(EntityKind.VM, vm_name, host)
    if rest.startswith("host_"):
        return host
    if rest.startswith("datastore_") and store_name:
        return Entity(EntityKind.DATASTORE, store_name)
    return None


def _add_counter(
    owner: Entity, sample: _Sample, counter: re.Match[str], time_ns: int, counters: CounterSamples
) -> None:
    name = f"{counter[2]}.{counter[3]}.{counter[4]}"
    run = counters.put(owner, name, _instance(sample), time_ns, sample.value)
    known = counters_of(owner.kind).get(name.casefold())
    run.interval_s = REALTIME_S
    if counter[1] == "vsphere" and known is not None and known.unit == "pct":
        run.unit = "%"  # Telegraf divides the API's hundredths


def _instance(sample: _Sample) -> str:
    """The part of its owner that Telegraf's labels name; "" for the whole."""
    if not sample.name.startswith("vsphere_"):
        return ""
    part = next((sample.labels[name] for name in _INSTANCES if sample.labels.get(name)), "")
    return "" if part in _TOTALS else part


def _add_age(ages: dict[str, float], sample: _Sample, time_ns: int) -> None:
    age = (time_ns / NS_PER_S - sample.value) / 86_400
    if math.isfinite(age):
        ages[sample.labels.get("vm_snapshot_name", "")] = max(age, 0.0)


def _add_facts(owner: Entity, sample: _Sample, builder: CaptureBuilder, counters: CounterSamples) -> None:
    name, value, labels = sample.name, sample.value, sample.labels
    facts: dict[str, Any] = {}
    if not math.isfinite(value):
        return
    if name in _VALUES:
        setting, scale = _VALUES[name]
        if setting not in _COUNTS:
            facts[setting] = value * scale
        elif value.is_integer() and 0 <= value < 1e9:
            facts[setting] = int(value)
    elif name in _FLAGS and value in (0.0, 1.0):
        facts[_FLAGS[name]] = value == 1.0
    elif name == "vmware_vm_power_state" and value in (0.0, 1.0):
        facts["power_state"] = "on" if value else "off"
    elif name == "vmware_vm_guest_tools_running_status":
        facts["tools_running_status"] = {
            "toolsOk": "guestToolsRunning",
            "toolsOld": "guestToolsRunning",
            "toolsNotRunning": "guestToolsNotRunning",
            "toolsNotInstalled": "guestToolsNotRunning",
        }.get(labels.get("tools_status", ""))
    else:
        for label, setting in _LABELS.get(name, {}).items():
            text = labels.get(label)
            facts[setting] = text.casefold() if text and setting == "type" else text or None
        if facts.get("tools_version") == _UNKNOWN_TOOLS:
            facts["tools_version"] = None
    if isinstance(facts.get("vcpu_count"), int) and facts["vcpu_count"] > 0:
        counters.vcpu_counts[owner] = facts["vcpu_count"]
    builder.inventory.add(owner, builder.info.name, **facts)


def _guest(samples: list[_Sample]) -> Entity:
    """The machine node_exporter runs in."""
    names = {s.labels.get("nodename") for s in samples if s.name == "node_uname_info"} - {None, ""}
    return Entity(EntityKind.GUEST, str(names.pop())) if len(names) == 1 else UNNAMED_GUEST


def _add_guest_facts(guest: Entity, samples: list[_Sample], builder: CaptureBuilder) -> None:
    cpus = {s.labels.get("cpu") for s in samples if s.name == "node_cpu_seconds_total"}
    total = next((s.value for s in samples if s.name == "node_memory_MemTotal_bytes"), math.nan)
    if cpus or math.isfinite(total):
        memory = total / 2**20 if math.isfinite(total) else None
        builder.inventory.add(guest, builder.info.name, cpu_count=len(cpus) or None, memory_mib=memory)
