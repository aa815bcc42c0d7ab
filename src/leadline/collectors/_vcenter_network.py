"""The network of hosts as vCenter describes it: physical cards, VMkernel interfaces, switches and port groups."""

from __future__ import annotations

from collections import Counter
from typing import Any

from leadline.collectors._vcenter_estate import VcenterInventory
from leadline.collectors._vcenter_services import asking
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.vcenter_session import id_of, of

SWITCH_PROPERTIES = ["name", "config"]
PORT_GROUP_PROPERTIES = ["name", "key", "config"]
BIT_PER_MBIT = 1e6
_FIXED = frozenset({"earlyBinding", "lateBinding"})  # a group with ephemeral ports makes them as they are needed
# Services of VMkernel interfaces; fault tolerance and provisioning have no word of their own and bear on no rule.
_TRAFFIC = {
    "management": "management",
    "vmotion": "vmotion",
    "vsan": "vsan",
    "vSphereReplication": "replication",
    "vSphereReplicationNFC": "replication",
}


def add_switch(estate: VcenterInventory, properties: dict[str, Any]) -> Entity:
    """A distributed switch.

    Source: vSphere Web Services API reference, VMwareDVSConfigInfo.
    """
    config = properties.get("config")
    return estate.add(
        Entity(EntityKind.VIRTUAL_SWITCH, properties["name"]),
        mtu_bytes=of(config, "maxMtu") or None,
        io_control=of(config, "networkResourceManagementEnabled"),
    )


def add_port_group(estate: VcenterInventory, properties: dict[str, Any], switches: dict[str, Entity]) -> None:
    """A distributed port group, under its switch; the group of the uplinks themselves is left out.

    Source: vSphere Web Services API reference, DVPortgroupConfigInfo, VMwareDVSPortSetting.
    """
    config = properties.get("config")
    switch = of(config, "distributedVirtualSwitch")
    if properties.get("key"):
        estate.port_groups[str(properties["key"])] = properties["name"]
    if of(config, "uplink"):
        return
    port = of(config, "defaultPortConfig")
    shaping = {way: of(port, f"{way}ShapingPolicy.enabled.value") for way in ("in", "out")}
    rates = [of(port, f"{way}ShapingPolicy.averageBandwidth.value") for way, on in shaping.items() if on]
    # Two switches may have groups of one name.
    parent = None if switch is None else switches.get(id_of(switch))
    order = of(port, "uplinkTeamingPolicy.uplinkPortOrder")
    group = Entity(EntityKind.PORT_GROUP, properties["name"], parent)
    is_fixed = of(config, "autoExpand") is False and of(config, "type") in _FIXED
    if properties.get("key") and switch is not None and is_fixed:
        ports = group, int(of(config, "numPorts") or 0)
        estate.fixed_ports.setdefault(id_of(switch), {})[str(properties["key"])] = ports
    estate.add(
        group,
        active_uplinks=None if order is None else list(order.activeUplinkPort or []),
        standby_uplinks=None if order is None else list(order.standbyUplinkPort or []),
        shaping_in=shaping["in"],
        shaping_out=shaping["out"],
        shaping_mbit_per_s=min((rate / BIT_PER_MBIT for rate in rates if rate is not None), default=None),
        promiscuous=_security(port, "allowPromiscuous"),
        forged_transmits=_security(port, "forgedTransmits"),
        mac_changes=_security(port, "macChanges"),
        ports_elastic=of(config, "autoExpand"),
    )


def add_free_ports(estate: VcenterInventory, switch: Any) -> None:  # noqa: ANN401 - pyVmomi makes its types at run time
    """Free ports of a switch's port groups that do not grow: one question, and none where all of them do.

    Source: vSphere Web Services API reference, DistributedVirtualSwitch.FetchDVPorts ("connected" is in use, whether
    the machine is on or not).
    """
    from pyVmomi import vim  # noqa: PLC0415 - 0.5 s that only this collector needs

    groups = estate.fixed_ports.get(id_of(switch), {})
    if not groups:
        return
    criteria = vim.dvs.PortCriteria(connected=True, inside=True, portgroupKey=list(groups))
    with asking(estate, "ports in use of distributed switches", needs="it needs the Read-only role on the switch"):
        used = Counter(str(port.portgroupKey) for port in switch.FetchDVPorts(criteria) or ())
        for key, (group, count) in groups.items():
            estate.add(group, ports_free_count=max(count - used[key], 0))


