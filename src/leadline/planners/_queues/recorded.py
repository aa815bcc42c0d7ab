"""What recordings and inventories know of the queues: the busiest VM, its disks and LUNs, and the depths set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil, isnan
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.planner import Bend
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.recorded_loads import (
    OPERATIONS,
    PERCENTILE,
    RecordedInput,
    RecordedLoad,
    by_owner,
    device_latency,
    latencies,
    machine_of,
    number,
    of_each,
    of_sum,
    only,
    series_of,
    window,
)
from leadline.estate.knowledge.guest_settings import number_entry
from leadline.estate.knowledge.placement import database_vms, runs
from leadline.estate.knowledge.virtual_disks import boot_disk, disks_by_adapter

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity, Inventory

REQUESTS_PER_RING_PAGE = 32
# Of a disk and of an adapter, and neither can be raised. Source: VMware, "Architecting Microsoft SQL Server on VMware
# vSphere", queue depths of LSI Logic SAS.
EMULATED_DEPTHS = (32, 128)
EMULATED = frozenset({"lsilogic", "lsilogicsas", "buslogic"})
DEPTHS = ("vmw_pvscsi.cmd_per_lun", "pvscsi.MaxQueueDepth")
PAGES = ("vmw_pvscsi.ring_pages", "pvscsi.RequestRingPages")


@dataclass(frozen=True, slots=True)
class Busiest:
    """The machine with the most operations: its load, that of all, and the series of its disks."""

    machine: Entity
    load: RecordedLoad
    whole: RecordedLoad
    machines: list[Entity]
    disks: list[SeriesGroup]


def recorded_inputs(capture: Capture, *, has_rate: bool) -> Iterator[RecordedInput]:
    """Inputs of the planner that recordings or inventories know; the first of a key counts.

    VMs that were not recorded are counted only when a rate is given that each of them may have.
    """
    busiest = _busiest(capture)
    machine = _machine(capture, busiest)
    if busiest is not None:
        yield from _of_load(capture, busiest)
    elif machine is not None:
        yield from _of_inventory(capture.inventory, machine)
        if has_rate:
            yield from _machines(capture.inventory)
    if machine is not None:
        yield from _of_guest(capture, machine)
    yield from _latency(capture)
    yield from _of_host(capture, None if machine is None else machine.ancestor(EntityKind.HOST))


def _busiest(capture: Capture) -> Busiest | None:
    groups = series_of(capture, OPERATIONS, EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE)
    sums = by_owner(groups, lambda disk: machine_of(capture.inventory, disk))
    loads = {machine: load for machine, load in of_each(capture, sums).items() if load.peak > 0}
    whole = of_sum(capture, sums)
    if not loads or whole is None:
        return None
    first = max(loads, key=lambda machine: (loads[machine].peak, str(machine)))
    disks = only(groups, lambda disk: machine_of(capture.inventory, disk) == first)
    return Busiest(first, loads[first], whole, list(loads), disks)


def _machine(capture: Capture, busiest: Busiest | None) -> Entity | None:
    """The busiest machine; without rates the running VM with the most disks, one with a database first."""
    if busiest is not None:
        return busiest.machine
    inventory = capture.inventory
    vms = [vm for vm in inventory.of_kind(EntityKind.VM) if runs(inventory, vm)]
    first = database_vms(inventory)
    disks = {vm: len(inventory.children(vm, EntityKind.VIRTUAL_DISK)) for vm in vms}
    return max(vms, key=lambda vm: (vm in first, disks[vm], str(vm)), default=None)


def _of_inventory(inventory: Inventory, machine: Entity) -> Iterator[RecordedInput]:
    """Counts of an inventory alone; the boot disk, where it is known, carries none of the load."""
    disks = set(inventory.children(machine, EntityKind.VIRTUAL_DISK)) - {boot_disk(inventory, machine)}
    origin = f"of {machine.name}, in the inventory"
    if disks:
        yield RecordedInput("disks", len(disks), origin)
    adapters = [name for name, attached in disks_by_adapter(inventory, machine).items() if disks & set(attached)]
    if adapters:
        yield RecordedInput("adapters", len(adapters), origin)


def _machines(inventory: Inventory) -> Iterator[RecordedInput]:
    vms = [vm for vm in inventory.of_kind(EntityKind.VM) if runs(inventory, vm)]
    hosts = {host for vm in vms if (host := vm.ancestor(EntityKind.HOST)) is not None}
    yield RecordedInput("vms", len(vms), "VMs of the inventory that run, each with the rate given")
    if hosts:
        yield RecordedInput("hosts", len(hosts), "hosts they run on")


def _of_load(capture: Capture, busiest: Busiest) -> Iterator[RecordedInput]:
    name, load = busiest.machine.name, busiest.load
    yield RecordedInput("iops", load.peak, f"95th percentile of {name}, the busiest, {load.origin}")
    origin = f"{number(busiest.whole.peak)}/s of all / {number(load.peak)}/s of {name}"
    yield RecordedInput("vms", ceil(round(busiest.whole.peak / load.peak, 6)), origin)
    hosts = {host for machine in busiest.machines if (host := machine.ancestor(EntityKind.HOST)) is not None}
    if hosts:
        yield RecordedInput("hosts", len(hosts), f"they run on {', '.join(sorted(host.name for host in hosts))}")
    yield from _alike(capture, "disks", name, load, busiest.disks)
    inventory = capture.inventory
    adapters = by_owner(busiest.disks, lambda disk: _adapter(inventory.get(disk, "adapter"), disk))
    yield from _alike(capture, "adapters", name, load, adapters)


def _alike(
    capture: Capture, key: str, name: str, load: RecordedLoad, parts: list[SeriesGroup]
) -> Iterator[RecordedInput]:
    """Yield how many parts carry the load if each has as much as the busiest one."""
    loads = of_each(capture, parts)
    if loads:
        first = max(loads, key=lambda part: (loads[part].peak, str(part)))
        if loads[first].peak > 0:
            origin = f"{number(load.peak)}/s of {name} / {number(loads[first].peak)}/s of {first.name}, its busiest"
            yield RecordedInput(key, max(1, int(load.peak / loads[first].peak + 1e-6)), origin)


def _adapter(named: object, disk: Entity) -> Entity | None:
    """The adapter a virtual disk hangs on: as the inventory names it, else by the disk's address, scsi0:1."""
    if disk.parent is None or disk.kind is not EntityKind.VIRTUAL_DISK:
        return None
    from_name = disk.name.partition(":")[0] if ":" in disk.name else None
    name = named or from_name
    return None if name is None else type(disk)(EntityKind.ADAPTER, str(name), disk.parent)


