"""Outstanding I/O through guest adapter, virtual adapter, host adapter and array.

Answers:
    How many requests must be outstanding for a rate at a latency, which queue on the way is the narrow one, what rate
    it leaves, and the settings that widen it. In the guest, disk and adapter are set together to the most
    they take, 254 requests and 32 ring pages; the setting of the host's adapter is for all its ports.

Method:
    Little's law, N = X R: a rate X with a response time R below the queue keeps N requests in it. A queue of depth D
    passes at most D / R. Each level carries its part: a disk its share of the VM's I/O, an adapter that of its disks, a
    host adapter and a LUN on a host that of the VMs there, an array port that of all hosts. The level with the least
    D / N is narrow.
    From a recording: the busiest VM; as many VMs, disks, adapters and LUNs of its kind as make the whole load, so that
    the busiest of each level is not planned for less than it had. From an inventory: the depths set.

Assumptions:
    Load is even over disks, adapters, VMs, hosts and ports. ``latency_ms`` is the response time below the guest's
    queue (GAVG without queueing); a deeper queue does not shorten it, and a device that is busy answers later.

Bends:
    Queues deeper than the array's port takes from all hosts: it rejects (QFULL) and hosts throttle. One level raised
    alone: the next one holds the requests instead. Emulated SCSI adapters, whose queues cannot be made deeper.

Sources:
    Little, "A proof for the queuing formula L = λW" (Operations Research 9, 1961).
    VMware KB 2053145, queue depths of PVSCSI: 64 for a disk and 254 for an adapter, up to 254 and 1,024.
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): cmd_per_lun=254,
    ring_pages=32, lpfc_lun_queue_depth=128.
    VMware KB 1267 and 1268, queue depths of host adapters and outstanding requests of competing worlds.
    VMware blogs, "Troubleshooting storage performance in vSphere: storage queues", for the order of the queues.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Annotated, cast

from pydantic import Field

from leadline.core.contracts.planner import (
    Bend,
    Figure,
    Infeasible,
    Plan,
    PlanContext,
    PlanInput,
    PlannerMeta,
    Sheet,
    Snippet,
)
from leadline.core.model.capture import Capture
from leadline.core.model.units import several, share_text
from leadline.estate.derived.recorded_loads import by_default, filled
from leadline.planners._queues.recorded import nvme_notes, recorded_inputs, slow_adapters

LITTLE = "Little 1961"
PVSCSI = "VMware KB 2053145"
LUN = "VMware KB 1267"
AT_DISK, AT_ADAPTER = "a disk's queue", "the virtual adapter's queue"
AT_HOST_ADAPTER, AT_LUN = "a host adapter's queue", "a LUN's queue"
AT_PART, AT_PORT = "a VM's part of a shared LUN", "an array port's queue"
DISK_DEPTH_MAX, ADAPTER_DEPTH_MAX, RING_PAGES = 254, 1024, 32
HEADROOM = 0.8  # Judgement: a queue that is filled to four fifths on average is full at times
Count = Annotated[int, Field(ge=1, le=100_000)]

META = PlannerMeta(
    about="Which queue between guest and array is the narrow one, and how deep each must be.",
    example={"iops": 40_000, "latency_ms": 2.0, "disks": 4, "adapters": 1, "vms": 4, "luns": 4, "hosts": 2},
    grows=(
        ("iops", "outstanding at the array"),
        ("latency_ms", "outstanding at the array"),
        ("iops", "depth of a LUN's queue"),
    ),
    reads="a VM with its disks and adapters, or a recording of operations and latency of disks",
)


class Queues(PlanInput):
    """What goes through, and how deep the queues are."""

    iops: Annotated[float, Field(gt=0, le=1e9, description="Operations per second of each VM.")] = 40_000.0
    latency_ms: Annotated[
        float, Field(gt=0, le=1e5, description="Response time below the guest at that load, ms (GAVG without KAVG).")
    ] = 2.0
    disks: Annotated[Count, Field(description="Virtual disks of a VM that share its I/O.")] = 1
    adapters: Annotated[Count, Field(description="Paravirtual SCSI adapters of a VM they are spread over.")] = 1
    vms: Annotated[Count, Field(description="Such VMs in all.")] = 1
    hosts: Annotated[Count, Field(description="Hosts they run on.")] = 1
    luns: Annotated[Count, Field(description="LUNs or devices each host spreads them over.")] = 1
    array_ports: Annotated[Count, Field(description="Ports of the array that take the I/O.")] = 2
    disk_depth: Annotated[
        Count, Field(description="cmd_per_lun of the guest's driver; 64 by default, 254 at most.")
    ] = 64
    adapter_depth: Annotated[
        Count, Field(description="Of the virtual adapter: 254 by default, 32 for a ring page.")
    ] = 254
    host_adapters: Annotated[Count, Field(description="Ports of storage adapters of a host that carry it.")] = 2
    host_adapter_depth: Annotated[
        Count, Field(description="Of a host's adapter port, all LUNs together: AQLEN in esxtop.")
    ] = 1024  # Judgement: drivers differ
    lun_depth: Annotated[Count, Field(description="Of a LUN at the host's adapter: DQLEN in esxtop.")] = 64
    competing_depth: Annotated[
        Count, Field(description="Of each VM where several share a LUN: outstanding IOs with competing worlds.")
    ] = 32
    port_depth: Annotated[Count, Field(description="Of an array port, from its vendor.")] = 2048


MODEL = Queues


@dataclass(frozen=True, slots=True)
class QueueLevel:
    """A queue between guest and array: requests it must hold, its depth, and the most it can have."""

    name: str
    needed: float
    depth: int
    depth_max: int
    arithmetic: str

    @property
    def is_narrow(self) -> bool:
        """Whether it holds requests back."""
        return self.needed > self.depth

    def advised(self) -> int:
        """The least depth of usual size that leaves headroom; the largest there is when none does."""
        wanted = self.needed / HEADROOM
        sizes = [size for size in (32, 64, 128, 254, 256, 512, 1024, 2048, 4096) if size <= self.depth_max]
        return max(self.depth, next((size for size in sizes if size >= wanted), max(sizes, default=self.depth_max)))


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the narrowest queue, the rate it allows, and the depth that each queue needs."""
    inputs, evidence, assumed, adapters = _known(cast("Queues", inputs), context.capture)  # read with MODEL
    levels = _levels(inputs)
    narrow = min(levels, key=lambda level: level.depth / level.needed)
    share = min(1.0, narrow.depth / narrow.needed)
    reached, total = inputs.iops * share, levels[-1].needed * inputs.array_ports
    outstanding = inputs.iops * inputs.latency_ms / 1000.0
    stuck = [level for level in levels if level.needed > level.depth_max]
    figures = (
        Figure(
            "outstanding of a VM",
            round(outstanding, 1),
            "requests",
            f"{inputs.iops:,.0f}/s x {inputs.latency_ms:g} ms",
            LITTLE,
        ),
        Figure(
            "outstanding at the array",
            round(total, 1),
            "requests",
            f"{several(inputs.vms, 'VM')} x {outstanding:,.1f}",
            LITTLE,
        ),
        Figure("narrow queue", narrow.name, "", f"depth {narrow.depth} for {narrow.needed:,.1f} needed"),
        Figure("rate it leaves a VM", round(reached), "per_s", f"min(1, {narrow.depth} / {narrow.needed:,.1f}) x rate"),
        *(
            Figure(f"depth of {level.name}", level.advised(), "requests", _level_arithmetic(level), LUN)
            for level in levels
            if level.name == AT_LUN
        ),
    )
    headline = (
        f"{narrow.name} holds the VM at {reached:,.0f} of {inputs.iops:,.0f} operations per second: "
        f"depth {narrow.depth}, {ceil(narrow.needed)} needed."
        if narrow.is_narrow
        else f"No queue is too narrow for {inputs.iops:,.0f} operations per second at {inputs.latency_ms:g} ms; the "
        f"tightest is {narrow.name} with {narrow.needed:,.0f} of {narrow.depth}."
    )
    return Plan(
        headline=headline,
        figures=figures,
        sheets=(_sheet(levels),),
        assumptions=(
            "Load is even over disks, adapters, LUNs, hosts and ports.",
            "A deeper queue does not make the device answer sooner: try the depth advised with `leadline bench sweep`.",
            *assumed,
        ),
        bends=(*_bends(inputs, levels), *adapters),
        snippets=tuple(_snippets(inputs, levels)),
        evidence=evidence,
        infeasible=_infeasible(inputs, stuck) if stuck else None,
    )


