"""vCenter or a single ESXi host: clusters, hosts, VMs, disks, datastores and networks as they are configured now.

Collects:
    Hosts (hardware, firmware, version, power policy, time, options, sensors, certificate, storage adapters, devices and
    paths, network cards, switches, port groups, outages of storage in the last day), VMs (size, limits, reservations,
    shares, hot add, NUMA and other advanced settings, hardware version, VMware Tools, snapshots, controllers, disks,
    NICs, other devices), storage policies of disks, datastores with Storage I/O Control and Storage DRS, clusters with
    DRS and its rules, HA and EVC, distributed switches; of vSAN disk groups, fullness and components of hosts,
    deduplication, compression, encryption and health, and of each virtual disk on it the hosts, devices and disk groups
    that hold its components. UUIDs by which vSAN's own recordings name hosts, disks and VMs. Templates are left out.

Cost:
    Up to eleven property-collector queries, paged, one question for events and one for each 500 virtual disks, up to
    three for each vSAN cluster and two for each 100 objects behind its virtual disks, one for each distributed switch
    whose port groups do not grow; read-only. About 2 ms of processor time per VM here, less on vCenter.

Late or missing data:
    Watched, real-time counters (20 s) of VMs and hosts and those of 5 minutes of datastores and clusters are given as
    vCenter posts them, up to 15 minutes late, of datastores up to 40; what is later is a gap. Changes of the inventory
    are seen within a minute.

    The answer is of the moment of the query; events are of the last day. What is refused, and a service that is not
    there, is left out with a warning. Objects the account may not see at all, and what an older vCenter does not have,
    are missing and not told by vCenter. Where the components of a disk lie is left out where its vSAN datastore is that
    of another cluster than its VM's. The side-channel aware scheduler is as set for the next boot. Compatibility lists
    and settings of the BIOS are not in these interfaces.

Sources:
    vSphere Web Services API reference: PropertyCollector, VirtualMachine, HostSystem, Datastore, StoragePod,
    ClusterComputeResource, VmwareDistributedVirtualSwitch, EventManager. Storage Policy API reference. vSAN Management
    API reference.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from leadline.collectors import _vcenter_cluster as clusters
from leadline.collectors import _vcenter_events as events
from leadline.collectors import _vcenter_host as hosts
from leadline.collectors import _vcenter_network as networks
from leadline.collectors import _vcenter_policies as policies
from leadline.collectors import _vcenter_vm as machines
from leadline.collectors import _vcenter_vsan as vsan
from leadline.collectors import _vcenter_vsan_objects as vsan_objects
from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_live.access import live_access
from leadline.collectors._vcenter_live.estate import EstateReader, Seen
from leadline.collectors._vcenter_live.sampling import LiveOptions, VcenterLive
from leadline.collectors._vcenter_services import Services, asking
from leadline.core.contracts.collector import Access, CollectorMeta
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import Layer
from leadline.core.system.addresses import Address
from leadline.estate.knowledge.vcenter_session import connect, context_of, disconnect, id_of, objects, of

META = CollectorMeta(
    tool="vCenter",
    layers=(Layer.VM, Layer.HOST, Layer.DATASTORE),
    privilege="the Read-only role at the top of the inventory, propagated; for policies Profile-driven storage view",
)

_Ask = Callable[..., Iterator[tuple[Any, dict[str, Any]]]]  # `objects` of one vCenter
_VSAN_ON = "vsanConfigInfo.enabled"
_VCENTER = "VirtualCenter"  # apiType; an ESXi host answers HostAgent


def collect(access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
    """The inventory of a vCenter or ESXi host as a capture without series.

    Raises:
        ToolError: it cannot be reached, its certificate is not trusted, or it refuses the login.
    """
    from pyVmomi import vmodl  # noqa: PLC0415 - 0.5 s that only what talks to vCenter needs

    context = context_of(access)
    session = connect(access, context)
    try:
        builder = CaptureBuilder(f"vcenter:{access.host}", "vcenter", META.tool)
        content = session.RetrieveContent()
        estate = VcenterInventory(builder.inventory, builder.info.name)
        _fill(content, estate, Services(access, context, session._stub), progress)
        for omission in estate.left_out:
            builder.warn("left-out", f"left out: {omission}")
        for name, count in estate.refused.items():
            builder.warn("left-out", f"left out: properties of {name} that the account may not read", count)
        return builder.build(host=access.host, tool_version=content.about.version)
    except (vmodl.MethodFault, OSError, KeyError) as error:
        raise ToolError(
            access.host,
            found=f"an answer that broke off ({type(error).__name__})",
            expected="the properties of hosts and VMs",
            advice="Try again; look at the rights of the user.",
        ) from error
    finally:
        disconnect(session)


def watch(target: Address, **options: int | str | bool) -> VcenterLive:
    """A live source of the vCenter or ESXi host ``target``, as ``vc1.example`` or ``https://user@vc1.example:443``.

    The password is that of the target, else LEADLINE_PASSWORD.

    Args:
        target: its name or address.
        options: ``user``; ``ca_file`` with the only certificates that are trusted; ``insecure``, and no certificate is
            checked; ``every`` counter, not only those with a metric; ``inventory_s``, how often the inventory is looked
            at, seconds (60); ``timeout_s`` of a question (60).

    Raises:
        UsageError: an option is not known, the target is none, no user is named, or the CA file cannot be read.
        ToolError: it cannot be reached, its certificate is not trusted, or it refuses the login.
    """
    access, context = live_access(target, options)
    chosen = LiveOptions(bool(options.get("every", False)), float(options.get("inventory_s", 60)))
    return VcenterLive(access, context, EstateReader(_read_others, _read_vms), chosen)


def _read_others(content: Any, estate: VcenterInventory) -> None:  # noqa: ANN401
    """Hosts, datastores and clusters with their parts, without what only a plan or an audit asks for."""
    from pyVmomi import vim  # noqa: PLC0415

    ask, now = partial(objects, content, refused=estate.refused), machines.now_utc()
    if content.about.apiType == _VCENTER:
        for _, properties in ask(vim.ClusterComputeResource, clusters.PROPERTIES):
            clusters.add_cluster(estate, properties, {})
        _add_distributed_switches(ask, estate)
    _add_hosts(ask, estate, now)
    for reference, properties in ask(vim.Datastore, clusters.DATASTORE_PROPERTIES):
        clusters.add_datastore(estate, properties, id_of(reference))


def _read_vms(content: Any, estate: VcenterInventory, seen: Seen, keys: Sequence[str] | None) -> None:  # noqa: ANN401
    """VMs by their ids, or all of them."""
    from pyVmomi import vim  # noqa: PLC0415

    ask, stub = partial(objects, content, refused=estate.refused), content.propertyCollector._stub
    only = None if keys is None else [vim.VirtualMachine(key, stub) for key in keys]
    _add_vms(ask, estate, machines.now_utc(), seen=seen, only=only)


def _fill(
    content: Any,  # noqa: ANN401
    estate: VcenterInventory,
    services: Services,
    progress: Callable[[int, int], None] | None,
) -> None:
    from pyVmomi import vim  # noqa: PLC0415

    ask, now = partial(objects, content, refused=estate.refused), machines.now_utc()
    has_clusters = content.about.apiType == _VCENTER
    reported = list(ask(vim.ClusterComputeResource, clusters.PROPERTIES)) if has_clusters else []
    levels = _statistics_levels(content) if reported else {}
    added = [(one, properties, clusters.add_cluster(estate, properties, levels)) for one, properties in reported]
    if has_clusters:
        _add_distributed_switches(ask, estate)
    members = _add_hosts(ask, estate, now)
    events.read(estate, content.eventManager, now)
    for reference, properties in ask(vim.Datastore, clusters.DATASTORE_PROPERTIES):
        clusters.add_datastore(estate, properties, id_of(reference))
    if has_clusters:
        for _, properties in ask(vim.StoragePod, clusters.POD_PROPERTIES):
            clusters.add_pod(estate, properties)
    _add_vms(ask, estate, now, progress)
    for _, properties, cluster in added:
        clusters.add_rules(estate, cluster, properties.get("configurationEx"))
    if has_clusters:
        policies.read(estate, services)
    _add_vsan(estate, services, [(t, c) for t, o, c in added if of(o.get("configurationEx"), _VSAN_ON)], members)


def _add_distributed_switches(ask: _Ask, estate: VcenterInventory) -> None:
    from pyVmomi import vim  # noqa: PLC0415

    switches, references = {}, []
    for reference, properties in ask(vim.DistributedVirtualSwitch, networks.SWITCH_PROPERTIES):
        switches[id_of(reference)] = networks.add_switch(estate, properties)
        references.append(reference)
    if switches:
        for _, properties in ask(vim.dvs.DistributedVirtualPortgroup, networks.PORT_GROUP_PROPERTIES):
            networks.add_port_group(estate, properties, switches)
    for reference in references:
        networks.add_free_ports(estate, reference)


def _add_hosts(ask: _Ask, estate: VcenterInventory, now: datetime) -> dict[str, Any]:
    """Hosts with all their parts; returned is, for each vSAN host that answers, the manager that knows its disks."""
    from pyVmomi import vim  # noqa: PLC0415

    certified: dict[str, tuple[Any, Entity]] = {}
    systems: dict[str, tuple[Any, Entity]] = {}
    members: dict[str, Any] = {}
    for reference, properties in ask(vim.HostSystem, hosts.PROPERTIES):
        host = hosts.add_host(estate, properties, id_of(reference))
        networks.add_host_network(estate, properties, host)
        _note(certified, properties.get("configManager.certificateManager"), host)
        if of(properties.get("config.vsanHostConfig"), "enabled"):
            _note(systems, properties.get("configManager.vsanSystem"), host)
            if properties.get("runtime.connectionState") == "connected":
                members[id_of(reference)] = properties.get("configManager.vsanInternalSystem")
    for manager, properties in ask(vim.host.CertificateManager, ["certificateInfo"], _asked(certified)):
        hosts.add_certificate(estate, certified[id_of(manager)][1], properties.get("certificateInfo"), now)
    for system, properties in ask(vim.host.VsanSystem, ["config"], _asked(systems)):
        vsan.add_host(estate, systems[id_of(system)][1], properties.get("config"))
    return members


def _note(managers: dict[str, tuple[Any, Entity]], manager: Any, host: Entity) -> None:  # noqa: ANN401
    if manager is not None:
        managers[id_of(manager)] = manager, host


def _asked(managers: dict[str, tuple[Any, Entity]]) -> list[Any]:
    return [manager for manager, _ in managers.values()]


def _add_vsan(
    estate: VcenterInventory, services: Services, added: list[tuple[Any, Entity]], members: dict[str, Any]
) -> None:
    """What is known of vSAN clusters as wholes: one host of each knows disks and objects, vCenter the services."""
    for _, cluster in added:
        hosts_in = (key for key, name in estate.cluster_of.items() if name == cluster.name)
        asked = next((key for key in hosts_in if members.get(key) is not None), None)
        if asked is not None:
            with asking(estate, "components and fullness of vSAN disks", needs="it needs the Read-only role on hosts"):
                answer = members[asked].QueryPhysicalVsanDisks(props=vsan.DISK_FIELDS)
                vsan.add_disk_use(estate, cluster, answer or "")
            vsan_objects.read_placement(estate, cluster, members[asked])
    vsan.read_services(estate, services, added)


def _add_vms(
    ask: _Ask,
    estate: VcenterInventory,
    now: datetime,
    progress: Callable[[int, int], None] | None = None,
    seen: Seen | None = None,
    only: list[Any] | None = None,
) -> None:
    from pyVmomi import vim  # noqa: PLC0415

    reported: Iterable[tuple[Any, dict[str, Any]]] = ask(vim.VirtualMachine, machines.PROPERTIES, only)
    count = 0
    if progress is not None:  # else page by page: the properties of 10,000 VMs are a gigabyte
        reported = list(reported)
        count = len(reported)
    with_snapshots = []
    for done, (reference, properties) in enumerate(reported, start=1):
        if not properties.get("config.template"):
            vm = estate.vms[id_of(reference)] = machines.add_vm(estate, properties, now)
            if seen is not None:
                seen(id_of(reference), vm, properties)
            if properties.get("snapshot") is not None:
                with_snapshots.append(reference)
        if progress is not None and done % 100 == 0:
            progress(done, count)
    # The list of files is long; only of VMs with snapshots is it asked for.
    for reference, properties in ask(vim.VirtualMachine, ["layoutEx.file"], with_snapshots):
        machines.add_snapshot_size(estate, estate.vms[id_of(reference)], properties.get("layoutEx.file"))


def _statistics_levels(content: Any) -> dict[str, int]:  # noqa: ANN401
    """Level of each interval that is kept, by its length in seconds; none where the account may not ask."""
    from pyVmomi import vmodl  # noqa: PLC0415

    try:
        intervals = content.perfManager.historicalInterval
    except vmodl.MethodFault:
        return {}
    kept = [interval for interval in intervals or () if interval.enabled and interval.level is not None]
    return {str(interval.samplingPeriod): interval.level for interval in kept}
