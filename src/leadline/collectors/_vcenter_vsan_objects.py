"""Objects of vSAN behind the virtual disks of VMs: which hosts, devices and disk groups hold them, and their health.

Sources:
    vSphere Web Services API reference, HostVsanInternalSystem.QueryVsanObjects: it says that the answer is JSON and not
    what is in it. That is read as VMware's Ruby vSphere Console does (github.com/vmware/rvc, lib/rvc/modules/vsan.rb,
    ``_components_in_dom_config`` and ``_print_dom_config_tree``) and as the vSphere Client's vSAN plug-in does.
    vSAN Management API reference, VsanObjectSystem.VsanQueryObjectIdentities, VsanObjectHealthState.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_services import asking
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import of
from leadline.formats.vcenter.vsan_objects import ACTIVE, VsanPart, layout_name, placement_settings

OBJECTS_PER_QUESTION = 100
_NEEDS = "it needs the Read-only role on hosts"
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
_CHILD = re.compile(r"child-(\d{1,6})")
_RAID = re.compile(r"RAID_([0-9D])")
_WITNESS = "Witness"
_LEAVES = ("Component", _WITNESS)
# Source: the Ruby vSphere Console, names of the states in _print_dom_config_tree.
_STATES = {
    **{"1": "NONE", "2": "NEED CONFIG", "3": "INITIALIZE", "4": "INITIALIZED", "5": ACTIVE, "6": "ABSENT"},
    **{"7": "STALE", "8": "RESYNCHING", "9": "DEGRADED", "10": "RECONFIGURING", "11": "CLEANUP", "12": "TRANSIENT"},
}
# vSAN's words as esxcli prints them, the worst first; an object that lies in another cluster has none.
_HEALTH = {
    "inaccessible": "inaccessible",
    "reducedavailabilitywithnorebuild": "reduced-availability-with-no-rebuild",
    "reducedavailabilitywithpolicypendingfailed": "reduced-availability-with-policy-pending-failed",
    "reducedavailabilitywithpausedrebuild": "reduced-availability-with-paused-rebuild",
    "reducedavailabilitywithnorebuilddelaytimer": "reduced-availability-with-no-rebuild-delay-timer",
    "reducedavailabilitywithpolicypending": "reduced-availability-with-policy-pending",
    "reducedavailabilitywithactiverebuild": "reduced-availability-with-active-rebuild",
    "nonavailabilityrelatedincompliancewithpolicypendingfailed": (
        "nonavailability-related-incompliance-with-policy-pending-failed"
    ),
    "nonavailabilityrelatedincompliancewithpausedrebuild": "nonavailability-related-incompliance-with-paused-rebuild",
    "nonavailabilityrelatedincompliancewithpolicypending": "nonavailability-related-incompliance-with-policy-pending",
    "nonavailabilityrelatedincompliance": "nonavailability-related-incompliance",
    "nonavailabilityrelatedreconfig": "nonavailability-related-reconfig",
    "datamove": "datamove",
    "healthy": "healthy",
}
_HEALTHY = "healthy"


@dataclass(slots=True)
class VsanLayout:
    """One object of vSAN: its parts, the digits of its levels from the outside in, and what its policy asks for."""

    parts: list[VsanPart] = field(default_factory=list)
    levels: list[str] = field(default_factory=list)
    demands: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class VsanPlaces:
    """Hosts, devices and disk groups that the inventory knows, by the ids vSAN gives them."""

    hosts: dict[str, Entity]
    devices: dict[str, Entity]
    groups: dict[str, str]  # names by the id of the cache device
    group_of: dict[Entity, str]  # names by capacity device

    @classmethod
    def known(cls, estate: VcenterInventory) -> VsanPlaces:
        """Places of all hosts of the inventory: a witness is a host of another cluster."""
        inventory = estate.inventory
        hosts = {uuid: host for host in estate.hosts.values() if (uuid := inventory.get(host, "uuid"))}
        devices: dict[str, Entity] = {}
        groups: dict[str, str] = {}
        group_of: dict[Entity, str] = {}
        for host in hosts.values():
            for device in inventory.children(host, EntityKind.DEVICE):
                if uuid := inventory.get(device, "uuid"):
                    devices[str(uuid)] = device
            for group in inventory.children(host, EntityKind.DISK_GROUP):
                if uuid := inventory.get(group, "uuid"):
                    groups[str(uuid)] = group.name
                for name in inventory.get(group, "capacity_devices") or ():
                    group_of[Entity(EntityKind.DEVICE, name, host)] = group.name
        return cls(hosts, devices, groups, group_of)


def read_placement(estate: VcenterInventory, cluster: Entity, manager: Any) -> None:  # noqa: ANN401
    """Placement of the disks of a vSAN cluster's VMs, from the vSAN internal system of one of its hosts.

    It is one question for each 100 objects. VMs, hosts and disk groups must have been added.
    """
    disks = disks_of(estate, cluster)
    if not disks:
        return
    subject = f"placement of disks on vSAN cluster {cluster.name}"
    with asking(estate, subject, needs=_NEEDS):
        places = VsanPlaces.known(estate)
        layouts: dict[str, VsanLayout] = {}
        for uuids in _lots(disks):
            layouts |= layouts_in(manager.QueryVsanObjects(uuids=uuids) or "", places)
        unknown_count = add_placement(estate, disks, layouts)
        if unknown_count:
            estate.left_out.append(f"{subject} (the host does not say where the objects of {unknown_count} disks lie)")


def disks_of(estate: VcenterInventory, cluster: Entity) -> dict[Entity, list[str]]:
    """Return the objects of each virtual disk on vSAN of the VMs that are on hosts of a cluster."""
    inventory = estate.inventory
    elsewhere = {one.name for one in estate.datastores.values() if inventory.get(one, "type") not in (None, "vsan")}
    disks = {}
    for disk, ids in estate.objects.items():
        host = None if disk.parent is None else disk.parent.parent
        if host is None or inventory.get(host, "cluster") != cluster.name:
            continue
        uuids = [text.casefold() for text in ids if _UUID.fullmatch(text.casefold())]
        if uuids and inventory.get(disk, "datastore") not in elsewhere:
            disks[disk] = uuids
    return disks


def _lots(disks: dict[Entity, list[str]]) -> Iterator[list[str]]:
    """Lots of objects to ask for at once; a disk that VMs share is asked for once."""
    waiting = iter(dict.fromkeys(uuid for uuids in disks.values() for uuid in uuids))
    while uuids := list(islice(waiting, OBJECTS_PER_QUESTION)):
        yield uuids


def layouts_in(answer: str, places: VsanPlaces) -> dict[str, VsanLayout]:
    """Return the objects of an answer to QueryVsanObjects by their UUID; none where it is no JSON.

    An answer has three tables: ``dom_objects`` with the tree of each object, ``lsom_objects`` with the host
    (``owner``) of each component that vSAN reaches now, ``disk_objects`` with the cache device of each disk.
    """
    try:
        tables = _table(json.loads(answer))
    except (ValueError, RecursionError):
        return {}
    layouts: dict[str, VsanLayout] = {}
    for uuid, described in _table(tables.get("dom_objects")).items():
        tree = _table(_table(_table(described).get("config")).get("content"))
        layout = VsanLayout(demands=_demands(_table(_table(described).get("policy"))))
        for node in _nodes(tree):
            name = str(node.get("type"))
            if name in _LEAVES:
                layout.parts.append(_part(node, tables, places))
            elif level := _RAID.fullmatch(name):
                layout.levels.append(level[1])
        if layout.parts:
            layouts[uuid.casefold()] = layout
    return layouts


def _table(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _nodes(tree: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every node of an object's tree, a parent before its children and these in the order of their numbers."""
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        yield node
        numbered = [(int(match[1]), key) for key in node if (match := _CHILD.fullmatch(key))]
        waiting += [child for _, key in sorted(numbered, reverse=True) if (child := _table(node[key]))]