def _known(inputs: Queues, capture: Capture | None) -> tuple[Queues, tuple[str, ...], tuple[str, ...], list[Bend]]:
    """Return the inputs completed from a recording, the evidence, assumptions, and adapters to change."""
    if capture is None:
        return inputs, (), (), []
    inputs, evidence = filled(inputs, recorded_inputs(capture, has_rate="iops" in inputs.model_fields_set))
    peaks = "Peaks of rate and latency are taken as if they fell together."
    keys = [key for key in type(inputs).model_fields if key != "leadline_plan"]
    assumed = (*((peaks,) if {"iops", "latency_ms"} <= inputs.model_fields_set else ()), *by_default(inputs, keys))
    return inputs, evidence, (*assumed, *nvme_notes(capture)), slow_adapters(capture)


def _infeasible(inputs: Queues, stuck: list[QueueLevel]) -> Infeasible:
    first = stuck[0]
    possible = inputs.iops * min(level.depth_max / level.needed for level in stuck)
    times = ceil(first.needed / (first.depth_max * HEADROOM))
    return Infeasible(
        f"{first.name} would need {ceil(first.needed)}, {first.depth_max} is the most there is",
        f"{possible:,.0f} operations per second for each VM, or {times} times as many of them",
    )


def _levels(inputs: Queues) -> list[QueueLevel]:
    """Return every queue from the guest down, with the requests it must hold."""
    outstanding = inputs.iops * inputs.latency_ms / 1000.0
    on_host = ceil(inputs.vms / inputs.hosts)
    at_lun = outstanding * on_host / inputs.luns
    per_vm = f"{outstanding:,.1f}"
    of_host = f"{per_vm} x {on_host} VMs"
    levels = [
        QueueLevel(
            AT_DISK, outstanding / inputs.disks, inputs.disk_depth, DISK_DEPTH_MAX, f"{per_vm} / {inputs.disks}"
        ),
        QueueLevel(
            AT_ADAPTER,
            outstanding / inputs.adapters,
            inputs.adapter_depth,
            ADAPTER_DEPTH_MAX,
            f"{per_vm} / {inputs.adapters}",
        ),
        QueueLevel(
            AT_HOST_ADAPTER,
            outstanding * on_host / inputs.host_adapters,
            inputs.host_adapter_depth,
            inputs.host_adapter_depth,
            f"{of_host} / {inputs.host_adapters}",
        ),
        QueueLevel(AT_LUN, at_lun, inputs.lun_depth, DISK_DEPTH_MAX, f"{of_host} / {inputs.luns} LUNs"),
    ]
    if on_host > 1:
        vm_part = outstanding / inputs.luns
        arithmetic = f"{outstanding:,.1f} / {inputs.luns} LUNs"
        levels.append(QueueLevel(AT_PART, vm_part, inputs.competing_depth, inputs.lun_depth, arithmetic))
    at_port = outstanding * inputs.vms / inputs.array_ports
    arithmetic = f"{outstanding:,.1f} x {several(inputs.vms, 'VM')} / {several(inputs.array_ports, 'port')}"
    levels.append(QueueLevel(AT_PORT, at_port, inputs.port_depth, max(inputs.port_depth, 4096), arithmetic))
    return levels


