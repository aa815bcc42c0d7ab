"""vCenter or a single ESXi host: clusters, hosts, VMs, disks, datastores and networks as they are configured now.

Collects:
    Hosts (hardware, firmware, version, power policy, time, options, sensors, certificate, storage adapters, devices and
    paths, network cards, switches, port groups), VMs (size, limits, reservations, shares, hot add, NUMA and other
    advanced settings, hardware version, VMware Tools, snapshots, controllers, disks, NICs, other devices), datastores
    with Storage I/O Control and Storage DRS, clusters with DRS and its rules, HA, EVC and vSAN, distributed switches.
    Templates are left out.

Cost:
    Up to ten property-collector queries, paged; read-only. About 5 ms of processor time per VM here, less on vCenter.

Late or missing data:
    The answer is of the moment of the query. What the account may not see, and what an older vCenter does not have, is
    missing and not told by vCenter. What the vSAN service alone knows (deduplication, policies, health), compatibility
    lists and settings of the BIOS are not in this interface.

Sources:
    vSphere Web Services API reference: PropertyCollector, VirtualMachine, HostSystem, Datastore, StoragePod,
    ClusterComputeResource, VmwareDistributedVirtualSwitch.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

from leadline.collectors import _vcenter_cluster as clusters
from leadline.collectors import _vcenter_host as hosts
from leadline.collectors import _vcenter_network as networks
from leadline.collectors import _vcenter_vm as machines
from leadline.collectors._vcenter_estate import Estate, id_of
from leadline.core.capture import Capture, CaptureBuilder
from leadline.core.collector import Access, CollectorMeta
from leadline.core.entities import Entity
from leadline.core.errors import ToolError
from leadline.core.vocabulary import Layer

META = CollectorMeta(
    tool="vCenter",
    layers=(Layer.VM, Layer.HOST, Layer.DATASTORE),
    privilege="the Read-only role at the top of the inventory, propagated",
)

PAGE_SIZE = 500
_VCENTER = "VirtualCenter"  # apiType; an ESXi host answers HostAgent


def collect(access: Access, progress: Callable[[int, int], None] | None = None) -> Capture:
    """The inventory of a vCenter or ESXi host as a capture without series.

    Raises:
        ToolError: it cannot be reached, its certificate is not trusted, or it refuses the login.
    """
    from pyVmomi import vmodl  # noqa: PLC0415 - see _connect

    session = _connect(access)
    try:
        builder = CaptureBuilder(f"vcenter:{access.host}", "vcenter", META.tool)
        content = session.RetrieveContent()
        _fill(content, builder, progress)
        return builder.build(host=access.host, tool_version=content.about.version)
    except (vmodl.MethodFault, OSError, KeyError) as error:
        raise ToolError(
            access.host,
            found=f"an answer that broke off ({type(error).__name__})",
            expected="the properties of hosts and VMs",
            advice="Try again; look at the rights of the user.",
        ) from error
    finally:
        _disconnect(session)


def _connect(access: Access) -> Any:  # noqa: ANN401 - pyVmomi makes its types at run time
    from pyVim.connect import SmartConnect  # noqa: PLC0415 - 0.5 s that only this collector needs
    from pyVmomi import vim, vmodl  # noqa: PLC0415

    try:
        return SmartConnect(
            host=access.host,
            port=access.port,
            user=access.user,
            pwd=access.password,
            # Given explicitly: without a context pyVmomi does not check the certificate.
            sslContext=_context(verify=access.verify),
            httpConnectionTimeout=access.timeout_s,
        )
    except vim.fault.InvalidLogin as error:
        raise ToolError(
            access.host,
            found=f"the login of {access.user} was refused",
            expected="a user with the Read-only role",
            advice="Check user and password; the password is read from LEADLINE_PASSWORD or asked for.",
        ) from error
    except ssl.SSLError as error:
        raise ToolError(
            access.host,
            found="a certificate this machine does not trust",
            expected="a trusted certificate",
            advice="Install the CA's certificate, or add --insecure when you know whom you talk to.",
        ) from error
    except (OSError, vmodl.MethodFault, ValueError) as error:
        raise ToolError(
            f"{access.host}:{access.port}",
            found=f"no answer of a vCenter ({type(error).__name__})",
            expected="a vCenter or ESXi host",
            advice="Check name, port and network.",
        ) from error


def _context(*, verify: bool) -> ssl.SSLContext:
    context = ssl.create_default_context()
    if not verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _disconnect(session: Any) -> None:  # noqa: ANN401 - see _connect
    from pyVim.connect import Disconnect  # noqa: PLC0415

    Disconnect(session)
    session._stub.DropConnections()  # Disconnect only logs out


def _fill(content: Any, builder: CaptureBuilder, progress: Callable[[int, int], None] | None) -> None:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    estate, now = Estate(builder.inventory, builder.info.name), machines.now_utc()
    has_clusters = content.about.apiType == _VCENTER
    found = list(_objects(content, vim.ClusterComputeResource, clusters.PROPERTIES)) if has_clusters else []
    levels = _statistics_levels(content) if found else {}
    settings = [(clusters.add_cluster(estate, own, levels), own.get("configurationEx")) for _, own in found]
    if has_clusters:
        _add_distributed_switches(content, estate)
    _add_hosts(content, estate, now)
    for thing, own in _objects(content, vim.Datastore, clusters.DATASTORE_PROPERTIES):
        clusters.add_datastore(estate, own, id_of(thing))
    if has_clusters:
        for _, own in _objects(content, vim.StoragePod, clusters.POD_PROPERTIES):
            clusters.add_pod(estate, own)
    _add_vms(content, estate, now, progress)
    for cluster, setting in settings:
        clusters.add_rules(estate, cluster, setting)


def _add_distributed_switches(content: Any, estate: Estate) -> None:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    switches = {
        id_of(thing): networks.add_switch(estate, own)
        for thing, own in _objects(content, vim.DistributedVirtualSwitch, networks.SWITCH_PROPERTIES)
    }
    if switches:
        for _, own in _objects(content, vim.dvs.DistributedVirtualPortgroup, networks.PORT_GROUP_PROPERTIES):
            networks.add_port_group(estate, own, switches)


def _add_hosts(content: Any, estate: Estate, now: datetime) -> None:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    certified: dict[str, tuple[Any, Entity]] = {}
    for thing, own in _objects(content, vim.HostSystem, hosts.PROPERTIES):
        host = hosts.add_host(estate, own, id_of(thing))
        networks.add_host_network(estate, own, host)
        manager = hosts.certificate_manager_of(own)
        if manager is not None:
            certified[manager[0]] = manager[1], host
    asked = [manager for manager, _ in certified.values()]
    for manager, own in _objects(content, vim.host.CertificateManager, ["certificateInfo"], asked):
        hosts.add_certificate(estate, certified[id_of(manager)][1], own.get("certificateInfo"), now)


def _add_vms(content: Any, estate: Estate, now: datetime, progress: Callable[[int, int], None] | None) -> None:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    found = list(_objects(content, vim.VirtualMachine, machines.PROPERTIES))
    with_snapshots = []
    for done, (thing, own) in enumerate(found, start=1):
        if not own.get("config.template"):
            estate.vms[id_of(thing)] = machines.add_vm(estate, own, now)
            if own.get("snapshot") is not None:
                with_snapshots.append(thing)
        if progress is not None and done % 100 == 0:
            progress(done, len(found))
    # The list of files is long; only of VMs with snapshots is it asked for.
    for thing, own in _objects(content, vim.VirtualMachine, ["layoutEx.file"], with_snapshots):
        machines.add_snapshot_size(estate, estate.vms[id_of(thing)], own.get("layoutEx.file"))


def _statistics_levels(content: Any) -> dict[str, int]:  # noqa: ANN401
    """Level of each interval that is kept, by its length in seconds; none where the account may not ask."""
    from pyVmomi import vmodl  # noqa: PLC0415

    try:
        intervals = content.perfManager.historicalInterval
    except vmodl.MethodFault:
        return {}
    return {str(own.samplingPeriod): own.level for own in intervals or () if own.enabled and own.level is not None}


def _objects(
    content: Any,  # noqa: ANN401
    kind: Any,  # noqa: ANN401
    properties: list[str],
    only: list[Any] | None = None,
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Reference and properties of every object of a kind, or of those named, in pages."""
    from pyVmomi import vmodl  # noqa: PLC0415

    query = vmodl.query.PropertyCollector
    if only is not None:
        yield from _pages(content, kind, properties, [query.ObjectSpec(obj=one, skip=False) for one in only])
        return
    view = content.viewManager.CreateContainerView(content.rootFolder, [kind], recursive=True)
    try:
        walk = query.TraversalSpec(name="view", path="view", skip=False, type=type(view))
        yield from _pages(content, kind, properties, [query.ObjectSpec(obj=view, skip=True, selectSet=[walk])])
    finally:
        view.Destroy()


