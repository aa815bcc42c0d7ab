"""vCenter's performance counters, which many exporters pass on under names of their own, as metrics.

A counter is ``group.name.rollup``. It is kept per entity and instance (a vCPU, disk, device, network card; none for the
whole). Times in milliseconds of an interval become shares of it; counts become rates.

Source: vSphere Web Services API reference, PerformanceManager (counters, units, rollups, instances). VMware KB 2002181:
ready per cent = summation / (interval x 1000) x 100, per vCPU.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import CaptureBuilder, usual_interval_s
from leadline.core.model.entities import Entity
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import UNITS as UNIT_DIMENSIONS
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.samples import Samples

if TYPE_CHECKING:
    from numpy.typing import NDArray

REALTIME_S = 20.0  # the interval of real-time counters
_VM, _HOST, _STORE = EntityKind.VM, EntityKind.HOST, EntityKind.DATASTORE


@dataclass(frozen=True, slots=True)
class Counter:
    """What a counter becomes.

    Attributes:
        metric: the canonical metric.
        unit: the unit the counter has where the export names none; ``interval`` for milliseconds of an interval,
            ``each`` for a count in an interval.
        part: what the instance is part of the entity as; None: the counter is of the entity itself.
    """

    metric: str
    unit: str
    part: EntityKind | None = None


_TIMES = {
    "ready": "cpu_ready_pct",
    "costop": "cpu_costop_pct",
    "run": "cpu_run_pct",
    "system": "cpu_system_pct",
    "wait": "cpu_wait_pct",
    "idle": "cpu_idle_pct",
    "overlap": "cpu_overlap_pct",
    "maxlimited": "cpu_max_limited_pct",
    "swapwait": "cpu_swap_wait_pct",
}
_MEMORY = {
    "granted": "memory_granted_mib",
    "consumed": "memory_consumed_mib",
    "active": "memory_touched_mib",
    "vmmemctl": "memory_balloon_mib",
    "vmmemctltarget": "memory_balloon_target_mib",
    "swapped": "memory_swapped_mib",
    "swaptarget": "memory_swap_target_mib",
    "compressed": "memory_compressed_mib",
    "overhead": "memory_overhead_mib",
}
_MEMORY_RATES = {
    "swapinrate": "memory_swap_read_mib_per_s",
    "swapoutrate": "memory_swap_write_mib_per_s",
    "compressionrate": "memory_zip_mib_per_s",
    "decompressionrate": "memory_unzip_mib_per_s",
}
_HOST_MEMORY = {
    "vmmemctl": "host_memory_balloon_mib",
    "swapused": "host_memory_swapped_mib",
    "compressed": "host_memory_compressed_mib",
    "shared": "host_memory_shared_mib",
    "sysusage": "host_memory_kernel_mib",
}
_LATENCIES = {"device": "device", "kernel": "kernel", "total": "guest", "queue": "queue"}
_DISK = EntityKind.VIRTUAL_DISK
_NIC_COUNTERS = {
    "net.received.average": Counter("net_rx_mbit_per_s", "kib_per_s", EntityKind.NIC),
    "net.transmitted.average": Counter("net_tx_mbit_per_s", "kib_per_s", EntityKind.NIC),
    "net.packetsrx.summation": Counter("net_rx_packets_per_s", "each", EntityKind.NIC),
    "net.packetstx.summation": Counter("net_tx_packets_per_s", "each", EntityKind.NIC),
    "net.droppedrx.summation": Counter("net_rx_dropped_per_s", "each", EntityKind.NIC),
    "net.droppedtx.summation": Counter("net_tx_dropped_per_s", "each", EntityKind.NIC),
    "net.errorsrx.summation": Counter("net_rx_errors_per_s", "each", EntityKind.NIC),
    "net.errorstx.summation": Counter("net_tx_errors_per_s", "each", EntityKind.NIC),
}
# Time that the hypervisor's commands take through an adapter or a path: kernel and device.
_LAST_MILE = {
    "totalreadlatency": ("disk_guest_latency_ms_read", "ms"),
    "totalwritelatency": ("disk_guest_latency_ms_write", "ms"),
    "numberreadaveraged": ("disk_reads_per_s", "per_s"),
    "numberwriteaveraged": ("disk_writes_per_s", "per_s"),
    "commandsaveraged": ("disk_iops", "per_s"),
}
_STORE_COUNTERS = {
    "datastore.totalreadlatency.average": Counter("datastore_latency_ms", "ms", _STORE),
    "datastore.totalwritelatency.average": Counter("datastore_latency_ms", "ms", _STORE),
    "datastore.numberreadaveraged.average": Counter("datastore_iops", "per_s", _STORE),
    "datastore.numberwriteaveraged.average": Counter("datastore_iops", "per_s", _STORE),
}
VM_COUNTERS: dict[str, Counter] = {
    **{f"cpu.{name}.summation": Counter(metric, "interval", EntityKind.VCPU) for name, metric in _TIMES.items()},
    "cpu.usage.average": Counter("cpu_used_pct", "pct", EntityKind.VCPU),
    "cpu.latency.average": Counter("cpu_latency_pct", "pct"),
    **{f"mem.{name}.average": Counter(metric, "kib") for name, metric in _MEMORY.items()},
    **{f"mem.{name}.average": Counter(metric, "kib_per_s") for name, metric in _MEMORY_RATES.items()},
    "mem.latency.average": Counter("memory_latency_pct", "pct"),
    "mem.usage.average": Counter("memory_active_pct", "pct"),
    "virtualdisk.numberreadaveraged.average": Counter("disk_reads_per_s", "per_s", _DISK),
    "virtualdisk.numberwriteaveraged.average": Counter("disk_writes_per_s", "per_s", _DISK),
    "virtualdisk.read.average": Counter("disk_read_mib_per_s", "kib_per_s", _DISK),
    "virtualdisk.write.average": Counter("disk_write_mib_per_s", "kib_per_s", _DISK),
    "virtualdisk.totalreadlatency.average": Counter("virtual_disk_latency_ms_read", "ms", _DISK),
    "virtualdisk.totalwritelatency.average": Counter("virtual_disk_latency_ms_write", "ms", _DISK),
    "virtualdisk.readlatencyus.latest": Counter("virtual_disk_latency_ms_read", "us", _DISK),
    "virtualdisk.writelatencyus.latest": Counter("virtual_disk_latency_ms_write", "us", _DISK),
    "virtualdisk.readoio.latest": Counter("virtual_disk_outstanding_count", "count", _DISK),
    "virtualdisk.writeoio.latest": Counter("virtual_disk_outstanding_count", "count", _DISK),
    "disk.maxtotallatency.latest": Counter("disk_latency_ms_max", "ms"),
    **_STORE_COUNTERS,
    **_NIC_COUNTERS,
}
HOST_COUNTERS: dict[str, Counter] = {
    "cpu.usage.average": Counter("host_cpu_used_pct", "pct", EntityKind.PCPU),
    "cpu.utilization.average": Counter("host_cpu_util_pct", "pct", EntityKind.PCPU),
    "cpu.coreutilization.average": Counter("host_cpu_core_util_pct", "pct", EntityKind.PCPU),
    **{f"mem.{name}.average": Counter(metric, "kib") for name, metric in _HOST_MEMORY.items()},
    "mem.swapinrate.average": Counter("host_memory_swap_read_mib_per_s", "kib_per_s"),
    "mem.swapoutrate.average": Counter("host_memory_swap_write_mib_per_s", "kib_per_s"),
    "mem.usage.average": Counter("host_memory_used_pct", "pct"),
    "mem.state.latest": Counter("host_memory_state_count", "count"),
    "power.power.average": Counter("host_power_watt", "watt"),
    "disk.maxtotallatency.latest": Counter("disk_latency_ms_max", "ms"),
    "disk.commandsaveraged.average": Counter("disk_iops", "per_s", EntityKind.DEVICE),
    "disk.numberreadaveraged.average": Counter("disk_reads_per_s", "per_s", EntityKind.DEVICE),
    "disk.numberwriteaveraged.average": Counter("disk_writes_per_s", "per_s", EntityKind.DEVICE),
    "disk.read.average": Counter("disk_read_mib_per_s", "kib_per_s", EntityKind.DEVICE),
    "disk.write.average": Counter("disk_write_mib_per_s", "kib_per_s", EntityKind.DEVICE),
    "disk.commandsaborted.summation": Counter("disk_aborts_per_s", "each", EntityKind.DEVICE),
    "disk.busresets.summation": Counter("disk_resets_per_s", "each", EntityKind.DEVICE),
    "disk.maxqueuedepth.average": Counter("disk_queue_depth_count", "count", EntityKind.DEVICE),
    **{
        f"disk.{name}{way}latency.average": Counter(
            f"disk_{ours}_latency_ms{'_' if way else ''}{way}", "ms", EntityKind.DEVICE
        )
        for name, ours in _LATENCIES.items()
        for way in ("", "read", "write")
    },
    **{
        f"{group}.{name}.average": Counter(metric, unit, part)
        for group, part in (("storageadapter", EntityKind.ADAPTER), ("storagepath", EntityKind.PATH))
        for name, (metric, unit) in _LAST_MILE.items()
    },
    **_STORE_COUNTERS,
    "datastore.siocactivetimepercentage.average": Counter("datastore_sioc_active_pct", "pct", _STORE),
    "gpu.utilization.average": Counter("gpu_util_pct", "pct", EntityKind.ADAPTER),
    "gpu.mem.usage.average": Counter("gpu_memory_used_pct", "pct", EntityKind.ADAPTER),
    **_NIC_COUNTERS,
}
STORE_COUNTERS: dict[str, Counter] = {
    name: Counter(counter.metric, counter.unit) for name, counter in HOST_COUNTERS.items() if counter.part is _STORE
}
SUMS = frozenset({"virtual_disk_outstanding_count", "datastore_iops"})
_FINER = {"virtualdisk.totalreadlatency.average": "virtualdisk.readlatencyus.latest"}
_FINER |= {"virtualdisk.totalwritelatency.average": "virtualdisk.writelatencyus.latest"}

# What the instances of a group of counters are, where a counter has no metric.
_RAW_PARTS = {"virtualdisk": _DISK, "disk": EntityKind.DEVICE, "net": EntityKind.NIC, "datastore": _STORE}
_RAW_PARTS |= {"storagepath": EntityKind.PATH}

# Units as exports name them. The API counts hundredths of a per cent and calls them "percent"; PowerCLI and others
# divide and write "%".
UNITS = {
    "%": ("pct", 1.0),
    "percent": ("pct", 0.01),
    "kb": ("kib", 1.0),
    "kilobytes": ("kib", 1.0),
    "mb": ("mib", 1.0),
    "megabytes": ("mib", 1.0),
    "kbps": ("kib_per_s", 1.0),
    "kilobytespersecond": ("kib_per_s", 1.0),
    "ms": ("ms", 1.0),
    "millisecond": ("ms", 1.0),
    "us": ("us", 1.0),
    "microsecond": ("us", 1.0),
    "watt": ("watt", 1.0),
}


def counters_of(kind: EntityKind) -> dict[str, Counter]:
    """The counters that become metrics of an entity of a kind and its parts, by name in lower case."""
    return {_VM: VM_COUNTERS, _HOST: HOST_COUNTERS, _STORE: STORE_COUNTERS}.get(kind, {})


@dataclass(slots=True)
class _Run:
    times_ns: list[int] = field(default_factory=list)
    values: list[float] = field(default_factory=list)
    unit: str = ""
    interval_s: float = float("nan")


@dataclass(slots=True)
class CounterSamples:
    """Samples of counters, turned into series when all are known.

    Attributes:
        tool: what raw counters are named after.
        request: what is wanted.
        percent_scale: of percentages whose export names no unit: 0.01 where it passes the API's values on.
        vcpu_counts: vCPUs of VMs as far as the export tells.
        all_parts: the export holds every vCPU of a VM, so that those of VMs it does not tell of can be counted.
    """

    tool: str
    request: Request
    percent_scale: float = 1.0
    vcpu_counts: dict[Entity, int] = field(default_factory=dict)
    all_parts: bool = True
    _runs: dict[tuple[Entity, str, str], _Run] = field(default_factory=dict)

    def put(self, owner: Entity, counter: str, instance: str, time_ns: int, value: float) -> _Run:
        """Add a sample of ``group.name.rollup``; the run it is in may be given a unit and an interval."""
        run = self._runs.setdefault((owner, counter, instance), _Run())
        run.times_ns.append(time_ns)
        run.values.append(value)
        return run

    def into(self, builder: CaptureBuilder) -> None:
        """Add every series to a capture; what has no interval where one is needed is left out and said."""
        samples = Samples(SUMS)
        counts = self._vcpus()
        finer = {(owner, name.casefold(), instance) for owner, name, instance in self._runs}
        for (owner, name, instance), run in self._runs.items():
            known = counters_of(owner.kind).get(name.casefold())
            if known is not None and (owner, _FINER.get(name.casefold(), ""), instance) in finer:
                continue
            placed = None if known is None else _place(owner, known, instance)
            if known is None or placed is None:
                self._raw(samples, owner, name, instance, run)
                continue
            values = self._converted(known, run, builder)
            metric = known.metric
            if values is not None and known.unit == "interval" and placed is owner:
                if counts.get(owner):
                    values = values / counts[owner]
                elif metric == "cpu_ready_pct":
                    metric = "cpu_ready_pct_sum"
                else:
                    self._raw(samples, owner, name, instance, run)
                    continue
            if values is not None and self.request.wants(metric):
                samples.extend(metric, placed, run.times_ns, values.tolist(), name)
        samples.into(builder)
        for vm, count in counts.items():
            builder.inventory.add(vm, builder.info.name, guessed=vm not in self.vcpu_counts, vcpu_count=count)

    def _vcpus(self) -> dict[Entity, int]:
        """How many vCPUs VMs have: as told, else how many have counters."""
        if not self.all_parts:
            return self.vcpu_counts
        seen: dict[Entity, set[str]] = {}
        for owner, name, instance in self._runs:
            if owner.kind is _VM and name.casefold().startswith("cpu.") and instance.isdigit():
                seen.setdefault(owner, set()).add(instance)
        return {vm: len(instances) for vm, instances in seen.items()} | self.vcpu_counts

    def _converted(self, known: Counter, run: _Run, builder: CaptureBuilder) -> NDArray[np.float64] | None:
        """Values in the metric's unit, or None where the interval they count in is not known."""
        values = np.array(run.values, dtype=np.float64)
        values[values < 0] = np.nan  # -1 is how the API writes a missing sample
        if known.unit in {"interval", "each"}:
            interval_s = run.interval_s
            if not interval_s > 0:
                interval_s = usual_interval_s(np.unique(np.array(run.times_ns, dtype=np.int64)))
            if not interval_s > 0:
                builder.warn("no-interval", "sums over an interval of unknown length were left out")
                return None
            return values / interval_s if known.unit == "each" else values / (interval_s * 1000.0) * 100.0
        unit, scale = UNITS.get(run.unit.strip().casefold(), (known.unit, 1.0))
        if not run.unit.strip() and known.unit == "pct":
            scale = self.percent_scale
        target = metric_of(known.metric).unit
        if UNIT_DIMENSIONS[unit].dimension != UNIT_DIMENSIONS[target].dimension:
            builder.warn("unit", f"{known.metric} in {run.unit[:20]!r} was left out: not a unit of it")
            return None
        return values * (scale * factor(unit, target))

    def _raw(self, samples: Samples, owner: Entity, name: str, instance: str, run: _Run) -> None:
        metric = f"raw.{self.tool}.{name}"
        if self.request.metrics is None:
            group = name.partition(".")[0].casefold()
            kind = _RAW_PARTS.get(group, EntityKind.ADAPTER)
            if group == "cpu":
                kind = EntityKind.VCPU if owner.kind is _VM else EntityKind.PCPU
            entity = owner if not instance else Entity(kind, instance, owner)
            samples.extend(metric, entity, run.times_ns, run.values)


def _place(owner: Entity, known: Counter, instance: str) -> Entity | None:
    """What a sample is of; None where the catalogue has no such entity for the metric."""
    if not instance:
        whole = owner.kind in metric_of(known.metric).kinds
        return owner if whole else None
    if known.part is None:
        return None
    if known.part in (EntityKind.VCPU, EntityKind.PCPU) and not instance.isdigit():
        return None
    return Entity(known.part, instance, owner)
