"""Clusters, datastores and datastore clusters as vCenter describes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.collectors._vcenter_estate import BYTES_PER_GIB, VcenterInventory, word
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import id_of, kind, of

PROPERTIES = ["name", "host", "configurationEx", "summary", "alarmActionsEnabled"]
DATASTORE_PROPERTIES = ["name", "summary", "info", "host", "vm", "iormConfiguration"]
POD_PROPERTIES = ["childEntity", "podStorageDrsEntry.storageDrsConfig.podConfig"]
_AUTOMATION = {"fullyAutomated": "fully-automated", "partiallyAutomated": "partially-automated"}
_RULES = {"AffinityRuleSpec": "together", "AntiAffinityRuleSpec": "separate"}
_WATCHED = {"enabled": True, "disabled": False}


def add_cluster(estate: VcenterInventory, properties: dict[str, Any], levels: Mapping[str, int]) -> Entity:
    """A cluster; ``levels`` are vCenter's statistics levels by the interval in seconds.

    Source: vSphere Web Services API reference, ClusterConfigInfoEx, ClusterDasConfigInfo, ClusterDrsConfigInfo.
    """
    settings, hosts = properties.get("configurationEx"), properties.get("host") or []
    estate.cluster_of.update({id_of(host): properties["name"] for host in hosts})
    return estate.add(
        Entity(EntityKind.CLUSTER, properties["name"]),
        host_count=len(hosts),
        uuid=of(settings, "vsanConfigInfo.defaultConfig.uuid") or None,
        drs_enabled=of(settings, "drsConfig.enabled"),
        drs_automation=word(of(settings, "drsConfig.defaultVmBehavior"), _AUTOMATION),
        ha_enabled=of(settings, "dasConfig.enabled"),
        ha_admission_control=of(settings, "dasConfig.admissionControlEnabled"),
        ha_host_monitoring=_WATCHED.get(of(settings, "dasConfig.hostMonitoring")),
        evc_mode=of(properties.get("summary"), "currentEVCModeKey") or None,
        vsan_enabled=of(settings, "vsanConfigInfo.enabled"),
        vsan_esa=of(settings, "vsanConfigInfo.vsanEsaEnabled"),
        alarm_actions_enabled=properties.get("alarmActionsEnabled"),
        statistics_levels=dict(levels) or None,
    )


def add_rules(estate: VcenterInventory, cluster: Entity, settings: Any) -> None:  # noqa: ANN401
    """DRS rules between VMs that are on; the VMs must have been added. Rules of VMs and hosts are not of this kind.

    Source: vSphere Web Services API reference, ClusterAffinityRuleSpec, ClusterAntiAffinityRuleSpec.
    """
    if settings is None:
        return
    rules: dict[str, str] = {}
    for rule in settings.rule or ():
        if rule.enabled is not False and kind(rule) in _RULES:
            names = [estate.vms[key].name for vm in rule.vm or () if (key := id_of(vm)) in estate.vms]
            rules[str(rule.name)] = f"{_RULES[kind(rule)]}: {', '.join(names)}"
    estate.add(cluster, drs_rules=rules)


def add_datastore(estate: VcenterInventory, properties: dict[str, Any], key: str) -> None:
    """A datastore, and on the hosts that mount it which LUN it lies on; hosts must have been added.

    Source: vSphere Web Services API reference, DatastoreSummary, VmfsDatastoreInfo, StorageIORMInfo.
    """
    summary, volume = properties.get("summary"), of(properties.get("info"), "vmfs")
    extents = [str(extent.diskName) for extent in of(volume, "extent") or ()]
    mounts = properties.get("host")
    hosts = [
        host
        for mount in mounts or ()
        if of(mount, "mountInfo.mounted") is not False and (host := estate.hosts.get(id_of(mount.key)))
    ]
    size, free = of(summary, "capacity"), of(summary, "freeSpace")
    promised = None if size is None or free is None else size - free + (of(summary, "uncommitted") or 0)
    flash, type_name = of(volume, "ssd"), of(summary, "type")
    estate.datastores[key] = estate.add(
        Entity(EntityKind.DATASTORE, properties["name"]),
        type=None if type_name is None else str(type_name).casefold(),
        capacity_gib=None if size is None else size / BYTES_PER_GIB,
        free_gib=None if free is None else free / BYTES_PER_GIB,
        provisioned_gib=None if promised is None else promised / BYTES_PER_GIB,
        accessible=of(summary, "accessible"),
        version=of(volume, "version"),
        # The flag is only known to be right where it says flash: an array's LUN is "not SSD" by default.
        medium="flash" if flash else None,
        extent_count=len(extents) if volume is not None else None,
        host_count=None if mounts is None else len(hosts),
        hosts=None if mounts is None else [host.name for host in hosts],
        vm_count=None if properties.get("vm") is None else len(properties["vm"]),
        sioc_enabled=of(properties.get("iormConfiguration"), "enabled"),
        sioc_threshold_ms=of(properties.get("iormConfiguration"), "congestionThreshold"),
    )
    if len(extents) == 1:
        estate.luns[properties["name"]] = extents[0]
    for host in hosts:
        for extent in extents:
            device = Entity(EntityKind.DEVICE, extent, host)
            if device in estate.inventory.facts:
                estate.add(device, datastore=properties["name"])


def add_pod(estate: VcenterInventory, properties: dict[str, Any]) -> None:
    """What Storage DRS does with the datastores of a datastore cluster; nothing where it is off.

    Source: vSphere Web Services API reference, StorageDrsPodConfigInfo.
    """
    config = properties.get("podStorageDrsEntry.storageDrsConfig.podConfig")
    if not of(config, "enabled"):
        return
    balances = of(config, "ioLoadBalanceEnabled")
    for child in properties.get("childEntity") or ():
        datastore = estate.datastores.get(id_of(child))
        if datastore is not None:
            estate.add(
                datastore,
                sdrs_io_balance=balances,
                sdrs_latency_threshold_ms=of(config, "ioLoadBalanceConfig.ioLatencyThreshold") if balances else None,
                sdrs_automation=of(config, "defaultVmBehavior"),
            )