def _part(node: dict[str, Any], tables: dict[str, Any], places: VsanPlaces) -> VsanPart:
    """A component with its place. Where its host is away, its tree still names the host or the device."""
    attributes, uuid = _table(node.get("attributes")), str(node.get("diskUuid") or "")
    component = _table(_table(tables.get("lsom_objects")).get(str(node.get("componentUuid"))))
    disk = _table(_table(tables.get("disk_objects")).get(uuid))
    device = places.devices.get(uuid)
    owners = (component.get("owner"), attributes.get("ownerId"), disk.get("owner"))
    host = next((places.hosts[str(owner)] for owner in owners if str(owner) in places.hosts), None)
    if host is None and device is not None:
        host = device.parent
    group = places.groups.get(str(_table(disk.get("content")).get("ssdUuid")))
    if group is None and device is not None:
        group = places.group_of.get(device)
    number = str(attributes.get("componentState", ""))
    return VsanPart(
        is_witness=node.get("type") == _WITNESS,
        state=_STATES.get(number, f"STATE {number}" if number else ""),
        host="" if host is None else host.name,
        device=uuid if device is None else device.name,
        group=group or "",
    )


def _demands(policy: dict[str, Any]) -> dict[str, Any]:
    """What an object's policy asks for, as settings of a virtual disk.

    In a stretched cluster the first count is of sites, the second of hosts within a site.
    """
    failures = [_count(policy.get(name)) for name in ("hostFailuresToTolerate", "subFailuresToTolerate")]
    forced = _count(policy.get("forceProvisioning"))
    return {
        "vsan_ftt": max((count for count in failures if count is not None), default=None),
        "vsan_stripe_count": _count(policy.get("stripeWidth")),
        "vsan_force_provisioning": bool(forced) if forced in (0, 1) else None,
    }


