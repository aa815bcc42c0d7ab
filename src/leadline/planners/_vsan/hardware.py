"""Interfaces of devices and disk groups on controllers: their limits, and what a failed controller takes away."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import ceil

from leadline.core.contracts.planner import Bend, Figure
from leadline.core.model.units import several
from leadline.planners._vsan.inputs import Vsan
from leadline.planners._vsan.sizing import VsanCluster

CONTROLLERS = "vSphere 6.5 documentation, design considerations for vSAN hosts"
VMGU = "vmgu.ru articles on vSAN"
STANDARDS = "SATA 3, SAS-3 and PCIe 3.0; blocksandfiles.com, NVMe"


@dataclass(frozen=True, slots=True)
class DeviceInterface:
    """An interface of a device: requests it queues, and what its lanes carry after line coding."""

    name: str
    queues: int
    queue_depth: int
    lane_mb_per_s: float
    lanes: int
    coding: str

    @property
    def mb_per_s(self) -> float:
        """Return what all lanes of a device carry, MB/s."""
        return self.lanes * self.lane_mb_per_s

    @property
    def requests(self) -> int:
        """Return how many requests a device has at once at most."""
        return self.queues * self.queue_depth


# Source: SATA 3.x, native command queueing; SAS-3 with 254 tags as host adapters have them; NVM Express base
# specification, queues; line rates less coding: 8 of 10 bits, of PCIe 3.0 128 of 130.
INTERFACES: dict[str, DeviceInterface] = {
    "sata": DeviceInterface("SATA", 1, 32, 600.0, 1, "6 Gbit/s x 8/10 / 8 bits"),
    "sas": DeviceInterface("SAS", 1, 254, 1200.0, 1, "12 Gbit/s x 8/10 / 8 bits"),
    "nvme": DeviceInterface("NVMe", 65_535, 65_536, 8000.0 * 128 / 130 / 8, 4, "8 GT/s x 128/130 / 8 bits x 4 lanes"),
}


def controllers(inputs: Vsan, cluster: VsanCluster) -> int:
    """Return the storage controllers of a host: those given, else one for each disk group; 0 where there is none."""
    if inputs.is_esa or inputs.device_interface == "nvme":
        return 0
    return inputs.controllers or cluster.groups


def hardware_figures(inputs: Vsan, cluster: VsanCluster) -> list[Figure]:
    """Return the limits of the interfaces that are given, and how disk groups lie on storage controllers."""
    figures = []
    for kind, key in (("capacity", inputs.device_interface), ("cache", inputs.cache_interface)):
        interface = INTERFACES.get(key)
        if interface is None or (kind == "cache" and inputs.is_esa):
            continue
        depth = f"{interface.name}: {several(interface.queues, 'queue')} of {interface.queue_depth:,}"
        figures += [
            Figure(f"requests a {kind} device queues", interface.requests, "count", depth, STANDARDS),
            Figure(f"link of a {kind} device", round(interface.mb_per_s), "mb_per_s", interface.coding, STANDARDS),
        ]
    count = controllers(inputs, cluster)
    if count:
        most = ceil(cluster.groups / count)
        figures.append(
            Figure("storage controllers per host", count, "count", f"{cluster.groups} disk groups", CONTROLLERS)
        )
        lost = f"of {cluster.groups}, with {most * cluster.devices} of {cluster.host_devices} capacity devices"
        figures.append(Figure("disk groups lost with a controller", most, "count", lost, CONTROLLERS))
    return figures


def hardware_bends(inputs: Vsan, cluster: VsanCluster) -> Iterator[Bend]:
    """Yield the rules on interfaces and controllers that the inputs break, with the cost."""
    yield from _sata(inputs)
    yield from _links(inputs)
    count = controllers(inputs, cluster)
    if count and count < cluster.groups:
        lost = ceil(cluster.groups / count)
        cost = (
            f"{several(count, 'controller')} for {cluster.groups} groups: a failed one takes {several(lost, 'group')}, "
            f"{lost * cluster.devices} of {cluster.host_devices} capacity devices of the host"
        )
        yield Bend("disk groups are on separate controllers", cost, CONTROLLERS)


def _sata(inputs: Vsan) -> Iterator[Bend]:
    sata, sas = INTERFACES["sata"], INTERFACES["sas"]
    cost = f"a SATA device has {sata.requests} requests at once, a SAS device {sas.requests}: the others wait before it"
    if inputs.cache_interface == "sata" and not inputs.is_esa:
        yield Bend("cache devices are SAS or NVMe", f"every write goes there first; {cost}", VMGU)
    if inputs.device_interface == "sata" and inputs.is_all_flash:
        if inputs.tier == "oltp-tier-1":
            yield Bend("tier 1 is on SAS or NVMe devices", cost, VMGU)
        else:
            yield Bend("flash is SAS rather than SATA where that is possible", cost, VMGU)


def _links(inputs: Vsan) -> Iterator[Bend]:
    """Yield a bend for each speed given that is more than the link of its device carries."""
    for key, kind, speeds in (
        (inputs.device_interface, "capacity", (inputs.device_mb_per_s, inputs.device_read_mb_per_s)),
        (inputs.cache_interface, "cache", (inputs.cache_mb_per_s,)),
    ):
        interface = INTERFACES.get(key)
        if interface is not None and max(speeds) > interface.mb_per_s and not (kind == "cache" and inputs.is_esa):
            carries = f"{interface.name} carries {interface.mb_per_s:,.0f}"
            cost = f"{max(speeds):,.0f} MB/s given, {carries}: the plan is too good"
            yield Bend(f"a {kind} device is no faster than its link", cost, STANDARDS)