def add_host_network(estate: VcenterInventory, properties: dict[str, Any], host: Entity) -> None:
    """Cards, VMkernel interfaces, standard switches and their port groups of a host.

    Source: vSphere Web Services API reference, HostNetworkInfo, PhysicalNic, HostVirtualNic, HostPortGroup.
    """
    cards = {card.key: str(card.device) for card in properties.get("config.network.pnic") or ()}
    switches: dict[str, Entity] = {}
    switch_of: dict[str, str] = {}
    for switch in properties.get("config.network.vswitch") or ():
        uplinks = [cards[key] for key in switch.pnic or () if key in cards]
        switch_of |= dict.fromkeys(uplinks, str(switch.name))
        entity = Entity(EntityKind.VIRTUAL_SWITCH, str(switch.name), host)
        switches[switch.key] = estate.add(entity, mtu_bytes=switch.mtu, uplinks=uplinks)
    for proxy in properties.get("config.network.proxySwitch") or ():
        switch_of |= {cards[key]: str(proxy.dvsName) for key in proxy.pnic or () if key in cards}
    for card in properties.get("config.network.pnic") or ():
        link = card.linkSpeed
        estate.add(
            Entity(EntityKind.NIC, str(card.device), host),
            driver=card.driver or None,
            driver_version=of(card, "driverVersion") or None,
            firmware=of(card, "firmwareVersion") or None,
            connected=link is not None,
            speed_mbit_per_s=0 if link is None else link.speedMb,  # no link speed is told where there is no link
            duplex=None if link is None else "full" if link.duplex else "half",
            network=switch_of.get(str(card.device)),
        )
    for group in properties.get("config.network.portgroup") or ():
        _add_standard_group(estate, group, host, switches)
    _add_interfaces(estate, properties, host)


def _add_standard_group(estate: VcenterInventory, group: Any, host: Entity, switches: dict[str, Entity]) -> None:  # noqa: ANN401
    policy = of(group, "computedPolicy")
    order, bandwidth = of(policy, "nicTeaming.nicOrder"), of(policy, "shapingPolicy.averageBandwidth")
    shaped = of(policy, "shapingPolicy.enabled")
    estate.add(
        Entity(EntityKind.PORT_GROUP, str(group.spec.name), switches.get(group.vswitch, host)),
        active_uplinks=None if order is None else list(order.activeNic or []),
        standby_uplinks=None if order is None else list(order.standbyNic or []),
        shaping_out=shaped,  # a standard switch shapes outbound traffic alone
        shaping_mbit_per_s=bandwidth / BIT_PER_MBIT if shaped and bandwidth is not None else None,
        promiscuous=of(policy, "security.allowPromiscuous"),
        forged_transmits=of(policy, "security.forgedTransmits"),
        mac_changes=of(policy, "security.macChanges"),
    )


def _add_interfaces(estate: VcenterInventory, properties: dict[str, Any], host: Entity) -> None:
    """VMkernel interfaces with the services they carry."""
    carried: dict[str, set[str]] = {}
    for service in of(properties.get("config.virtualNicManagerInfo"), "netConfig") or ():
        for key in service.selectedVnic or ():
            # Keys read "vmotion.key-vim.host.VirtualNic-vmk1".
            words = carried.setdefault(str(key).rpartition("-")[2], set())
            words |= {_TRAFFIC[service.nicType]} if service.nicType in _TRAFFIC else set()
    for interface in properties.get("config.network.vnic") or ():
        group = of(interface, "spec.distributedVirtualPort.portgroupKey")
        estate.add(
            Entity(EntityKind.NIC, str(interface.device), host),
            type="vmkernel",
            network=(interface.portgroup or None) if group is None else estate.port_groups.get(group),
            mtu_bytes=of(interface, "spec.mtu"),
            # NFS and iSCSI are no services an interface is marked for: no mark does not mean no traffic.
            traffic=sorted(carried.get(str(interface.device), ())) or None,
        )


def _security(port: Any, name: str) -> bool | None:  # noqa: ANN401
    """Since vSphere 6.7 in the policy of MAC addresses, before in the one of security."""
    newer = of(port, f"macManagementPolicy.{name}")
    if newer is not None and of(newer, "value") is None:
        return bool(newer)
    value = of(newer, "value") if newer is not None else of(port, f"securityPolicy.{name}.value")
    return None if value is None else bool(value)