def _count(value: object) -> int | None:
    """A count that is a number in some releases and its digits in others."""
    text = str(int(value) if isinstance(value, bool) else value)
    return int(text) if re.fullmatch(r"\d{1,3}", text) else None


def add_placement(estate: VcenterInventory, disks: dict[Entity, list[str]], layouts: dict[str, VsanLayout]) -> int:
    """Record where the components of disks lie; returned is the count of disks with an object that is not known.

    Of a disk with snapshots, components of all its objects are recorded: reads come from each of them.
    """
    unknown_count = 0
    for disk, uuids in disks.items():
        known = [layouts[uuid] for uuid in uuids if uuid in layouts]
        unknown_count += len(known) < len(uuids)
        if known:
            parts = [part for layout in known for part in layout.parts]
            estate.add(disk, **placement_settings(parts))
            # What the storage policy service said before is kept; the Read-only role may not ask it.
            estate.add(disk, vsan_raid=layout_name(known[0].levels), **known[0].demands)
    return unknown_count


def read_health(estate: VcenterInventory, clusters: Iterable[tuple[Any, Entity]], query: Callable[..., Any]) -> None:
    """Health of the objects of virtual disks, one question of the vSAN service for each 100 objects."""
    for reference, cluster in clusters:
        disks = disks_of(estate, cluster)
        states: dict[str, str] = {}
        for uuids in _lots(disks):
            asked = {"includeHealth": True, "includeObjIdentity": False, "includeSpaceSummary": False}
            answer = query(cluster=reference, objUuids=uuids, **asked)
            for lot in of(answer, "health.objectHealthDetail") or ():
                states |= {str(uuid).casefold(): str(lot.health) for uuid in lot.objUuids or ()}
        for disk, uuids in disks.items():
            estate.add(disk, vsan_object_health=_worst([_HEALTH.get(states.get(uuid, "")) for uuid in uuids]))


def _worst(states: list[str | None]) -> str | None:
    """The worst of the states of a disk's objects; it is only healthy if all are known to be."""
    order = list(_HEALTH.values())
    worst = min((state for state in states if state is not None), key=order.index, default=None)
    return None if worst == _HEALTHY and None in states else worst