def _pages(
    content: Any,  # noqa: ANN401
    kind: Any,  # noqa: ANN401
    properties: list[str],
    objects: list[Any],
) -> Iterator[tuple[Any, dict[str, Any]]]:
    """Answers page by page; what this vCenter does not have, or no longer, is left out and the rest asked for again."""
    from pyVmomi import vmodl  # noqa: PLC0415

    query = vmodl.query
    collector, asked = content.propertyCollector, list(properties)
    page: Any = None
    options = query.PropertyCollector.RetrieveOptions(maxObjects=PAGE_SIZE)
    while asked and objects:
        wanted = query.PropertyCollector.PropertySpec(type=kind, pathSet=asked, all=False)
        spec = query.PropertyCollector.FilterSpec(objectSet=objects, propSet=[wanted])
        try:
            page = collector.RetrievePropertiesEx([spec], options)
            break
        except query.InvalidProperty as error:
            if error.name not in asked:
                raise
            asked.remove(error.name)
        except vmodl.fault.ManagedObjectNotFound as error:
            left = [spec for spec in objects if id_of(spec.obj) != id_of(error.obj)]
            if len(left) == len(objects):
                raise  # the view itself is gone
            objects = left
    while page is not None:
        for found in page.objects:
            yield found.obj, {p.name: p.val for p in found.propSet}
        page = collector.ContinueRetrievePropertiesEx(page.token) if page.token else None