def _latency(capture: Capture) -> Iterator[RecordedInput]:
    below = device_latency(capture)
    if below is not None and below.peak > 0:
        yield RecordedInput("latency_ms", below.peak, f"95th percentile of {below.origin}")
        return
    for group in series_of(capture, OPERATIONS, EntityKind.VIRTUAL_DISK, EntityKind.BLOCK_DEVICE):
        waits = latencies(capture, group)
        weights = None if waits is None else np.where(np.isfinite(waits + group.values), group.values, 0.0)
        if waits is None or weights is None or not (weights.sum(axis=0) > 0).any():
            continue
        busy = weights.sum(axis=0) > 0
        means = (np.nan_to_num(waits) * weights).sum(axis=0)[busy] / weights.sum(axis=0)[busy]
        kind = group.entities[0].kind.value
        origin = f"95th percentile of kind {kind} by their rates, waiting above included, {window(capture, [group])}"
        peak = float(np.percentile(means, PERCENTILE))
        yield RecordedInput("latency_ms", peak if peak > 0 else None, origin)
        return


def _of_guest(capture: Capture, machine: Entity) -> Iterator[RecordedInput]:
    """Depths of the machine's disks and adapters."""
    inventory = capture.inventory
    if _emulated(capture, machine):
        for key, depth in zip(("disk_depth", "adapter_depth"), EMULATED_DEPTHS, strict=True):
            yield RecordedInput(key, depth, f"adapters of {machine.name} are emulated, and this is all they have")
    guests = [
        guest
        for guest in inventory.of_kind(EntityKind.GUEST)
        if machine in (guest, inventory.vm_of(guest))
    ]  # fmt: skip
    for guest in guests:
        disks = inventory.children(guest, EntityKind.BLOCK_DEVICE)
        yield from _least(capture, "disk_depth", disks, "queue_depth_count")
        for key, names, factor in (("disk_depth", DEPTHS, 1), ("adapter_depth", PAGES, REQUESTS_PER_RING_PAGE)):
            for name in names:
                value = number_entry(inventory, guest, "module_parameters", name)
                if not isnan(value) and value > 0:
                    yield RecordedInput(key, int(value) * factor, f"{name} {value:g} of {guest.name}")


