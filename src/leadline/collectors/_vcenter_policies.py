"""Storage policies: which one each virtual disk has, and what it demands of vSAN."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_services import Services, asking
from leadline.core.model.entities import Entity
from leadline.estate.knowledge.vcenter_session import of

DISKS_PER_QUESTION = 500
_SERVICE = "/pbm"
_VERSION = "pbm.version.version2"  # vSphere 6.0, the first that tells default policies of datastores
_NEEDS = "it needs the privilege Profile-driven storage view, which the Read-only role has not"
_NAME_SPACE = "VSAN"  # of the rules vSAN understands
_VSAN = "vsan"
_CODED = {1: "raid-5", 2: "raid-6"}  # by the failures to tolerate


@dataclass(frozen=True, slots=True)
class Policy:
    """A storage policy: its name and what it demands of vSAN, as settings of a virtual disk."""

    name: str
    demands: dict[str, Any] = field(default_factory=dict)


def read(estate: VcenterInventory, services: Services) -> None:
    """Policies of every virtual disk: a handful of questions and one for each 500 disks. VMs must have been added."""
    from pyVmomi import pbm  # noqa: PLC0415 - 0.5 s that only this collector needs

    disks = {f"{key}:{number}": disk for key, vm in estate.vms.items() for number, disk in _disks(estate, vm)}
    if not disks:
        return
    with services.at(_SERVICE, _VERSION) as stub, asking(estate, "storage policies", needs=_NEEDS):
        manager = pbm.ServiceInstance("ServiceInstance", stub).RetrieveContent().profileManager
        add_policies(estate, manager, disks)


def _disks(estate: VcenterInventory, vm: Entity) -> Iterable[tuple[int, Entity]]:
    return estate.disks.get(vm, {}).items()


def add_policies(estate: VcenterInventory, manager: Any, disks: dict[str, Entity]) -> None:  # noqa: ANN401
    """Names and demands of the policies of disks, which go by the id of their VM, a colon and their device key.

    A disk on vSAN that is told to have none got the default of its datastore, which is marked as a guess: the default
    may have been another when the disk was made.

    Source: Storage Policy API reference, PbmProfileProfileManager, PbmServerObjectRef.
    """
    policies = policies_of(manager)
    associated = _associated(manager, disks)
    defaults: dict[str, Policy] = {}
    with asking(estate, "default storage policies", needs=_NEEDS):
        defaults = _defaults(estate, manager)
    types: dict[str, set[object]] = {}
    for datastore in estate.datastores.values():
        types.setdefault(datastore.name, set()).add(estate.inventory.get(datastore, "type"))
    for key, ids in associated.items():
        store = str(estate.inventory.get(disks[key], "datastore"))
        policy = next((policies[one] for one in ids if one in policies), None)
        default = defaults.get(store) if policy is None and not ids else None
        effective = policy or default
        if effective is not None:
            # What a policy demands of vSAN is nothing to a datastore of another kind.
            demands = effective.demands if types.get(store) == {_VSAN} else {}
            estate.add(disks[key], guessed=policy is None, storage_policy=effective.name, **demands)


def policies_of(manager: Any) -> dict[str, Policy]:  # noqa: ANN401
    """The storage policies that may be asked for, by their id."""
    from pyVmomi import pbm  # noqa: PLC0415

    storage = pbm.profile.ResourceType(resourceType="STORAGE")
    ids = manager.QueryProfile(resourceType=storage, profileCategory="REQUIREMENT")
    # An empty list of ids is an invalid request.
    profiles = manager.RetrieveContent(ids) if ids else ()
    return {str(profile.profileId.uniqueId): policy_of(profile) for profile in profiles}


def policy_of(profile: Any) -> Policy:  # noqa: ANN401
    """Name and demands of a policy. Of rule sets that differ in a rule, none of the values is taken.

    Source: vSAN Management API reference, policy capabilities (hostFailuresToTolerate, subFailuresToTolerate,
    replicaPreference, stripeWidth, proportionalCapacity, forceProvisioning, iopsLimit).
    """
    rules: dict[str, set[Any]] = {}
    for rule_set in of(profile, "constraints.subProfiles") or ():
        for rule in rule_set.capability or ():
            if str(rule.id.namespace).upper() == _NAME_SPACE:
                rules.setdefault(str(rule.id.id), set()).add(_value_of(rule))
    agreed = {name: values.pop() for name, values in rules.items() if len(values) == 1}
    return Policy(str(profile.name), _demands(agreed))


def _value_of(rule: Any) -> bool | int | float | str | None:  # noqa: ANN401
    """The plain value of a rule; None for a range, a set, or a rule of several values."""
    values = [one.value for constraint in rule.constraint or () for one in constraint.propertyInstance or ()]
    return values[0] if len(values) == 1 and isinstance(values[0], bool | int | float | str) else None


def _demands(rules: dict[str, Any]) -> dict[str, Any]:
    # In a stretched cluster the first counts sites, the second hosts within a site; either may be there alone.
    counts = [rules.get(name) for name in ("hostFailuresToTolerate", "subFailuresToTolerate")]
    sites, hosts = (count if isinstance(count, int) else None for count in counts)
    inside = hosts if hosts is not None else sites
    limit = rules.get("iopsLimit")
    demands = {
        "vsan_ftt": max((count for count in (sites, hosts) if count is not None), default=None),
        "vsan_raid": _raid(inside, rules.get("replicaPreference"), mirrored_sites=hosts is not None and bool(sites)),
        "vsan_stripe_count": rules.get("stripeWidth"),
        "vsan_space_reservation_pct": rules.get("proportionalCapacity"),
        "vsan_force_provisioning": rules.get("forceProvisioning"),
        "iops_limit": float(limit) if isinstance(limit, int | float) and limit > 0 else None,  # 0 is none
    }
    return {name: value for name, value in demands.items() if value is not None}


def _raid(failures: int | None, preference: object, *, mirrored_sites: bool) -> str | None:
    """Layout on the hosts: vSAN mirrors unless its erasure coding is asked for, whose width is in the failures."""
    if failures is None:
        return None
    if failures == 0:
        return "raid-1" if mirrored_sites else "raid-0"
    coded = str(preference or "").upper().startswith("RAID-5")
    return _CODED.get(failures) if coded else "raid-1"


def _associated(manager: Any, disks: dict[str, Entity]) -> dict[str, list[str]]:  # noqa: ANN401
    """Ids of the policies of each disk, without disks the service cannot tell of."""
    from pyVmomi import pbm  # noqa: PLC0415

    associated: dict[str, list[str]] = {}
    waiting = iter(disks)
    while keys := list(islice(waiting, DISKS_PER_QUESTION)):
        asked = [pbm.ServerObjectRef(objectType="virtualDiskId", key=key) for key in keys]
        for answer in manager.QueryAssociatedProfiles(entities=asked) or ():
            if of(answer, "fault") is None and str(answer.object.key) in disks:
                associated[str(answer.object.key)] = [str(one.uniqueId) for one in answer.profileId or ()]
    return associated


def _defaults(estate: VcenterInventory, manager: Any) -> dict[str, Policy]:  # noqa: ANN401
    """Default policy of each vSAN datastore by the datastore's name; nothing is asked where there is none."""
    from pyVmomi import pbm  # noqa: PLC0415

    inventory = estate.inventory
    names = {key: store.name for key, store in estate.datastores.items() if inventory.get(store, "type") == _VSAN}
    hubs = [pbm.placement.PlacementHub(hubType="Datastore", hubId=key) for key in names]
    defaults: dict[str, Policy] = {}
    for answer in (manager.QueryDefaultRequirementProfiles(datastores=hubs) or ()) if hubs else ():
        if of(answer, "defaultProfile") is not None:
            policy = policy_of(answer.defaultProfile)
            defaults |= {names[str(hub.hubId)]: policy for hub in answer.datastores or () if str(hub.hubId) in names}
    return defaults
