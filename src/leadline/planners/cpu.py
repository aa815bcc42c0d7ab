"""vCPUs of database machines: how many, on which NUMA nodes and hosts, and where they restart.

Answers:
    How many vCPUs a machine gets, how they split into vNUMA nodes, what guest and host show at peak, how many hosts are
    needed with one failed, which machine lies where, and what is licensed. From a recording: how many vCPUs each VM
    has too many or too few, and what changes. From an inventory: which VMs cannot restart when their host fails, which
    share a host against a rule, and an assignment that mends both.

Method:
    vCPUs = cores busy at peak x expected load / target, up to an even number; one per physical core, hyper-threads
    not counted. vNUMA: the fewest nodes over which the vCPUs split evenly and whose cores and memory hold the parts.
    Hosts by branch and bound over hosts and nodes (the first answer is first fit decreasing). A host fails in turn;
    its machines restart in what the others have free, where they lie now: free cores of several hosts add up to
    nothing for one machine. If that leaves one out, machines are packed and the spare hosts kept empty. From a
    recording: the 95th percentile of CPU used, ready and co-stop of each VM / target; the simulator of the hypervisor's
    scheduler runs every host with the vCPUs there are and with those needed. From an inventory hosts fail in turn in
    the same way, each cluster for itself; a VM known to run a database counts a core per vCPU, another what was
    recorded of it / target, or, not recorded, its vCPUs / vcpus_per_core. Assignments tried: where VMs lie with moves
    one by one, the largest first to the emptiest host, and the largest host kept empty. Fixes of the processor
    (Meltdown, Spectre, MDS): where the load was measured without them, the CPU is divided by one less their cost. The
    cost is a range of published figures, by the recorded rates of system calls, context switches and interrupts where
    there are any; its larger end is planned.

Assumptions:
    Demand grows evenly (the same factor each month). All peaks fall together. Hosts of the inputs are alike, those of
    an inventory are what it says. A recorded load was measured with the fixes that are on.

Bends:
    Growth planned for more than 18 months; vCPUs of other machines than needed; CPU hot add that hides vNUMA; machines
    wider than a node, or too narrow to be shown vNUMA; hosts above the target; no host to spare; VMs of a rule on one
    host; no cores kept for vSAN; fixes of the processor that are missing.

Sources:
    Virtualizing large databases, VMware CPU capacity planning (InterSystems community): a vCPU per core, 80 % at peak,
    right-sizing, no sizing for year five. VMware, vSphere resource management: virtual NUMA; vSphere availability: HA
    and anti-affinity rules. W. Lam, vNUMA and CPU hot add in vSphere 8 (2022). Microsoft, SQL Server licensing guide:
    at least 4 core licences a machine. Broadcom, counting cores for VMware: at least 16 per CPU. Cost of fixes: Red Hat
    article 3307751 and B. Gregg (2018), Vertica (2018), Virtuozzo (2018), Phoronix (2021).
"""

from __future__ import annotations

from dataclasses import replace
from math import ceil
from typing import cast

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
from leadline.estate.derived.cpu_demand import vcpus_for
from leadline.planners._cpu.clusters import LICENCE_CORES_MIN, LICENCE_VM_MIN, plan_clusters
from leadline.planners._cpu.estate import Counting, estates
from leadline.planners._cpu.fixes import planned_fixes
from leadline.planners._cpu.inputs import Cpu
from leadline.planners._cpu.packing import Box, Host, PackedVms, packed, split, spread
from leadline.planners._cpu.recorded import Given, plan_recorded, sizes
from leadline.planners._cpu.restart import arranged, left_by

SOURCE = "Virtualizing large databases: VMware CPU capacity planning"
VSPHERE = "vSphere resource management: virtual NUMA"
MONTHS_MAX = 18  # Judgement: sizing goes to the next budget and half another, not to year five
VNUMA_MIN = 9  # vCPUs from which vSphere shows vNUMA (numa.vcpu.min)
HARDWARE_VNUMA = 20  # W. Lam: from here hot add may leave vNUMA visible
UNCHECKED = "Restarts are not checked: there is no cluster of two hosts or more, all known, with their VMs."
PARTS = ("figures", "sheets", "assumptions", "bends", "snippets")
ESTIMATE_MONTHS = (0, 6, 12, 18, 24, 36, 60)

