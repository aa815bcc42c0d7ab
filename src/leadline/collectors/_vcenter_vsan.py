"""vSAN as vCenter describes it: disk groups, what the hosts' disks hold, and settings of the cluster's services."""

from __future__ import annotations

import json
from typing import Any

from leadline.collectors import _vcenter_vsan_objects as vsan_objects
from leadline.collectors._vcenter_estate import BYTES_PER_GIB, VcenterInventory
from leadline.collectors._vcenter_services import Services, asking
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import of

# What is asked of each vSAN disk; the answer of one host is about every disk of the cluster.
DISK_FIELDS = ["uuid", "owner", "capacity", "capacityUsed", "lsom_objects_count"]
_SERVICE = "/vsanHealth"
_VERSION = "vsan.version.version7"  # 6.7, the first to tell of the performance service
_NEEDS = "it needs the Read-only role on the cluster"


def add_host(estate: VcenterInventory, host: Entity, config: Any) -> None:  # noqa: ANN401 - pyVmomi makes its types at run time
    """What a host brings into vSAN: its own id, and disk groups with the devices they are made of.

    A disk group goes by its cache device, as vSAN itself names it by that device's UUID.

    Source: vSphere Web Services API reference, VsanHostConfigInfo, VsanHostDiskMapping, HostScsiDisk.
    """
    if not of(config, "enabled"):
        return
    estate.add(host, uuid=of(config, "clusterInfo.nodeUuid") or None)
    for mapping in of(config, "storageInfo.diskMapping") or ():
        cache, capacity = mapping.ssd, list(mapping.nonSsd or [])
        for disk in (cache, *capacity):
            add_device(estate, disk, host)
        sizes = [size_gib(disk) for disk in capacity]
        flash = {of(disk, "ssd") for disk in capacity}
        estate.add(
            Entity(EntityKind.DISK_GROUP, str(cache.canonicalName), host),
            uuid=of(cache, "vsanDiskInfo.vsanUuid") or None,
            cache_device=str(cache.canonicalName),
            cache_gib=size_gib(cache),
            capacity_devices=[str(disk.canonicalName) for disk in capacity],
            capacity_device_count=len(capacity),
            capacity_gib=sum(s for s in sizes if s is not None) if None not in sizes else None,
            capacity_medium="hdd" if False in flash else "flash" if flash == {True} else None,
        )


def add_device(estate: VcenterInventory, disk: Any, host: Entity) -> None:  # noqa: ANN401
    """A disk of vSAN under the name the hypervisor gives it."""
    estate.add(
        Entity(EntityKind.DEVICE, str(disk.canonicalName), host),
        uuid=of(disk, "vsanDiskInfo.vsanUuid") or None,
        size_gib=size_gib(disk),
        medium=None if of(disk, "ssd") is None else "flash" if disk.ssd else "hdd",
    )


def size_gib(disk: Any) -> float | None:  # noqa: ANN401
    """Size of a disk in GiB."""
    blocks, block_size = of(disk, "capacity.block"), of(disk, "capacity.blockSize")
    return None if blocks is None or block_size is None else blocks * block_size / BYTES_PER_GIB


def add_disk_use(estate: VcenterInventory, cluster: Entity, answer: str) -> None:
    """Components and fullness by host, from what one host of the cluster says of every vSAN disk; hosts first.

    Components are counted on all disks, fullness on those that are known to be capacity devices: a full cache is
    nothing to level. Without disk groups (ESA) no fullness is told.

    Source: vSphere Web Services API reference, HostVsanInternalSystem.QueryPhysicalVsanDisks (JSON by disk).
    """
    disks = _objects(answer)
    nodes = {str(uuid): host for host in estate.hosts.values() if (uuid := estate.inventory.get(host, "uuid"))}
    counts: dict[Entity, int] = {}
    full: dict[Entity, list[float]] = {}
    for key, disk in disks.items():
        host = nodes.get(str(disk.get("owner")))
        if host is None:
            continue
        components = _number(disk.get("lsom_objects_count"))
        if components is not None:
            counts[host] = counts.get(host, 0) + int(components)
        size, used = _number(disk.get("capacity")), _number(disk.get("capacityUsed"))
        if size and used is not None and str(disk.get("uuid") or key) in _capacity_uuids(estate, host):
            full.setdefault(host, []).append(100.0 * used / size)
    for host in nodes.values():
        estate.add(host, vsan_component_count=counts.get(host), vsan_device_used_pct=full.get(host))
    estate.add(cluster, vsan_component_count=sum(counts.values()) if counts else None)


def _objects(answer: str) -> dict[str, dict[str, Any]]:
    """The answer's object for each disk; none where it is no JSON (a host that cannot tell answers "BAD")."""
    try:
        objects = json.loads(answer)
    except (ValueError, RecursionError):
        return {}
    return {key: disk for key, disk in objects.items() if isinstance(disk, dict)} if isinstance(objects, dict) else {}


def _number(value: Any) -> float | None:  # noqa: ANN401
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) and value >= 0 else None


def _capacity_uuids(estate: VcenterInventory, host: Entity) -> set[str]:
    groups = estate.inventory.children(host, EntityKind.DISK_GROUP)
    names = [name for group in groups for name in estate.inventory.get(group, "capacity_devices") or ()]
    return {str(estate.inventory.get(Entity(EntityKind.DEVICE, name, host), "uuid")) for name in names}


def read_services(estate: VcenterInventory, services: Services, clusters: list[tuple[Any, Entity]]) -> None:
    """Deduplication, encryption, health and the like of vSAN clusters, which only vCenter's vSAN service knows."""
    from pyVmomi import vim  # noqa: PLC0415 - 0.5 s that only this collector needs

    if not clusters:
        return
    with services.at(_SERVICE, _VERSION) as stub:
        with asking(estate, "settings of the vSAN service", needs=_NEEDS):
            configs = vim.cluster.VsanVcClusterConfigSystem("vsan-cluster-config-system", stub)
            for reference, cluster in clusters:
                add_services(estate, cluster, configs.VsanClusterGetConfig(cluster=reference))
        with asking(estate, "results of the vSAN health check", needs=_NEEDS):
            health = vim.cluster.VsanVcClusterHealthSystem("vsan-cluster-health-system", stub)
            for reference, cluster in clusters:
                # From the cache: a new check would be run on every host.
                asked = {"cluster": reference, "fields": ["overallHealth"], "fetchFromCache": True}
                summary = health.VsanQueryVcClusterHealthSummary(**asked)
                estate.add(cluster, vsan_health=of(summary, "overallHealth") or None)
        with asking(estate, "health of vSAN objects", needs=_NEEDS):
            objects = vim.cluster.VsanObjectSystem("vsan-cluster-object-system", stub)
            vsan_objects.read_health(estate, clusters, objects.VsanQueryObjectIdentities)


def add_services(estate: VcenterInventory, cluster: Entity, config: Any) -> None:  # noqa: ANN401
    """Settings of the vSAN services of a cluster.

    Source: vSAN Management API reference, VsanConfigInfoEx.
    """
    estate.add(
        cluster,
        uuid=of(config, "defaultConfig.uuid") or None,
        vsan_dedup=of(config, "dataEfficiencyConfig.dedupEnabled"),
        vsan_compression=of(config, "dataEfficiencyConfig.compressionEnabled"),
        vsan_encryption=of(config, "dataEncryptionConfig.encryptionEnabled"),
        vsan_performance_service=of(config, "perfsvcConfig.enabled"),
        vsan_iscsi_target_enabled=of(config, "iscsiConfig.enabled"),
    )