def _named(levels: list[QueueLevel]) -> dict[str, QueueLevel]:
    return {level.name: level for level in levels}


def _level_arithmetic(level: QueueLevel) -> str:
    return f"{level.arithmetic} = {level.needed:,.1f}, filled to {share_text(HEADROOM)} at most"


def _sheet(levels: list[QueueLevel]) -> Sheet:
    rows = tuple(
        (level.name, round(level.needed, 1), level.depth, level.advised(), level.depth_max) for level in levels
    )
    return Sheet("Queues from the guest down", ("queue", "needed", "depth", "advised", "most"), rows)


def _bends(inputs: Queues, levels: list[QueueLevel]) -> list[Bend]:
    at_once = inputs.hosts * inputs.luns * max(inputs.lun_depth, _named(levels)[AT_LUN].advised())
    ports = inputs.array_ports * inputs.port_depth
    bends = []
    if at_once > ports:
        sent = f"{inputs.hosts} hosts x {inputs.luns} LUNs can send {at_once:,}"
        cost = f"{sent}, the ports take {ports:,}: QFULL, hosts throttle"
        bends.append(Bend("an array's ports take what all hosts may send", cost, LUN))
    narrow = [level.name for level in levels if level.is_narrow]
    if len(narrow) > 1:
        bends.append(Bend("queues are widened together", f"{', '.join(narrow)}: one alone helps little", PVSCSI))
    return bends


def _snippets(inputs: Queues, levels: list[QueueLevel]) -> list[Snippet]:
    """Settings for the levels that must be deeper."""
    at = _named(levels)
    disk, adapter, lun, part = at[AT_DISK], at[AT_ADAPTER], at[AT_LUN], at.get(AT_PART)
    snippets = []
    if disk.advised() > disk.depth or adapter.advised() > adapter.depth:
        snippets.append(
            Snippet(
                "Guest, Linux, then update-grub and reboot",
                "/etc/default/grub",
                f'GRUB_CMDLINE_LINUX="vmw_pvscsi.cmd_per_lun={DISK_DEPTH_MAX} vmw_pvscsi.ring_pages={RING_PAGES}"',
            )
        )
        snippets.append(
            Snippet(
                "Guest, Windows, then reboot",
                "cmd",
                r"REG ADD HKLM\SYSTEM\CurrentControlSet\services\pvscsi\Parameters\Device /v DriverParameter /t REG_SZ "
                f'/d "RequestRingPages={RING_PAGES},MaxQueueDepth={DISK_DEPTH_MAX}"',
            )
        )
    if lun.advised() > lun.depth:
        depth = lun.advised()
        snippets.append(
            Snippet(
                "Each host, by its adapter's driver, then reboot",
                "esxcli",
                f"esxcli system module parameters set -m lpfc -p lpfc_lun_queue_depth={depth}\n"
                f"esxcli system module parameters set -m qlnativefc -p ql2xmaxqdepth={depth}\n"
                f"esxcli system module parameters set -m iscsi_vmk -p iscsivmk_LunQDepth={depth}",
            )
        )
    if part is not None and part.advised() > inputs.competing_depth:
        depth = min(lun.advised(), part.advised())
        text = f"esxcli storage core device set --device <DEVICE> --sched-num-req-outstanding {depth}"
        snippets.append(Snippet("Each host, each LUN that several VMs share", "esxcli", text))
    return snippets
