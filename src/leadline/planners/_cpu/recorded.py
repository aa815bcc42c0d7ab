"""Right-sizing from recordings: how many vCPUs each VM needs, which it has too many of, and what changes."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from math import ceil

from leadline.core.contracts.planner import Bend, Figure, Plan, PlanContext, Sheet, Snippet
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.units import duration
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.derived.cpu_demand import Demand, demands, vcpus_for
from leadline.estate.knowledge.placement import runs
from leadline.planners._cpu.packing import split
from leadline.planners._cpu.simulated import Expected, SimulatedHost, SimulatedVm, expected

FIGURES_MAX = 12  # VMs with a figure of their own; the sheet has all
SHORT_S = 86_400.0  # Judgement: a day holds most of what recurs
PEAK_S_MIN = 3600.0  # Judgement: what the rule on oversized VMs asks for; less is a moment, not a peak
SOURCE = "Virtualizing large databases: VMware CPU capacity planning"


@dataclass(frozen=True, slots=True)
class Sized:
    """A VM with the vCPUs it has and needs; ``cores`` are the cores it uses at peak, planned growth included."""

    vm: Entity
    vcpus: int
    needed: int
    cores: float
    demand: Demand


@dataclass(frozen=True, slots=True)
class Shown:
    """A host with its VMs, the cores they can use, and the simulated result before and after right-sizing."""

    name: str
    cores: int
    nodes: int
    vms: tuple[Sized, ...]
    before: tuple[list[Expected], float] | None
    after: tuple[list[Expected], float] | None


def sizes(capture: Capture, target_pct: float, load: float) -> list[Sized]:
    """Return every running VM with known vCPUs, sized by the recording with its highest demand."""
    highest: dict[Entity, Demand] = {}
    for demand in demands(capture):
        if demand.vm not in highest or demand.peak_pct > highest[demand.vm].peak_pct:
            highest[demand.vm] = demand
    sized_vms = []
    for vm, demand in highest.items():
        vcpus = capture.inventory.get(vm, "vcpu_count")
        if vcpus and runs(capture.inventory, vm):
            cores = load * demand.peak_pct * vcpus / 100.0
            enough_alone = vcpus == 1 and cores <= target_pct / 100.0
            sized_vms.append(Sized(vm, int(vcpus), 1 if enough_alone else vcpus_for(cores, target_pct), cores, demand))
    return sorted(sized_vms, key=lambda sized: (sized.needed - sized.vcpus, sized.vm.name))


@dataclass(frozen=True, slots=True)
class Given:
    """What the inputs say: target and the hypervisor's overhead in percent; cores and nodes of a host not recorded.

    ``storage`` are cores of a host kept for hyperconverged storage, of all nodes alike.
    """

    target: float
    overhead: float
    cores: int
    nodes: int
    storage: int = 0


def plan_recorded(context: PlanContext, capture: Capture, sized_vms: list[Sized], given: Given) -> Plan:
    """Return the right-sizing plan for all VMs of a recording."""
    hosts = [_shown(context, host, vms, given) for host, vms in _by_host(sized_vms).items()]
    first = sized_vms[0]
    changed = [sized for sized in sized_vms if sized.needed != sized.vcpus]
    figures = [
        Figure(
            "vCPUs now", sum(sized.vcpus for sized in sized_vms), "vCPUs", f"of {len(sized_vms)} VMs", "the recording"
        ),
        Figure("vCPUs needed", sum(sized.needed for sized in sized_vms), "vCPUs", "sum of the VMs below", SOURCE),
    ]
    for sized in sized_vms if len(sized_vms) <= FIGURES_MAX else changed[:FIGURES_MAX]:
        arithmetic = (
            f"{sized.demand.peak_pct:.1f} % of {sized.vcpus} vCPUs at p95: {sized.cores:.2f} cores with growth; "
            f"/ {given.target:g} %, up to an even number"
        )
        figures.append(Figure(f"{sized.vm.name} vCPUs", sized.needed, "vCPUs", arithmetic, SOURCE))
    for host in hosts:
        figures += _host_figures(host, given)
    return Plan(
        headline=_headline(first, sized_vms, changed),
        figures=tuple(figures),
        sheets=(_sheet(hosts),),
        assumptions=(
            "Peaks of all VMs of a host fall together; the recording holds the peak.",
            "Demand stays when vCPUs go: what used nine cores uses nine of twelve.",
            "Transactions of 50 ms of CPU in 10 bursts stand for the load in the simulation.",
        ),
        bends=tuple(_bends(hosts, sized_vms)),
        snippets=tuple(_snippet(sized, host) for host in hosts for sized in host.vms if sized in changed),
        evidence=tuple(_evidence(capture, sized) for sized in sized_vms),
    )


def _by_host(sized_vms: list[Sized]) -> dict[Entity | None, list[Sized]]:
    by_host: dict[Entity | None, list[Sized]] = {}
    for sized in sized_vms:
        by_host.setdefault(sized.vm.ancestor(EntityKind.HOST), []).append(sized)
    return by_host


def _shown(context: PlanContext, host: Entity | None, vms: list[Sized], given: Given) -> Shown:
    inventory = None if context.capture is None or host is None else context.capture.inventory
    cores, nodes, threads = given.cores, given.nodes, True
    if host is not None and inventory is not None and inventory.get(host, "core_count"):
        cores = int(inventory.get(host, "core_count"))
        nodes = int(inventory.get(host, "numa_node_count") or 1)
        threads = int(inventory.get(host, "thread_count") or 2 * cores) > cores
    cores = max(cores - nodes * ceil(given.storage / nodes), nodes)
    before, after = (
        expected(
            context,
            [SimulatedVm(count, sized.cores) for sized, count in zip(vms, counts, strict=True)],
            SimulatedHost(nodes if cores % nodes == 0 else 1, cores, given.overhead, threads),
        )
        for counts in ([sized.vcpus for sized in vms], [sized.needed for sized in vms])
    )
    return Shown("host" if host is None else host.name, cores, nodes, tuple(vms), before, after)


def _host_figures(host: Shown, given: Given) -> list[Figure]:
    busy = sum(sized.cores for sized in host.vms) * (1.0 + given.overhead / 100.0)
    arithmetic = f"{busy:.2f} cores busy at peak with {given.overhead:g} % of the hypervisor's own / {host.cores} cores"
    arithmetic += f" beside {given.storage} of storage" if given.storage else ""
    figures = [Figure(f"{host.name} use, by arithmetic", round(100.0 * busy / host.cores, 1), "pct", arithmetic)]
    if host.after is not None:
        text = "simulated with the vCPUs needed; cores with at least one thread in use"
        figures.append(Figure(f"{host.name} use, simulated", round(host.after[1], 1), "pct", text, "hypervisor-cpu"))
    return figures


def _sheet(hosts: list[Shown]) -> Sheet:
    columns = ("VM", "host", "vCPUs", "needed", "cores", "guest % now", "guest % then", "guest % simulated",
               "ready % now, simulated", "ready % then, simulated")  # fmt: skip
    rows: list[tuple[str | float | int, ...]] = []
    for host in hosts:
        for i, sized in enumerate(host.vms):
            now, then = (100.0 * sized.cores / count for count in (sized.vcpus, sized.needed))
            before_after = [side[0][i] if side is not None else None for side in (host.before, host.after)]
            simulated = "not simulated" if before_after[1] is None else round(before_after[1].guest_pct, 1)
            ready = ["not simulated" if one is None else round(one.ready_pct, 2) for one in before_after]
            size = (sized.vcpus, sized.needed, round(sized.cores, 2), round(now, 1), round(then, 1))
            rows.append((sized.vm.name, host.name, *size, simulated, *ready))
    return Sheet("VMs at their peak, as they are and right-sized", columns, tuple(rows))


def _headline(first: Sized, sized_vms: list[Sized], changed: list[Sized]) -> str:
    if not changed:
        return f"All {len(sized_vms)} VMs have the vCPUs they need at peak."
    whole = sum(sized.needed for sized in sized_vms) - sum(sized.vcpus for sized in sized_vms)
    word = f"{abs(whole)} vCPUs {'less' if whole < 0 else 'more'} in all"
    return (
        f"{len(changed)} of {len(sized_vms)} VMs want another number of vCPUs ({word}); most: {first.vm.name} uses "
        f"{first.cores:.1f} cores at peak and needs {first.needed} vCPUs, not {first.vcpus}."
    )


def _evidence(capture: Capture, sized: Sized) -> str:
    demand = sized.demand
    group = demand.group
    ends = [datetime.fromtimestamp(int(group.times_ns[i]) / 1e9, UTC).isoformat(timespec="seconds") for i in (0, -1)]
    name = capture.sources[group.source].name
    text = f"p95 of {group.metric} with ready and co-stop {demand.peak_pct:.1f} %"
    return f"{demand.vm.name}: {text}, {ends[0]} to {ends[1]} ({duration(demand.length_s)}), {name}"


def _bends(hosts: list[Shown], sized_vms: list[Sized]) -> list[Bend]:
    bends = []
    short = max(sized.demand.length_s for sized in sized_vms)
    if short < SHORT_S:
        cost = f"{duration(short)} were recorded: month end, batch and backup may be missing"
        bends.append(Bend("the recording holds the peak", cost, SOURCE))
    for host in hosts:
        vcpus = sum(sized.needed for sized in host.vms)
        if vcpus > host.cores:
            cost = f"{host.name}: {vcpus} vCPUs on {host.cores} cores even then: VMs can wait for each other"
            bends.append(Bend("one vCPU per physical core for production databases", cost, SOURCE))
        if host.after is None:
            cost = f"{host.name}: peaks ask for nearly all of {host.cores} cores or of a VM: not simulated"
            bends.append(Bend("peak at 80 %", cost, SOURCE))
    return bends


def _snippet(sized: Sized, host: Shown) -> Snippet:
    parts = split(sized.needed, 0.0, (host.cores // host.nodes, 0.0), host.nodes)
    each = sized.needed if parts is None else parts[0] // parts[1]
    text = (
        f'$vm = Get-VM "{sized.vm.name}"  # powered off\n'
        f"$vm | Set-VM -NumCpu {sized.needed} -CoresPerSocket {each} -Confirm:$false\n"
        "$spec = New-Object VMware.Vim.VirtualMachineConfigSpec\n$spec.CpuHotAddEnabled = $false\n"
        "$vm.ExtensionData.ReconfigVM($spec)"
    )
    return Snippet(f"{sized.vm.name}: {sized.vcpus} to {sized.needed} vCPUs", "powercli", text)
