r"""esxtop and resxtop batch captures: every VM, vCPU, disk and port of an ESXi host, sampled every few seconds.

Reads:
    The CSV that ``esxtop -b`` writes: a header of up to 60,000 cells ``\\host\Object(Instance)\Counter`` and a row of
    numbers per sample; also re-saved by Excel, cut, or still being written. Only the columns asked for are parsed.

Sample:
    ``"\\esx01\Vcpu(1302698:styx:444774:vmx-vcpu-0:styx)\% Ready"``: group id, VM name, world id, world name. The
    same VM's ``Group Cpu(1302698:styx)`` is the sum over all its worlds, helper worlds included.

Lost:
    Worlds that are not vCPUs, groups that are not VMs, partitions and interrupt vectors, unless every counter is asked
    for; then they are kept as ``raw.esxtop.…``.

Units:
    ``MBytes`` are MiB, ``MBits`` 10^6 bit. ``Group Cpu`` percentages are divided by the VM's vCPU count, which is the
    number of its ``vmx-vcpu-N`` worlds in the header; where the header has none, only the sum of ready time is kept,
    as ``cpu_ready_pct_sum``. -1 and -3 are esxtop's "not available": NaN.

Sources:
    vSphere Resource Management, chapter on performance monitoring utilities (resxtop and esxtop): meaning of columns.
    A real header of 7,632 columns recorded in 2018, and older ones re-saved by a spreadsheet.
"""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.windows.pdh import Changes, Chooser, Chosen, PdhColumns, distinct, is_esxtop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from leadline.formats.windows.pdh import Placer

