"""The disks of a recording: what each wants, how large its operations are, and what the inventory grants it."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.disks import virtual_disk_of
from leadline.estate.derived.recorded_loads import (
    DISK_KINDS,
    OPERATIONS,
    THROUGHPUT,
    RecordedLoad,
    machine_of,
    number,
    of_each,
    outstanding,
    series_of,
    window,
)
from leadline.estate.knowledge.placement import is_tier_one, runs
from leadline.estate.knowledge.stored import machines_kept
from leadline.estate.language.iops_limits import limit_of

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture
    from leadline.core.model.entities import Entity, Inventory

LEAST_IOPS = 0.05  # less is idle


def disks(capture: Capture, most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The busiest disks as inputs, busiest first, and a sentence for each and for those left out."""
    groups = series_of(capture, OPERATIONS, *DISK_KINDS)
    rates = {entity: load for entity, load in of_each(capture, groups).items() if load.peak >= LEAST_IOPS}
    moved = of_each(capture, series_of(capture, THROUGHPUT, *{entity.kind for entity in rates}))
    queued = [(part, how) for group in groups if (pair := outstanding(capture, group)) for part, how in (pair,)]
    ways = {how for _, how in queued}
    queues = {how: of_each(capture, [part for part, way in queued if way == how]) for how in ways}
    busiest = sorted(rates, key=lambda entity: (-rates[entity].peak, str(entity)))
    labels = Counter(disk.label() for disk in busiest)
    disk_inputs, sentences = [], []
    for disk in busiest[:most]:
        name = disk.label() if labels[disk.label()] == 1 else str(disk)
        under_way = next(((how, loads[disk]) for how, loads in sorted(queues.items()) if disk in loads), None)
        recorded, words = _disk(rates[disk], moved.get(disk), under_way)
        disk_inputs.append({"name": name, **recorded, **_granted(capture.inventory, disk)})
        sentences.append(f"{name} {words}")
    if disk_inputs:
        sentences.insert(0, f"95th percentiles of {len(disk_inputs)} disks, {window(capture, groups)}")
    left = busiest[most:]
    if left:
        share = sum(rates[disk].mean for disk in left) / sum(load.mean for load in rates.values())
        rest = f"{len(left)} disks with less, {100 * share:.2g} % of the operations"
        sentences.append(f"{rest}, are left out (most_disks)")
    return disk_inputs, sentences


def disks_of_inventory(inventory: Inventory, most: int) -> tuple[list[dict[str, Any]], list[str]]:
    """The virtual disks of VMs that run, in order of name, as inputs without rates, and a sentence for them."""
    running = [vm for vm in machines_kept(inventory) if runs(inventory, vm)]
    virtual_disks = [disk for vm in running for disk in inventory.children(vm, EntityKind.VIRTUAL_DISK)]
    disk_inputs = [{"name": str(disk), **_granted(inventory, disk)} for disk in sorted(virtual_disks, key=str)[:most]]
    if not disk_inputs:
        return [], []
    sentence = (
        f"the first {len(disk_inputs)} of {len(virtual_disks)} virtual disks of {len(running)} VMs of the inventory"
    )
    return disk_inputs, [f"{sentence} (most_disks); their rates were not recorded: each may want all"]


def _disk(
    rate: RecordedLoad, moved: RecordedLoad | None, under_way: tuple[str, RecordedLoad] | None
) -> tuple[dict[str, Any], str]:
    """Return the rate, size and queue recorded of a disk, as inputs and as a sentence; what was not is left out."""
    recorded: dict[str, Any] = {"wanted_iops": rate.peak}
    phrases = [f"wanted {number(rate.peak)}/s"]
    if moved is not None and moved.mean > 0:
        recorded["block_kib"] = moved.mean * 1024.0 / rate.mean
        phrases.append(f"{recorded['block_kib']:.3g} KiB on average")
    else:
        phrases.append("size not recorded" if moved is None else "too little moved to tell a size")
    if under_way is not None:
        how, load = under_way
        recorded["outstanding"] = max(1, round(load.peak))
        phrases.append(f"{load.peak:.3g} outstanding ({how})")
    else:
        phrases.append("outstanding not recorded")
    return recorded, ", ".join(phrases)


def _granted(inventory: Inventory, disk: Entity) -> dict[str, Any]:
    """Limit, shares, size, tier and names of a disk that the inventory knows."""
    virtual = virtual_disk_of(inventory, disk) if disk.kind is EntityKind.BLOCK_DEVICE else disk
    machine = machine_of(inventory, disk)
    granted_to = disk if virtual is None else virtual
    grants = {
        "limit_iops": limit_of(inventory, disk),
        "shares": inventory.get(granted_to, "shares"),
        "size_gib": inventory.get(granted_to, "size_gib") or inventory.get(disk, "size_gib"),
        "label": inventory.get(granted_to, "label"),
        "vm": None if machine is None else machine.name,
        "is_tier_1": None if machine is None else is_tier_one(inventory, machine),
    }
    # 0 and -1 are how "none" and "unlimited" are written.
    known = {key: value for key, value in grants.items() if value}
    return {key: value for key, value in known.items() if not (isinstance(value, (int, float)) and value < 0)}
