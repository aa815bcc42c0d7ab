"""Persistent memory as a tier of a database machine: modules, limits, published gains, and when each holds."""

from __future__ import annotations

from math import ceil

from leadline.core.contracts.planner import Bend, Figure, Sheet
from leadline.planners._memory.inputs import Memory

# Module sizes, GiB. Source: vmgu.ru on persistent memory in vSphere 6.7; Dell and HPE for NVDIMM-N.
MODULES_GIB: dict[str, tuple[float, ...]] = {"nvdimm-n": (16.0,), "optane": (128.0, 256.0, 512.0)}
HOST_MAX_GIB = 6144.0  # Source: vmgu.ru; certified maxima of servers with Optane 100 series, 6 TB
MODULES_MAX = 12  # Source: Intel Optane persistent memory 100 series: six beside each of two processors
OVERHEAD_PCT = 4.0  # Source: vmgu.ru, after VMware, "Persistent memory performance in vSphere 6.7": below
VMGU = "vmgu.ru on persistent memory in vSphere 6.7"
PUBLISHED = "VMware, persistent memory performance in vSphere 6.7"
RESOURCES = "vSphere 6.7 documentation, resource management, persistent memory"
ENDED = "Intel, second quarter of 2022; product change notices of Optane persistent memory"
REMOVED = "vSphere 9.0 API reference, VirtualNVDIMM"
AVAILABILITY = "vSphere 7.0 documentation, vSphere HA for PMem VMs"
SNAPSHOTS = "vSphere API reference, VirtualPMem, since 7.0.3"
# Virtual NVDIMM against a virtual NVMe disk, as published for Oracle with HammerDB; not what another load gets.
GAINS: tuple[tuple[str, str], ...] = (
    ("transactions per minute, Oracle", "1.28 times"),
    ("database reads", "1.25 times"),
    ("database writes", "2.24 times"),
    ("log writes", "up to 16.6 times"),
    ("latency of operations", "up to 66 times less"),
    ("mixed reads and writes, by an aware program", "3 times and more"),
    ("one access, by an aware program", "below 1 us"),
)


def figures(inputs: Memory) -> list[Figure]:
    """Return the modules that hold what a host's machines have in persistent memory, and its limit."""
    if inputs.persistent == "none":
        return []
    count, size = host_machines(inputs), module_gib(inputs)
    host = count * inputs.persistent_gib
    modules = ceil(host / size)
    each = f"{count} machines x {inputs.persistent_gib:g} GiB"
    return [
        Figure("persistent memory of a host", round(host, 1), "GiB", f"{each}, at most {HOST_MAX_GIB:,.0f}", VMGU),
        Figure("persistent modules of a host", modules, "count", f"{host:,.5g} GiB / {size:g} GiB each", VMGU),
        Figure("cost of virtual persistent memory", OVERHEAD_PCT, "pct", "less than that, as measured", PUBLISHED),
    ]


def host_machines(inputs: Memory) -> int:
    """Return how many of the machines a host has when spare hosts have failed, evenly spread."""
    return ceil(inputs.machines / max(1, inputs.hosts - inputs.spare_hosts))


def module_gib(inputs: Memory) -> float:
    """Return the smallest module with which a host has no more than 12 modules, GiB; else the largest."""
    sizes = MODULES_GIB[inputs.persistent]
    need = host_machines(inputs) * inputs.persistent_gib
    return next((size for size in sizes if ceil(need / size) <= MODULES_MAX), sizes[-1])


def sheets(inputs: Memory) -> tuple[Sheet, ...]:
    """Return the published gains where hosts have persistent memory; another load gets others."""
    if inputs.persistent == "none":
        return ()
    title = "Published for vSphere 6.7: a virtual NVDIMM against a virtual NVMe disk"
    return (Sheet(title, ("of", "gain"), GAINS),)


def bends(inputs: Memory) -> list[Bend]:
    """Return what persistent memory bends: hardware that can be bought, limits of a host, moves, HA and snapshots."""
    if inputs.persistent == "none":
        return []
    host = host_machines(inputs) * inputs.persistent_gib
    ended = (
        "production ended in 2022, last shipments until the end of 2025; Xeon of the fifth generation on has no support"
    )
    bends = [
        Bend("hardware can be bought", ended, ENDED)
        if inputs.persistent == "optane"
        else Bend("hardware can be bought", "16 GB modules with a battery: ask the server's vendor", VMGU),
        Bend("the hypervisor goes on supporting it", "deprecated from vSphere 9.0 on, without a successor", REMOVED),
        Bend("a VM moves to every host", "vMotion takes a virtual NVDIMM to hosts with free PMem only", RESOURCES),
        Bend(
            "HA restarts a VM with its data",
            "from 7.0 on, with hardware 19, it restarts with a new and empty NVDIMM; the data stays on the failed host",
            AVAILABILITY,
        ),
        Bend("a VM has snapshots", "none before 7.0 U3; since then they leave the NVDIMM out or erase it", SNAPSHOTS),
    ]
    if host > HOST_MAX_GIB:
        cost = f"{host:,.0f} GiB, {HOST_MAX_GIB:,.0f} at most: more hosts, or less of each machine"
        bends.append(Bend("a host holds the persistent memory", cost, VMGU))
    elif ceil(host / module_gib(inputs)) > MODULES_MAX:
        cost = f"{ceil(host / module_gib(inputs))} modules, {MODULES_MAX} slots beside DRAM"
        bends.append(Bend("a host holds the persistent memory", cost, VMGU))
    return bends