_WORLD_COUNTERS = {
    "% Used": "cpu_used_pct",
    "% Run": "cpu_run_pct",
    "% System": "cpu_system_pct",
    "% Wait": "cpu_wait_pct",
    "% VmWait": "cpu_vmwait_pct",
    "% Ready": "cpu_ready_pct",
    "% Idle": "cpu_idle_pct",
    "% Overlap": "cpu_overlap_pct",
    "% CoStop": "cpu_costop_pct",
    "% Max Limited": "cpu_max_limited_pct",
    "% Swap Wait": "cpu_swap_wait_pct",
    "% CPU Latency": "cpu_latency_pct",
    "% Demand": "cpu_demand_pct",
}
_HOST_MEMORY = {
    "Memory Overcommit (1 Minute Avg)": Field("host_memory_overcommit_1m", "ratio"),
    "Machine MBytes": Field("host_memory_machine_mib", "mib"),
    "Kernel MBytes": Field("host_memory_kernel_mib", "mib"),
    "Free MBytes": Field("host_memory_free_mib", "mib"),
    "Kernel State": Field("host_memory_state_count", "count"),
    "PShare Shared MBytes": Field("host_memory_shared_mib", "mib"),
    "Swap Used MBytes": Field("host_memory_swapped_mib", "mib"),
    "Swap Target MBytes": Field("host_memory_swap_target_mib", "mib"),
    "Swap MBytes Read/sec": Field("host_memory_swap_read_mib_per_s", "mib_per_s"),
    "Swap MBytes Write/sec": Field("host_memory_swap_write_mib_per_s", "mib_per_s"),
    "Total Compressed MBytes": Field("host_memory_compressed_mib", "mib"),
    "Memctl Current MBytes": Field("host_memory_balloon_mib", "mib"),
}
_VM_MEMORY = {
    "Memory Size MBytes": Field("memory_size_mib", "mib"),
    "Memory Granted Size MBytes": Field("memory_granted_mib", "mib"),
    "Memory Consumed Size MBytes": Field("memory_consumed_mib", "mib"),
    "Touched MBytes": Field("memory_touched_mib", "mib"),
    "% Active Estimate": Field("memory_active_pct", "pct"),
    "Memctl?": Field("memory_balloon_driver_flag", "flag"),
    "Memctl MBytes": Field("memory_balloon_mib", "mib"),
    "Memctl Target MBytes": Field("memory_balloon_target_mib", "mib"),
    "Memctl Max MBytes": Field("memory_balloon_mib_max", "mib"),
    "Swapped MBytes": Field("memory_swapped_mib", "mib"),
    "Swap Target MBytes": Field("memory_swap_target_mib", "mib"),
    "Swap Read MBytes/sec": Field("memory_swap_read_mib_per_s", "mib_per_s"),
    "Swap Written MBytes/sec": Field("memory_swap_write_mib_per_s", "mib_per_s"),
    "Compressed Memory MBytes": Field("memory_compressed_mib", "mib"),
    "Compression MBytes/sec": Field("memory_zip_mib_per_s", "mib_per_s"),
    "Decompression MBytes/sec": Field("memory_unzip_mib_per_s", "mib_per_s"),
    "Overhead MBytes": Field("memory_overhead_mib", "mib"),
    "% Memory Latency": Field("memory_latency_pct", "pct"),
    "Numa % Local": Field("numa_local_pct", "pct"),
    "Numa Rebalance Count Delta": Field("numa_rebalance_count", "count"),
}
_RATES = {
    "Commands/sec": Field("disk_iops", "per_s"),
    "Reads/sec": Field("disk_reads_per_s", "per_s"),
    "Writes/sec": Field("disk_writes_per_s", "per_s"),
    "MBytes Read/sec": Field("disk_read_mib_per_s", "mib_per_s"),
    "MBytes Written/sec": Field("disk_write_mib_per_s", "mib_per_s"),
}
_QUEUES = {
    "Active Commands": Field("disk_active_count", "count"),
    "Queued Commands": Field("disk_queued_count", "count"),
    "Device Q Depth": Field("disk_queue_depth_count", "count"),
    "Adapter Q Depth": Field("disk_adapter_queue_depth_count", "count"),
    "% Used": Field("disk_queue_used_pct", "pct"),
    "Load": Field("disk_queue_load_ratio", "ratio"),
    "Failed Commands/sec": Field("disk_failed_per_s", "per_s"),
    "Aborts/sec": Field("disk_aborts_per_s", "per_s"),
    "Resets/sec": Field("disk_resets_per_s", "per_s"),
    "Conflicts/sec": Field("disk_conflicts_per_s", "per_s"),
}
_LATENCIES = {
    f"Average {name} MilliSec/{per}": Field(f"disk_{metric}_latency_ms{suffix}", "ms")
    for name, metric in (("Driver", "device"), ("Kernel", "kernel"), ("Guest", "guest"), ("Queue", "queue"))
    for per, suffix in (("Command", ""), ("Read", "_read"), ("Write", "_write"))
}
_VIRTUAL_DISK = {
    "Average MilliSec/Read": Field("virtual_disk_latency_ms_read", "ms"),
    "Average MilliSec/Write": Field("virtual_disk_latency_ms_write", "ms"),
}
_PORT = {
    "Packets Transmitted/sec": Field("net_tx_packets_per_s", "per_s"),
    "Packets Received/sec": Field("net_rx_packets_per_s", "per_s"),
    "MBits Transmitted/sec": Field("net_tx_mbit_per_s", "mbit_per_s"),
    "MBits Received/sec": Field("net_rx_mbit_per_s", "mbit_per_s"),
    "% Outbound Packets Dropped": Field("net_tx_dropped_pct", "pct"),
    "% Received Packets Dropped": Field("net_rx_dropped_pct", "pct"),
}
_DISK_OBJECTS = (
    "Physical Disk SCSI Device",
    "Physical Disk Adapter",
    "Physical Disk Path",
    "Physical Disk Per-Device-Per-World",
    "Physical Disk",
)
_BY_OBJECT: dict[str, Mapping[str, Field]] = {
    "Physical Cpu Load": {
        "Cpu Load (1 Minute Avg)": Field("host_cpu_load_1m", "ratio"),
        "Cpu Load (5 Minute Avg)": Field("host_cpu_load_5m", "ratio"),
        "Cpu Load (15 Minute Avg)": Field("host_cpu_load_15m", "ratio"),
    },
    "Physical Cpu": {
        "% Processor Time": Field("host_cpu_used_pct", "pct"),
        "% Util Time": Field("host_cpu_util_pct", "pct"),
        "% Core Util Time": Field("host_cpu_core_util_pct", "pct"),
    },
    "PCPU Power State": {"% of aperf/mperf": Field("host_cpu_aperf_pct", "pct")},
    "Power": {"Power Usage Now Watts": Field("host_power_watt", "watt")},
    "Memory": _HOST_MEMORY,
    "Group Memory": _VM_MEMORY,
    "Group Cpu": {counter: Field(metric, "pct") for counter, metric in _WORLD_COUNTERS.items()},
    "Vcpu": {
        **{counter: Field(metric, "pct") for counter, metric in _WORLD_COUNTERS.items()},
        "Switches/sec": Field("cpu_switches_per_s", "per_s"),
        "Migrates/sec": Field("cpu_migrations_per_s", "per_s"),
        "Quantum Expires/sec": Field("cpu_quantum_expirations_per_s", "per_s"),
    },
    **{name: {**_RATES, **_QUEUES, **_LATENCIES} for name in _DISK_OBJECTS},
    "Physical Disk NFS Volume": {
        **_RATES,
        **{name: _QUEUES[name] for name in ("Active Commands", "Aborts/sec", "Resets/sec")},
        **{name: _LATENCIES[name] for name in ("Average Guest MilliSec/Read", "Average Guest MilliSec/Write")},
        "Average Guest MilliSec/Command": Field("datastore_guest_latency_ms", "ms"),
    },
    "Virtual Disk": {**_RATES, **_VIRTUAL_DISK},
    "Network Port": _PORT,
}
_FIELDS = {(name, counter): field for name, counters in _BY_OBJECT.items() for counter, field in counters.items()}

