"""What a vCenter is asked before a fleet of workers is made: what there is, and what the account may do.

Sources: vSphere Web Services API reference: SearchIndex, AuthorizationManager.HasPrivilegeOnEntities.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any

from leadline.app.fleet import model as fleet
from leadline.app.fleet.model import FleetPlan, FleetSpec, Offer
from leadline.core.contracts.collector import Access
from leadline.core.model.errors import ToolError
from leadline.estate.knowledge.vcenter_session import connect, context_of, disconnect, id_of, kind, objects, of

_TEMPLATE = (
    "name",
    "parent",
    "config.template",
    "config.hardware.device",
    "config.hardware.memoryMB",
    "runtime.powerState",
    "guest.toolsVersionStatus2",
    "summary.storage",
    "network",
)
_HOST = ("name", "parent", "network", "runtime.connectionState", "runtime.inMaintenanceMode", "runtime.powerState")
_COMPUTE = ("name", "resourcePool", "host")
_DATASTORE = ("name", "host", "summary.accessible", "summary.maintenanceMode", "summary.capacity", "summary.freeSpace")


@dataclass(slots=True)
class VcenterSite:
    """An open session with a vCenter."""

    access: Access
    session: Any
    content: Any

    def all(self, type_of: Any, properties: Sequence[str], only: list[Any] | None = None) -> Iterator[Any]:  # noqa: ANN401
        """Reference and properties of every object of a type, or of those named."""
        return objects(self.content, type_of, list(properties), only, refused=Counter())

    def at(self, type_of: Any, key: str) -> Any:  # noqa: ANN401
        """The object of an id."""
        return type_of(key, self.session._stub)


@contextlib.contextmanager
def site_of(access: Access) -> Iterator[VcenterSite]:
    """A session, closed afterwards.

    Raises:
        ToolError: no vCenter, no login, or an answer that is none.
    """
    from pyVmomi import vmodl  # noqa: PLC0415 - 0.5 s

    session = connect(access, context_of(access))
    try:
        yield VcenterSite(access, session, session.RetrieveContent())
    except (vmodl.MethodFault, OSError, HTTPException) as error:
        raise ToolError(
            access.host,
            found=f"it refused or broke off ({error_line(error)})",
            expected="an answer",
            advice="Look at the events of vCenter and at the rights of the account.",
        ) from error
    finally:
        with contextlib.suppress(vmodl.MethodFault, OSError, HTTPException):
            disconnect(session)


def error_line(error: Any) -> str:  # noqa: ANN401
    """Return an error of vCenter in a line: its type and its message."""
    text = of(error, "localizedMessage") or of(error, "msg") or of(error, "reason") or ""
    name = kind(of(error, "fault") or error) or type(error).__name__
    return f"{name}: {' '.join(str(text).split())[:120]}" if text else name


def offer_of(site: VcenterSite, spec: FleetSpec) -> Offer:
    """Return templates, hosts, datastores, networks, pools and folders of a vCenter, in half a dozen queries."""
    from pyVmomi import vim  # noqa: PLC0415

    computes = {id_of(ref): (ref, properties) for ref, properties in site.all(vim.ComputeResource, _COMPUTE)}
    named = [
        ref for ref, properties in site.all(vim.VirtualMachine, ["name"]) if properties.get("name") == spec.template
    ]
    names = frozenset(
        properties["name"] for _, properties in site.all(vim.VirtualMachine, ["name"]) if "name" in properties
    )
    if "/" in spec.template:
        machine = site.content.searchIndex.FindByInventoryPath(spec.template)
        named = [machine] if isinstance(machine, vim.VirtualMachine) else []
    templates = list(site.all(vim.VirtualMachine, _TEMPLATE, named)) if named else []
    return Offer(
        can_clone=site.content.about.apiType == "VirtualCenter",
        templates=tuple(_template(ref, properties) for ref, properties in templates),
        hosts=tuple(_host(ref, properties, computes) for ref, properties in site.all(vim.HostSystem, _HOST)),
        datastores=tuple(_datastore(ref, properties) for ref, properties in site.all(vim.Datastore, _DATASTORE)),
        networks=tuple(
            fleet.NetworkFacts(id_of(ref), str(properties.get("name")), kind(ref))
            for ref, properties in site.all(vim.Network, ["name"])
        ),
        pools=_pools(site, computes),
        folders=_folders(site, spec, templates),
        vm_names=names,
    )


def _template(ref: Any, properties: dict[str, Any]) -> fleet.TemplateFacts:  # noqa: ANN401
    from pyVmomi import vim  # noqa: PLC0415

    devices = properties.get("config.hardware.device") or ()
    storage = properties.get("summary.storage")
    sizes = [int(d.capacityInKB) * 1024 for d in devices if isinstance(d, vim.vm.device.VirtualDisk)]
    stored = 0 if storage is None else storage.committed + storage.uncommitted
    return fleet.TemplateFacts(
        id=id_of(ref),
        name=str(properties.get("name")),
        is_template=bool(properties.get("config.template")),
        is_off=properties.get("runtime.powerState") == "poweredOff",
        has_tools=properties.get("guest.toolsVersionStatus2") not in (None, "guestToolsNotInstalled"),
        provisioned_bytes=max(sum(sizes), int(stored)),
        memory_bytes=int(properties.get("config.hardware.memoryMB") or 0) * 2**20,
        nic_count=sum(isinstance(device, vim.vm.device.VirtualEthernetCard) for device in devices),
        networks=frozenset(id_of(network) for network in properties.get("network") or ()),
        buses=frozenset(d.busNumber for d in devices if isinstance(d, vim.vm.device.VirtualSCSIController)),
        disk_count=len(sizes),
    )


def _host(ref: Any, properties: dict[str, Any], computes: dict[str, Any]) -> fleet.HostFacts:  # noqa: ANN401
    unusable = ""
    if properties.get("runtime.connectionState") != "connected":
        unusable = f"not connected ({properties.get('runtime.connectionState') or 'not known'})"
    elif properties.get("runtime.inMaintenanceMode"):
        unusable = "in maintenance mode"
    elif properties.get("runtime.powerState") not in ("poweredOn", None):
        unusable = f"not powered on ({properties['runtime.powerState']})"
    parent = properties.get("parent")
    compute = computes.get(id_of(parent), (None, {}))[1] if parent is not None else {}
    pool = compute.get("resourcePool")
    return fleet.HostFacts(
        id=id_of(ref),
        name=str(properties.get("name")),
        cluster=str(compute.get("name", "")),
        unusable=unusable or ("" if pool is not None else "its resource pool may not be seen"),
        networks=frozenset(id_of(network) for network in properties.get("network") or ()),
        pool="" if pool is None else id_of(pool),
    )


def _datastore(ref: Any, properties: dict[str, Any]) -> fleet.DatastoreFacts:  # noqa: ANN401
    unusable = "" if properties.get("summary.accessible") else "not accessible"
    if properties.get("summary.maintenanceMode") not in ("normal", None):
        unusable = f"in maintenance ({properties['summary.maintenanceMode']})"
    return fleet.DatastoreFacts(
        id=id_of(ref),
        name=str(properties.get("name")),
        unusable=unusable,
        capacity_bytes=int(properties.get("summary.capacity") or 0),
        free_bytes=int(properties.get("summary.freeSpace") or 0),
        hosts=frozenset(
            id_of(mount.key)
            for mount in properties.get("host") or ()
            if of(mount, "mountInfo.accessible") is not False and of(mount, "mountInfo.accessMode") != "readOnly"
        ),
    )


def _pools(site: VcenterSite, computes: dict[str, Any]) -> tuple[fleet.PoolFacts, ...]:
    from pyVmomi import vim  # noqa: PLC0415

    hosts = {
        key: frozenset(id_of(host) for host in properties.get("host") or ())
        for key, (_, properties) in computes.items()
    }
    return tuple(
        fleet.PoolFacts(id_of(ref), str(properties.get("name")), hosts.get(id_of(properties["owner"]), frozenset()))
        for ref, properties in site.all(vim.ResourcePool, ["name", "owner"])
        if "owner" in properties
    )


def _folders(site: VcenterSite, spec: FleetSpec, templates: list[Any]) -> tuple[str, ...]:
    """Ids of the folders asked for; else that of the template."""
    from pyVmomi import vim  # noqa: PLC0415

    if spec.folder is None:
        return tuple(
            {
                id_of(properties["parent"])
                for _, properties in templates
                if isinstance(properties.get("parent"), vim.Folder)
            }
        )
    if "/" in spec.folder:
        folder = site.content.searchIndex.FindByInventoryPath(spec.folder)
        return (id_of(folder),) if isinstance(folder, vim.Folder) else ()
    every = site.all(vim.Folder, ["name", "childType"])
    return tuple(
        id_of(ref)
        for ref, properties in every
        if properties.get("name") == spec.folder and "VirtualMachine" in (properties.get("childType") or ())
    )


def refused_privileges(site: VcenterSite, plan: FleetPlan) -> list[tuple[str, str]]:
    """Privileges the account lacks, with the name of what it lacks them on."""
    from pyVmomi import vim  # noqa: PLC0415

    types = {
        "template": vim.VirtualMachine,
        "vm": vim.VirtualMachine,
        "folder": vim.Folder,
        "pool": vim.ResourcePool,
        "datastore": vim.Datastore,
        "network": vim.Network,
    }
    manager, session = site.content.authorizationManager, site.content.sessionManager.currentSession
    refused = []
    for key, ids in plan.entities().items():
        entities = [site.at(types[key], entity_id) for entity_id in sorted(ids)]
        answer = manager.HasPrivilegeOnEntities(entities, session.key, list(fleet.PRIVILEGES[key]))
        for entity_privileges in answer:
            missing = [one.privId for one in entity_privileges.privAvailability if not one.isGranted]
            refused += [(privilege, f"{key} {entity_privileges.entity.name}") for privilege in missing]
    return refused