def _of_host(capture: Capture, host: Entity | None) -> Iterator[RecordedInput]:
    """LUNs, host adapters and their depths, of the busiest VM's host where it is known."""

    def is_there(entity: Entity) -> bool:
        return host is None or entity.ancestor(EntityKind.HOST) == host

    for key, kind, depth_key, metric in (
        ("luns", EntityKind.DEVICE, "lun_depth", "disk_queue_depth_count"),
        ("host_adapters", EntityKind.ADAPTER, "host_adapter_depth", "disk_adapter_queue_depth_count"),
    ):
        groups = only(series_of(capture, OPERATIONS, kind), is_there)
        owner = "the host" if host is None else host.name
        load = of_sum(capture, groups)
        if load is not None:
            yield from _alike(capture, key, owner, load, groups)
        depths = of_each(capture, only(series_of(capture, ((metric,),), kind), is_there))
        yield from _depth_recorded(depth_key, depths, of_each(capture, groups))
    devices = [device for device in capture.inventory.of_kind(EntityKind.DEVICE) if is_there(device)]
    adapters = [
        adapter
        for adapter in capture.inventory.of_kind(EntityKind.ADAPTER)
        if is_there(adapter) and adapter.ancestor(EntityKind.VM) is None
    ]
    yield from _least(capture, "lun_depth", devices, "queue_depth_count")
    yield from _least(capture, "lun_depth", adapters, "lun_queue_depth_count")
    yield from _least(capture, "host_adapter_depth", adapters, "queue_depth_count")
    yield from _least(capture, "competing_depth", devices, "competing_worlds_count")


def _depth_recorded(
    key: str, depths: dict[Entity, RecordedLoad], rates: dict[Entity, RecordedLoad]
) -> Iterator[RecordedInput]:
    """Yield the queue depth of the busiest device; idle ones, such as a CD drive, have other depths."""
    known = [entity for entity in depths if depths[entity].mean >= 1 and entity in rates]
    if known:
        first = max(known, key=lambda entity: (rates[entity].peak, str(entity)))
        yield RecordedInput(key, int(depths[first].mean), f"of {first.name}, the busiest, {depths[first].origin}")


def _least(capture: Capture, key: str, entities: list[Entity], setting: str) -> Iterator[RecordedInput]:
    known = [(entity, fact) for entity in entities if (fact := capture.inventory.fact(entity, setting)) is not None]
    usable = [(int(fact.value), entity, fact.source) for entity, fact in known if fact.value and fact.value >= 1]
    if usable:
        depth, entity, source = min(usable, key=lambda one: (one[0], str(one[1])))
        yield RecordedInput(key, depth, f"the least there is, of {entity.name}, {source}")


def _emulated(capture: Capture, machine: Entity) -> list[Entity]:
    inventory = capture.inventory
    adapters = inventory.children(machine, EntityKind.ADAPTER)
    used = {str(inventory.get(disk, "adapter")) for disk in inventory.children(machine, EntityKind.VIRTUAL_DISK)}
    emulated = [one for one in adapters if str(inventory.get(one, "type")).casefold() in EMULATED]
    return [one for one in emulated if not used - {"None"} or one.name in used]


def slow_adapters(capture: Capture) -> list[Bend]:
    """Return a bend that names the busiest VM's adapters whose queues cannot be deeper."""
    machine = _machine(capture, _busiest(capture))
    names = [] if machine is None else [adapter.label() for adapter in _emulated(capture, machine)]
    if not names:
        return []
    disk, adapter = EMULATED_DEPTHS
    cost = f"{', '.join(names)}: {disk} for a disk and {adapter} for an adapter, whatever is set"
    return [Bend("disks of databases hang on paravirtual adapters", cost, "Architecting SQL Server on vSphere")]


def nvme_notes(capture: Capture) -> tuple[str, ...]:
    """An assumption where the busiest machine's disks are NVMe, which no PVSCSI adapter serves."""
    busiest = _busiest(capture)
    names = set() if busiest is None else {disk.name for group in busiest.disks for disk in group.entities}
    if busiest is None or not any(name.startswith("nvme") for name in names):
        return ()
    return (f"Disks of {busiest.machine.name} are NVMe: the guest's two levels here are those of PVSCSI, not theirs.",)