META = ImporterMeta(
    tool="esxtop",
    marks=("(pdh-csv", "\\\\"),
    layers=(Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH, Layer.NETWORK, Layer.HOST),
    fields={f"{name}\\{counter}": field for (name, counter), field in _FIELDS.items()},
    record="esxtop -b -a -d 5 -n 120 > esxtop.csv",
)

_GROUP = re.compile(r"^(\d+):(.*)$", re.DOTALL)
_VCPU = re.compile(r"^(\d+):(.*):(\d+):vmx-vcpu-(\d+)(?::.*)?$", re.DOTALL)
_VIRTUAL_DISK_NAME = re.compile(r"^(.*):((?:scsi|sata|nvme|ide)\d+:\d+)$", re.DOTALL)
_PORT_NAME = re.compile(r"^(.*?):(\d+):(?:(\d+):)?(.*)$", re.DOTALL)


def sniff(source: Source) -> int:
    """Sure by the PDH signature with an object that only esxtop has."""
    head = source.head_uncut
    if "(PDH-CSV" not in head[:8192] and "\\\\" not in head[:8192]:
        return 0
    return 96 if is_esxtop(head) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture; see the module's docstring for what is kept and how it is normalised."""
    table = PdhColumns(source)
    builder = CaptureBuilder(source.name, "esxtop", META.tool)
    places = _Places(table, builder)
    chooser = Chooser(table, request, "esxtop")
    chosen = chooser.choose(_FIELDS, places.placers(), places.raw)
    chosen = [places.without_unknown_counts(part) for part in chosen]
    groups = table.read(
        [part for part in chosen if part.entities],
        builder,
        sentinels=True,
        request=request,
        changes=lambda part: _per_vcpu(part, builder, request),
    )
    _facts_from_values(groups, builder)
    known = table.file.utc_offset_min is not None
    return builder.build(host=table.hosts[0] if table.hosts else None, clock_known=known)


