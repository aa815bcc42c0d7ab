"""What an inventory knows of the cluster, where the inputs do not say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.versions import vsphere_version
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.derived.recorded_loads import RecordedInput, filled
from leadline.estate.knowledge.stored import size_gib
from leadline.planners._vsan.inputs import Vsan

GIB_GB = 2**30 / 1e9
# Setting of a cluster, the input it fills, and how it is read.
FACTS: tuple[tuple[str, str, Callable[[Any], Any]], ...] = (
    ("vsan_version", "version", lambda value: str(value) if vsphere_version(str(value)) else None),
    ("vsan_esa", "architecture", lambda value: "esa" if value else "osa"),
    ("vsan_working_set_gib", "working_set_gb", lambda value: float(value) * GIB_GB if value > 0 else None),
)


def completed(inputs: Vsan, capture: Capture | None) -> tuple[Vsan, tuple[str, ...]]:
    """Return the inputs, those not given from the inventory's cluster, and a sentence for each taken from there."""
    return filled(inputs, _known(capture))


def cluster_name(capture: Capture | None) -> str | None:
    """Return the name of the inventory's vSAN cluster; None where there are several clusters or none."""
    clusters = _clusters(capture)
    return clusters[0].name if len(clusters) == 1 else None


def _clusters(capture: Capture | None) -> list[Entity]:
    clusters = [] if capture is None else capture.inventory.of_kind(EntityKind.CLUSTER)
    return [cluster for cluster in clusters if capture and capture.inventory.get(cluster, "vsan_enabled") is not False]


def _known(capture: Capture | None) -> list[RecordedInput]:
    """Return the settings of the inventory's only vSAN cluster, and the disks of its VMs, as inputs."""
    if capture is None:
        return []
    known_values = list(_stored(capture.inventory))
    clusters_with_vsan = _clusters(capture)
    if len(clusters_with_vsan) != 1:
        return known_values
    for setting, key, read in FACTS:
        fact = capture.inventory.fact(clusters_with_vsan[0], setting)
        if fact is not None:
            known_values.append(
                RecordedInput(key, read(fact.value), f"cluster {clusters_with_vsan[0].name}, {fact.source}")
            )
    return known_values


# Input of a machine's disks, and the roles of the disks it adds up; disks of no known role hold data.
SIZES: tuple[tuple[str, tuple[Role, ...]], ...] = (
    ("log_gb", (Role.WAL,)),
    ("temp_gb", (Role.TEMP,)),
    ("system_gb", (Role.SYSTEM,)),
)


def _stored(inventory: Inventory) -> Iterator[RecordedInput]:
    """Yield the number of VMs with disks, and the mean size of their disks by role, GB, so that the sum is kept."""
    sizes: dict[Entity, dict[Entity, float]] = {}
    for disk in inventory.of_kind(EntityKind.VIRTUAL_DISK):
        vm, size = disk.ancestor(EntityKind.VM), size_gib(inventory, disk)
        if vm is not None and inventory.get(vm, "template") is not True and size > 0:
            sizes.setdefault(vm, {})[disk] = size
    if not sizes:
        return
    known = {disk: size for disks in sizes.values() for disk, size in disks.items()}
    fact = inventory.fact(next(iter(known)), "size_gib")
    source = "" if fact is None else fact.source
    origin = f"VMs with {len(known)} virtual disks of known size, templates left out, {source}"
    yield RecordedInput("machines", len(sizes), origin)
    left = dict(known)
    for key, roles in SIZES:
        names = {role.value for role in roles}
        parts = {disk: size for disk, size in known.items() if str(inventory.get(disk, "role")) in names}
        left = {disk: size for disk, size in left.items() if disk not in parts}
        value = sum(parts.values()) * GIB_GB / len(sizes)
        yield RecordedInput(key, value, f"{len(parts)} disks of that role / {len(sizes)} VMs")
    yield RecordedInput(
        "data_gb", sum(left.values()) * GIB_GB / len(sizes), f"the other {len(left)} disks / {len(sizes)} VMs"
    )
    yield RecordedInput("data_disks", max(1, round(len(left) / len(sizes))), f"{len(left)} disks of {len(sizes)} VMs")