META = PlannerMeta(
    about="vCPUs, vNUMA, hosts with one failed, licences; from a recording: right-sizing of every VM.",
    example={"used_cores": 6.08, "load": 3.0, "memory_gib": 96.0, "hosts": 2},
    grows=(("used_cores", "vCPUs"), ("load", "vCPUs"), ("machines", "hosts needed"), ("memory_gib", "vNUMA nodes")),
    reads="a recording of CPU use of VMs, or hosts with their cores and the VMs that run on them; beside inputs, facts "
    "of a guest with the fixes of its processor",
)


MODEL = Cpu


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the plan for the VMs of a recording or inventory; else the size and hosts of the machine of the inputs."""
    inputs = cast("Cpu", inputs)  # read with MODEL
    capture = context.capture
    is_recorded = capture is not None and bool(sizes(capture, inputs.target_pct, inputs.load))
    if capture is not None and not is_recorded and not _is_asked(inputs):
        return _planned(inputs, context)
    fixes = planned_fixes(inputs, capture, is_recorded=is_recorded)
    cores = None if is_recorded else inputs.used_cores * inputs.load
    if fixes.added is not None:
        key = "load" if is_recorded else "used_cores"
        inputs = inputs.model_copy(update={key: getattr(inputs, key) * fixes.factor})
    return fixes.stated(_planned(inputs, context), cores)


def _planned(inputs: Cpu, context: PlanContext) -> Plan:
    """Return the plan with the load as it is; what fixes of the processor add is in it."""
    recorded_plan = None if context.capture is None else _known(inputs, context, context.capture)
    if recorded_plan is not None:
        return recorded_plan
    wanted = inputs.vcpus or vcpus_for(inputs.used_cores * inputs.load, inputs.target_pct)
    node = node_of(inputs)
    parts = split(wanted, inputs.memory_gib, node, inputs.sockets * inputs.socket_nodes)
    answer = _too_wide(inputs, wanted, node) if parts is None else _sized(inputs, *parts, node)
    if context.capture is None:
        return answer
    note = "The answer is for the machine of the inputs, not for what the inventory holds."
    return replace(answer, assumptions=(*answer.assumptions, note if _is_asked(inputs) else f"{note} {UNCHECKED}"))


def _is_asked(inputs: Cpu) -> bool:
    """Return whether the inputs describe a machine."""
    return bool(inputs.model_fields_set & {"used_cores", "vcpus", "machines"})


def _known(inputs: Cpu, context: PlanContext, capture: Capture) -> Plan | None:
    """Return right-sizing of the VMs recorded, and restarts in the clusters of the inventory; None without either."""
    sized_vms = sizes(capture, inputs.target_pct, inputs.load)
    counting = Counting(
        inputs.target_pct,
        inputs.vcpus_per_core,
        inputs.storage_cores,
        inputs.host_own_gib,
        inputs.socket_nodes,
        inputs.spare_hosts,
    )
    if not sized_vms and _is_asked(inputs):
        return None
    clusters_plan = plan_clusters(estates(capture.inventory, sized_vms, counting), counting)
    if not sized_vms:
        return clusters_plan
    cores, nodes = inputs.sockets * inputs.socket_cores, inputs.sockets * inputs.socket_nodes
    given = Given(inputs.target_pct, inputs.overhead_pct, cores, nodes, inputs.storage_cores)
    sizing_plan = plan_recorded(context, capture, sized_vms, given)
    if clusters_plan is None:
        return replace(sizing_plan, assumptions=(*sizing_plan.assumptions, UNCHECKED))
    both = {key: getattr(sizing_plan, key) + getattr(clusters_plan, key) for key in PARTS}
    headline = f"{sizing_plan.headline} {clusters_plan.headline}"
    return replace(sizing_plan, headline=headline, infeasible=clusters_plan.infeasible, **both)


def node_of(inputs: Cpu) -> tuple[float, float]:
    """Return the cores and GiB of a NUMA node that VMs can use; storage takes its cores evenly from all nodes."""
    nodes = inputs.sockets * inputs.socket_nodes
    cores = inputs.socket_cores // inputs.socket_nodes - ceil(inputs.storage_cores / nodes)
    return max(cores, 0), (inputs.host_memory_gib - inputs.host_own_gib) / nodes


def vcpus_at(inputs: Cpu, months: float) -> int:
    """Return how many vCPUs the machine needs ``months`` from today."""
    load = inputs.load ** (months / inputs.months) if inputs.months else inputs.load
    return vcpus_for(inputs.used_cores * load, inputs.target_pct)


def boxes_of(inputs: Cpu, vcpus: int, nodes: int, node: tuple[float, float]) -> list[Box] | str:
    """Return every machine to place, or the name of the first that fits no host."""
    group = frozenset({"the machines"} if inputs.apart else ())
    boxes = [Box(f"machine {i + 1}", vcpus, inputs.memory_gib, nodes, group) for i in range(inputs.machines)]
    for other in inputs.others:
        parts = split(other.vcpus, other.memory_gib, node, inputs.sockets * inputs.socket_nodes)
        if parts is None:
            return other.name
        apart = frozenset({other.apart} if other.apart else ())
        boxes.append(Box(other.name, parts[0], other.memory_gib, parts[1], apart))
    return boxes


def _sized(inputs: Cpu, vcpus: int, nodes: int, node: tuple[float, float]) -> Plan:
    boxes = boxes_of(inputs, vcpus, nodes, node)
    if isinstance(boxes, str):
        return Plan(
            headline=f"{boxes} fits no host.",
            infeasible=Infeasible(f"{node[0]} cores and {node[1]:,.0f} GiB of a NUMA node", f"a smaller {boxes}"),
        )
    empty = (node,) * (inputs.sockets * inputs.socket_nodes)
    fewest = next((p for count in range(1, len(boxes) + 1) if (p := packed(boxes, (empty,) * count))), None)
    needed = (fewest.hosts_used if fewest else len(boxes)) + inputs.spare_hosts
    placed, left = _placed(inputs, boxes, empty)
    figures = (
        *_figures(inputs, vcpus, nodes, node),
        _hosts_figure(inputs, fewest, needed),
        *_licences(inputs, vcpus, needed),
    )
    busy = inputs.used_cores * inputs.load
    cores = inputs.sockets * inputs.socket_cores
    infeasible = None
    if placed is None or left:
        problem = f"{', '.join(left)} cannot restart" if placed is not None else "not all machines have a place"
        infeasible = Infeasible(f"{inputs.hosts} hosts of {cores} cores, {inputs.spare_hosts} may fail: {problem}",
                                f"{needed} hosts")  # fmt: skip
    return Plan(
        headline=f"{vcpus} vCPUs in {nodes} NUMA node{'s' * (nodes != 1)} of {vcpus // nodes} carry {busy:.4g} cores "
        f"at {100.0 * busy / vcpus:.0f} %; {needed} hosts with {inputs.spare_hosts} to fail.",
        figures=figures,
        sheets=(_growth(inputs), *((_places(inputs, boxes, placed),) if placed else ())),
        assumptions=(
            "Demand grows by the same factor each month.",
            "Hosts are alike; peaks fall together.",
            "Cores, not threads, are counted; second threads are headroom.",
        ),
        bends=tuple(_bends(inputs, vcpus, nodes, cores)),
        snippets=_snippets(inputs, vcpus, nodes),
        infeasible=infeasible,
    )


def _placed(inputs: Cpu, boxes: list[Box], empty: Host) -> tuple[PackedVms | None, list[str]]:
    """Return an assignment, None without one, and the machines that cannot restart after a host fails."""
    hosts = (empty,) * inputs.hosts
    placed = arranged(boxes, hosts, inputs.spare_hosts)
    if placed is not None:
        return placed, []
    even = spread(boxes, hosts)
    if even is None:
        return None, []
    left = {name for names in left_by(boxes, even).values() for name in names}
    return even, sorted(left) or ["machines of a second failed host"]


def _figures(inputs: Cpu, vcpus: int, nodes: int, node: tuple[float, float]) -> tuple[Figure, ...]:
    busy = inputs.used_cores * inputs.load
    cores = inputs.sockets * inputs.socket_cores
    host = busy * (1.0 + inputs.overhead_pct / 100.0) + inputs.storage_cores
    exact = 100 * busy / inputs.target_pct
    sized = f"{inputs.used_cores:g} x {inputs.load:g} / {inputs.target_pct:g} % = {exact:.2f}, then even"
    reserved = ceil(busy * inputs.core_mhz)
    pages, threads = ceil(inputs.buffers_gib * 512.0), inputs.threads - 1
    return (
        Figure("vCPUs", vcpus, "vCPUs", "given" if inputs.vcpus else sized, SOURCE),
        Figure("vNUMA nodes", nodes, "nodes", f"nodes have {node[0]} cores and {node[1]:,.4g} GiB", VSPHERE),
        Figure("cores per socket", vcpus // nodes, "cores", f"{vcpus} / {nodes}", VSPHERE),
        Figure("guest use at peak", round(100.0 * busy / vcpus, 1), "pct", f"{busy:.4g} / {vcpus}", SOURCE),
        Figure(
            "host use at peak", round(100.0 * host / cores, 1), "pct",
            f"({busy:.4g} x {1 + inputs.overhead_pct / 100:g} + {inputs.storage_cores}) / {cores} cores, alone on it",
        ),
        Figure("threads not counted", cores * threads, "", f"{cores} x {threads}: headroom", SOURCE),
        Figure("CPU reservation, MHz", reserved, "", f"{busy:.4g} cores x {inputs.core_mhz} MHz"),
        Figure("memory reservation", inputs.memory_gib, "GiB", "all of it"),
        *((Figure("huge pages", pages, "", f"{inputs.buffers_gib:g} GiB / 2 MiB"),) if pages else ()),
    )  # fmt: skip


def _hosts_figure(inputs: Cpu, fewest: PackedVms | None, needed: int) -> Figure:
    how = "no plan has fewer" if fewest is not None and fewest.is_optimal else "search cut off: fewer may do"
    arithmetic = f"{needed - inputs.spare_hosts} hold all ({how}) + {inputs.spare_hosts}"
    return Figure("hosts needed", needed, "hosts", arithmetic)


def _licences(inputs: Cpu, vcpus: int, needed: int) -> tuple[Figure, ...]:
    hosts = max(inputs.hosts, needed)
    each = max(inputs.socket_cores, LICENCE_CORES_MIN)
    whole = hosts * inputs.sockets * inputs.socket_cores
    by_vm = inputs.machines * max(vcpus, LICENCE_VM_MIN)
    arithmetic = f"{hosts} x {inputs.sockets} x max({inputs.socket_cores}, {LICENCE_CORES_MIN})"
    return (
        Figure("sockets", hosts * inputs.sockets, "", f"{hosts} x {inputs.sockets}"),
        Figure("licences, hypervisor", hosts * inputs.sockets * each, "cores", arithmetic, "Broadcom, counting cores"),
        Figure("licences, database by machine", by_vm, "cores",
               f"{inputs.machines} x max({vcpus}, {LICENCE_VM_MIN})", "SQL Server licensing guide"),
        Figure("licences, database by host", whole, "cores", f"{hosts} x {inputs.sockets} x {inputs.socket_cores}"),
    )  # fmt: skip


def _growth(inputs: Cpu) -> Sheet:
    months = sorted({m for m in ESTIMATE_MONTHS if m <= max(inputs.months, MONTHS_MAX)} | {inputs.months})
    columns = ("months" if inputs.start is None else "month", "vCPUs", "fits a host")
    rows = tuple((_when(inputs, m), vcpus_at(inputs, m), _fits(inputs, vcpus_at(inputs, m))) for m in months)
    return Sheet("vCPUs as the load grows", columns, rows)


def _fits(inputs: Cpu, vcpus: int) -> str:
    """Return whether a host has a core for each vCPU, in words."""
    cores = _usable_cores(inputs)
    return "yes" if vcpus <= cores else f"no: {cores:g} cores"


def _usable_cores(inputs: Cpu) -> float:
    """Return the cores of a host that machines can use."""
    return inputs.sockets * inputs.socket_nodes * node_of(inputs)[0]


def _when(inputs: Cpu, months: int) -> str:
    if inputs.start is None:
        return str(months)
    years, month = divmod(inputs.start.month - 1 + months, 12)
    return f"{inputs.start.year + years}-{month + 1:02d}"


def _places(inputs: Cpu, boxes: list[Box], placed: PackedVms) -> Sheet:
    rows = tuple(
        (f"host {host + 1}", ", ".join(b.name for b, h in zip(boxes, placed.hosts, strict=True) if h == host) or "-",
         sum(cores for cores, _ in free), max(cores for cores, _ in free), round(sum(gib for _, gib in free), 1))
        for host, free in enumerate(placed.free)
    )  # fmt: skip
    return Sheet("Where machines lie", ("host", "machines", "free cores", "of one node", "free GiB"), rows)


def _bends(inputs: Cpu, vcpus: int, nodes: int, cores: int) -> list[Bend]:
    bends = []
    busy = inputs.used_cores * inputs.load
    if inputs.months > MONTHS_MAX:
        enough = vcpus_at(inputs, MONTHS_MAX)
        cost = f"{inputs.months} months ahead; {enough} vCPUs do for {MONTHS_MAX}: size again then"
        bends.append(Bend("no sizing for year five", cost, SOURCE))
    last = max(inputs.months, MONTHS_MAX)
    outgrown = next((m for m in range(last + 1) if vcpus_at(inputs, m) > _usable_cores(inputs)), None)
    if outgrown is not None:
        wanted = vcpus_at(inputs, last)
        cost = f"from month {_when(inputs, outgrown)} on; {wanted} vCPUs in month {_when(inputs, last)}, "
        cost += f"{_usable_cores(inputs):g} cores for machines: larger hosts, or the load split over two machines"
        bends.append(Bend("the machine still fits its host as the load grows", cost, SOURCE))
    if busy > inputs.target_pct / 100.0 * vcpus + 1e-9:
        cost = f"{busy:.4g} cores on {vcpus} vCPUs are {100 * busy / vcpus:.0f} %"
        bends.append(Bend(f"peak at {inputs.target_pct:g} %", cost, SOURCE))
    if inputs.vcpus and vcpus_for(busy, inputs.target_pct) < vcpus:
        cost = f"{vcpus_for(busy, inputs.target_pct)} vCPUs carry the load; the others only wait and widen the machine"
        bends.append(Bend("right size", cost, SOURCE))
    if nodes > 1:
        cost = f"{vcpus} vCPUs and {inputs.memory_gib:g} GiB take {nodes} nodes; guest and database must see them"
        bends.append(Bend("a machine fits a NUMA node", cost, VSPHERE))
        if vcpus < VNUMA_MIN:
            cost = f"with {vcpus} vCPUs the guest is shown one node: numa.vcpu.min {vcpus}, as in the settings below"
            bends.append(Bend(f"vNUMA is shown from {VNUMA_MIN} vCPUs on", cost, VSPHERE))
    if inputs.hot_add:
        hidden = inputs.hardware < HARDWARE_VNUMA
        cost = "vNUMA is hidden from the guest" if hidden else "vNUMA is hidden unless exposed (numa.allowHotadd)"
        bends.append(Bend("CPU hot add off", cost, "W. Lam, vNUMA and CPU hot add in vSphere 8"))
    if inputs.spare_hosts == 0:
        bends.append(Bend("one host may fail", "no cores are kept free to restart machines", SOURCE))
    if vcpus >= cores - inputs.storage_cores:
        cost = f"{vcpus} of {cores} cores: it restarts only on an empty host"
        bends.append(Bend("a machine leaves room on its host", cost, SOURCE))
    return bends


def _snippets(inputs: Cpu, vcpus: int, nodes: int) -> tuple[Snippet, ...]:
    busy = ceil(inputs.used_cores * inputs.load * inputs.core_mhz)
    text = (
        f'$vm = Get-VM "<VM>"  # powered off\n'
        f"$vm | Set-VM -NumCpu {vcpus} -CoresPerSocket {vcpus // nodes} -Confirm:$false\n"
        "$spec = New-Object VMware.Vim.VirtualMachineConfigSpec\n$spec.CpuHotAddEnabled = $false\n"
        "$vm.ExtensionData.ReconfigVM($spec)\n"
        f"$vm | Get-VMResourceConfiguration | Set-VMResourceConfiguration -CpuReservationMhz {busy} "
        f"-MemReservationGB {ceil(inputs.memory_gib)}"
    )
    if nodes > 1 and vcpus < VNUMA_MIN:
        text += f"\nNew-AdvancedSetting -Entity $vm -Name numa.vcpu.min -Value {vcpus} -Confirm:$false"
    snippets = [Snippet("vCPUs, hot add off, reservations", "powercli", text)]
    if inputs.buffers_gib:
        pages = ceil(inputs.buffers_gib * 512.0)
        snippets.append(Snippet("Huge pages of the guest", "sysctl", f"vm.nr_hugepages = {pages}"))
    if inputs.apart and inputs.machines > 1:
        names = ",".join(f'"<VM {i + 1}>"' for i in range(inputs.machines))
        rule = f'New-DrsRule -Cluster "<CLUSTER>" -Name "apart" -KeepTogether $false -VM (Get-VM {names})'
        snippets.append(Snippet("Apart", "powercli", rule))
    return tuple(snippets)


def _too_wide(inputs: Cpu, wanted: int, node: tuple[float, float]) -> Plan:
    count = inputs.sockets * inputs.socket_nodes
    most = 2 * (count * node[0] // 2)
    load = most * inputs.target_pct / 100.0
    machine = f"{wanted} vCPUs and {inputs.memory_gib:g} GiB"
    return Plan(
        headline=f"{machine} fit no host.",
        infeasible=Infeasible(
            f"{count} NUMA nodes of {node[0]} cores and {node[1]:,.0f} GiB; {machine}",
            f"{most} vCPUs, which carry {load:.4g} cores at {inputs.target_pct:g} %, and {count * node[1]:,.0f} GiB",
        ),
    )