class _Places:
    """From esxtop's instances to entities: what the header reveals of hosts, VMs, vCPUs and disks."""

    def __init__(self, table: PdhColumns, builder: CaptureBuilder) -> None:
        self.table = table
        self.builder = builder
        self._hosts: dict[str, Entity] = {}
        self._vms: dict[tuple[str, str], Entity] = {}  # by host and group id
        self._vm_names: dict[str, Entity] = {}
        self._find_vms()
        self._count_cpus()

    def placers(self) -> dict[str, Placer]:
        """Placers of the objects with canonical metrics."""
        return {
            "Physical Cpu Load": self._host_itself,
            "Physical Cpu": self._pcpu,
            "PCPU Power State": lambda name, host: self._pcpu((name or "").removeprefix("PCPU "), host),
            "Power": self._host_itself,
            "Memory": self._host_itself,
            "Group Memory": self._vm,
            "Group Cpu": self._vm,
            "Vcpu": self._vcpu,
            "Physical Disk SCSI Device": self._part(EntityKind.DEVICE),
            "Physical Disk Adapter": self._part(EntityKind.ADAPTER),
            "Physical Disk Path": self._part(EntityKind.PATH),
            "Physical Disk Per-Device-Per-World": self._part(EntityKind.WORLD),
            "Physical Disk": self._old_disk,
            "Physical Disk NFS Volume": self._part(EntityKind.DATASTORE),
            "Virtual Disk": self._virtual_disk,
            "Network Port": self._port,
        }

    def raw(self, object_name: str) -> Placer:
        """Counters without a canonical metric hang on the host, named by object and instance."""

        def place(name: str | None, host: str) -> Entity:
            owner = self._host(host)
            return owner if name is None else Entity(EntityKind.WORLD, f"{object_name}({name})", owner)

        return place

    def without_unknown_counts(self, part: Chosen) -> Chosen:
        """Group sums of VMs whose vCPU count is not known cannot be put per vCPU: only ready is kept, as a sum."""
        if part.object_name != "Group Cpu" or not part.metric.startswith("cpu_"):
            return part
        known = [self.builder.inventory.get(vm, "vcpu_count") is not None for vm in part.entities]
        if all(known):
            return part
        if part.metric == "cpu_ready_pct":
            self.builder.warn("no-vcpu-count", "VMs without vCPU worlds in the header: ready time is kept as a sum")
            return replace(part, metric="cpu_ready_pct_sum")
        rows = [i for i, is_known in enumerate(known) if is_known]
        return replace(part, columns=part.columns[rows], entities=[part.entities[i] for i in rows])

    def _find_vms(self) -> None:
        vcpus: dict[tuple[str, str, str], set[str]] = {}
        for index in self.table.of_object("Vcpu")[:1]:
            columns = self.table.columns(index)
            for name, host in zip(self.table.instances(columns), self.table.hosts_of(columns), strict=True):
                match = _VCPU.match(name) if name is not None and "vmx-vcpu-" in name else None
                if match:
                    vcpus.setdefault((host, match[1], match[2]), set()).add(match[4])
        for (host, group, name), worlds in vcpus.items():
            self._add_vm(host, group, name, vcpu_count=len(worlds))
        if not vcpus:
            for group, name, host in self._groups_of_vms():
                self._add_vm(host, group, name, vcpu_count=None)

    def _groups_of_vms(self) -> list[tuple[str, str, str]]:
        """Without vCPU worlds, VMs are the groups that own virtual disks or have a ``% VmWait`` column."""
        names: set[str] = set()
        for index in self.table.of_object("Virtual Disk")[:1]:
            for name in distinct(self.table.instances(self.table.columns(index))):
                match = _VIRTUAL_DISK_NAME.match(name)
                names.add(match[1] if match else name)
        groups = []
        for index in self.table.of_object("Group Cpu"):
            columns = self.table.columns(index)
            has_vmwait = self.table.counters[index][1] == "% VmWait"
            for text, host in zip(self.table.instances(columns), self.table.hosts_of(columns), strict=True):
                match = _GROUP.match(text or "")
                if match and (has_vmwait or match[2] in names):
                    groups.append((match[1], match[2], host))
        return list(dict.fromkeys(groups))

    def _add_vm(self, host: str, group: str, name: str, *, vcpu_count: int | None) -> None:
        unique = name
        if name in self._vm_names:
            unique = f"{name} ({group})"
            self.builder.warn("same-vm-name", f"two VMs are called {name}: the second is shown as {unique}")
        vm = Entity(EntityKind.VM, unique, self._host(host))
        self._vms[host, group] = vm
        self._vm_names.setdefault(name, vm)
        self.builder.inventory.add(vm, self.table.source.name, vcpu_count=vcpu_count)

    def _count_cpus(self) -> None:
        threads: dict[str, int] = {}
        for index in self.table.of_object("Physical Cpu"):
            columns = self.table.columns(index)
            counts: dict[str, int] = {}
            for name, host in zip(self.table.instances(columns), self.table.hosts_of(columns), strict=True):
                counts[host] = counts.get(host, 0) + (1 if name is not None and name.isdigit() else 0)
            threads = {host: max(count, threads.get(host, 0)) for host, count in counts.items()}
        counters = {counter for name, counter in self.table.counters if name == "Physical Cpu"}
        per_core = 2 if "% Core Util Time" in counters else 1
        nodes = [distinct(self.table.instances(self.table.columns(i))) for i in self.table.of_object("Numa Node")[:1]]
        for host, count in threads.items():
            entity, file = self._host(host), self.table.source.name
            self.builder.inventory.add(entity, file, thread_count=count or None)
            # esxtop prints core utilisation only where hyper-threading is on; two threads a core is then a guess.
            self.builder.inventory.add(entity, file, guessed=True, core_count=count // per_core or None)
            self.builder.inventory.add(entity, file, numa_node_count=len(nodes[0]) if nodes else None)

    def _host(self, name: str) -> Entity:
        if name not in self._hosts:
            self._hosts[name] = Entity(EntityKind.HOST, name)
            self.builder.inventory.add(self._hosts[name], self.table.source.name)
        return self._hosts[name]

    def _host_itself(self, name: str | None, host: str) -> Entity | None:
        return self._host(host) if name is None else None

    def _pcpu(self, name: str | None, host: str) -> Entity | None:
        if name is None or name == "_Total":
            return self._host(host)
        return Entity(EntityKind.PCPU, name, self._host(host)) if name.isdigit() else None

    def _vm(self, name: str | None, host: str) -> Entity | None:
        match = _GROUP.match(name or "")
        return self._vms.get((host, match[1])) if match else None

    def _vcpu(self, name: str | None, host: str) -> Entity | None:
        match = _VCPU.match(name) if name is not None and "vmx-vcpu-" in name else None
        vm = self._vms.get((host, match[1])) if match else None
        return Entity(EntityKind.VCPU, match[4], vm) if match and vm else None

    def _part(self, kind: EntityKind) -> Placer:
        return lambda name, host: None if name is None else Entity(kind, name, self._host(host))

    def _old_disk(self, name: str | None, host: str) -> Entity | None:
        if name is None:
            return None
        return Entity(EntityKind.PATH if ":" in name else EntityKind.ADAPTER, name, self._host(host))

    def _virtual_disk(self, name: str | None, host: str) -> Entity | None:
        match = _VIRTUAL_DISK_NAME.match(name or "")
        vm = self._vm_names.get(match[1] if match else name or "")
        if vm is None:
            vm = Entity(EntityKind.VM, match[1] if match else name or "", self._host(host))
        return Entity(EntityKind.VIRTUAL_DISK, match[2], vm) if match else vm

    def _port(self, name: str | None, host: str) -> Entity | None:
        match = _PORT_NAME.match(name or "")
        if match is None:
            return None
        switch, port, _, client = match.groups()
        vm = self._vm_names.get(client) or self._vm_names.get(client.rsplit(".eth", 1)[0])
        if vm is not None:
            return Entity(EntityKind.PORT, f"{switch}:{port}:{client}", vm)
        kind = EntityKind.NIC if client.startswith("vmnic") else EntityKind.PORT
        return Entity(kind, client if kind is EntityKind.NIC else f"{switch}:{port}:{client}", self._host(host))


def _per_vcpu(part: Chosen, builder: CaptureBuilder, request: Request) -> Changes:
    """Group Cpu sums are divided by the vCPU count: the mean of the VM's vCPUs, helper worlds included."""
    if part.object_name != "Group Cpu" or not part.metric.startswith("cpu_") or part.metric.endswith("_sum"):
        return ()
    counts = [builder.inventory.get(vm, "vcpu_count") for vm in part.entities]
    dtype = np.float32 if request.metrics is None else np.float64
    return ((np.divide, np.array(counts, dtype=dtype)[:, np.newaxis]),)


def _facts_from_values(groups: list[SeriesGroup], builder: CaptureBuilder) -> None:
    facts = {"host_memory_machine_mib": "memory_mib", "memory_size_mib": "memory_mib"}
    for group in groups:
        setting = facts.get(group.metric)
        if setting is None:
            continue
        for row, entity in enumerate(group.entities):
            known = group.values[row][np.isfinite(group.values[row])]
            if len(known):
                known_facts: dict[str, Any] = {setting: float(known[-1])}
                builder.inventory.add(entity, builder.info.name, **known_facts)
