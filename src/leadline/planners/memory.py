"""Memory of a database machine and of its hosts.

Answers:
    How much memory a machine gets, how it is divided between buffers, sessions and system, the huge pages that hold
    the buffers, the reservation, whether it fits a NUMA node, how many such machines a host holds; what overcommitted
    hosts take back from other VMs, also with one failed; with ``far``, how much of a machine's memory may lie on an SSD
    or in another host; and with ``persistent``, the modules, the limits and the published gains of persistent memory.

Method:
    Machine = buffers + sessions x memory of a session + system. Buffers come from the working set: SQL Server and
    InterSystems keep pages in their own cache alone, Oracle in the SGA, PostgreSQL a quarter of the machine's memory
    in shared buffers and the rest in the system's cache. System = 4 GiB + 1 GiB for every 8 GiB up to 64 GiB, and 1
    for every 16 beyond. Huge pages = ceil(1.05 x buffers / page). A node holds a machine when memory and vCPUs both
    fit. Taken back = memory of other VMs - what is left beside all that is reserved; idle memory goes first, up to 75
    % of it, what is more hits active memory; the balloon takes up to 65 % of a VM, the rest is compressed or swapped.
    The remote share is the largest whole percent whose run in the system far-memory is tolerable, by bisection. Hosts
    and VMs come from an inventory, what VMs touch from a recording; inputs given go over both.

Assumptions:
    Databases are reserved whole: ballooning or swapping a buffer pool is worse than a small one. Other VMs have
    touched all they were given at some time, as guests with file caches do, and spread evenly over hosts. Popular
    pages are popular by parts of 1/16,384 of the memory.

Bends:
    A machine wider than a NUMA node; no host to spare; overcommitted hosts; databases of the inventory that are not
    reserved; remote memory. Persistent memory: what its hardware and the hypervisor no longer do, or never did.

Sources:
    VMware, "Architecting Microsoft SQL Server on VMware vSphere": memory of the system, reservation.
    PostgreSQL documentation, "Resource consumption": shared_buffers about 25 % of memory, huge_pages.
    InterSystems community, "Virtualizing large databases - VMware CPU capacity planning": large pages.
    Waldspurger, "Memory resource management in VMware ESX Server" (OSDI 2002), and VMware, "vSphere resource
    management", for ballooning and the tax on idle memory. VMware, "NVMe memory tiering: design and sizing" (2025).
    vmgu.ru on persistent memory in vSphere 6.7: modules, 6 TB of a host, overhead below 4 %, gains of Oracle. vSphere
    6.7 and 7.0 documentation, 9.0 API reference: moves, HA, snapshots. Intel, 2022: the end of Optane.
    The system far-memory, with its sources: `leadline explain far-memory`.
"""

from __future__ import annotations

from math import ceil, floor
from typing import cast

from leadline.core.contracts.planner import Bend, Figure, Infeasible, Plan, PlanContext, PlanInput, PlannerMeta, Snippet
from leadline.planners._memory import far, overcommit, persistent
from leadline.planners._memory.facts import MemoryUsage, filled
from leadline.planners._memory.inputs import Memory

VSPHERE = "Architecting SQL Server on vSphere"
HUGE_PAGE_MARGIN = 1.05
POSTGRESQL_BUFFERS = 0.25
VM_OVERHEAD_SHARE = 0.01  # Judgement: of a large machine's memory, with its reservation
NAMES_SHOWN = 5

META = PlannerMeta(
    about="Memory of a database machine and its hosts: buffers, huge pages, NUMA, overcommit, remote share.",
    example={
        "engine": "postgresql",
        "working_set_gib": 48.0,
        "sessions": 200,
        "session_mib": 32.0,
        "others_gib": 200.0,
    },
    grows=(
        ("working_set_gib", "machine"),
        ("sessions", "machine"),
        ("working_set_gib", "huge pages"),
        ("host_gib", "machines per host"),
        ("others_gib", "overcommit"),
        ("others_gib", "reclaimed after a failure"),
        ("machines", "overcommit"),
    ),
    reads="hosts with their memory",
)


MODEL = Memory


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """Return the machine's memory and its parts, whether it fits the hosts, and the share that may be remote."""
    inputs, usage = filled(cast("Memory", inputs), context.capture)  # read with MODEL
    total = machine_gib(inputs)
    if inputs.host_gib <= inputs.host_own_gib:
        constraint = f"hosts of {inputs.host_gib:g} GiB of which they need {inputs.host_own_gib:g} themselves"
        needed = f"hosts of {ceil(inputs.host_own_gib + total * (1 + VM_OVERHEAD_SHARE))} GiB"
        return Plan(f"Hosts of {inputs.host_gib:g} GiB hold no VM.", infeasible=Infeasible(constraint, needed))
    estate = estate_of(inputs, usage, total)
    tolerance = None if inputs.far == "none" else far.tolerable(inputs, context)
    return Plan(
        headline=_headline(inputs, estate, total, tolerance),
        figures=(
            *_figures(inputs, total),
            *overcommit.figures(estate, inputs.spare_hosts),
            *([] if tolerance is None else far.figures(inputs, tolerance, total)),
            *persistent.figures(inputs),
        ),
        sheets=(overcommit.sheet(estate, inputs.spare_hosts), *persistent.sheets(inputs)),
        assumptions=(
            "Databases are reserved whole.",
            "The working set is what is read again within minutes, not all data.",
            "Other VMs have touched all they were given, and hosts share them evenly.",
            *(
                []
                if tolerance is None
                else ["One thread, which stops at each fault; far memory without faults (CXL) is faster."]
            ),
        ),
        bends=(
            *_bends(inputs, total),
            *_unreserved(usage),
            *overcommit.bends(estate, inputs.spare_hosts),
            *([] if tolerance is None else far.bends(inputs, tolerance, total)),
            *persistent.bends(inputs),
        ),
        snippets=(
            *_snippets(inputs, total),
            *([] if tolerance is None else far.snippets(inputs, tolerance, total)),
        ),
        pictures=() if tolerance is None else (far.picture(inputs, tolerance),),
        evidence=() if usage is None else usage.evidence,
        infeasible=_infeasible(inputs, estate, total) or overcommit.infeasible(estate, inputs.spare_hosts),
    )


def estate_of(inputs: Memory, usage: MemoryUsage | None, total: int) -> overcommit.MemoryEstate:
    """Return the memory of hosts and of all VMs: those of the inputs, and those of the inventory."""
    sizes = (usage.hosts if usage is not None else ()) or (inputs.host_gib,) * inputs.hosts
    hosts = tuple(max(0.0, size - inputs.host_own_gib) for size in sizes)
    reserved = float(inputs.machines * _each(total))
    others, active = inputs.others_gib, inputs.others_gib * inputs.others_active_pct / 100.0
    if inputs.overcommit is not None:
        others = max(0.0, inputs.overcommit * sum(hosts) - reserved)
        active = others * inputs.others_active_pct / 100.0
    elif usage is not None and usage.has_vms:
        reserved += usage.reserved + sum(size for _, size, _ in usage.databases) * (1 + VM_OVERHEAD_SHARE)
        others, active = usage.others, usage.active
    return overcommit.MemoryEstate(hosts, reserved, others, active)


def _each(total: int) -> int:
    return ceil(total * (1 + VM_OVERHEAD_SHARE))


def _nodes(inputs: Memory, total: int) -> int:
    node = (inputs.host_gib - inputs.host_own_gib) / inputs.numa_nodes
    return max(ceil(total / node), ceil(inputs.vcpus / (inputs.cores / inputs.numa_nodes)))


def _headline(inputs: Memory, estate: overcommit.MemoryEstate, total: int, tolerance: far.Tolerable | None) -> str:
    per_host = floor((inputs.host_gib - inputs.host_own_gib) / _each(total))
    text = (
        f"{total:,} GiB: {buffers_gib(inputs, total):,.0f} of buffers, {_sessions_gib(inputs):,.3g} for "
        f"{inputs.sessions} sessions, {system_gib(total):,.3g} for the system; {per_host} such machines fit a host."
    )
    if estate.others:
        after = overcommit.taken(estate, inputs.spare_hosts)
        text += (
            f" Hosts are committed {estate.overcommit:.2f} times; {after.reclaimed:,.0f} GiB are taken back with "
            f"{inputs.spare_hosts} failed."
        )
    if tolerance is not None:
        text += f" {tolerance.share_pct} % of a machine may be remote."
    return text


def _figures(inputs: Memory, total: int) -> tuple[Figure, ...]:
    buffers = buffers_gib(inputs, total)
    pages = pages_of(inputs, total)
    usable = inputs.host_gib - inputs.host_own_gib
    node, each = usable / inputs.numa_nodes, _each(total)
    return (
        Figure("machine", total, "GiB", _machine_arithmetic(inputs, total, buffers), VSPHERE),
        Figure("buffers", round(buffers, 1), "GiB", _buffers_arithmetic(inputs)),
        Figure("sessions", round(_sessions_gib(inputs), 1), "GiB", f"{inputs.sessions} x {inputs.session_mib:g} MiB"),
        Figure(
            "system", round(system_gib(total), 1), "GiB", "4 + 1 for every 8 up to 64, 1 for every 16 beyond", VSPHERE
        ),
        Figure(
            "huge pages",
            pages,
            "",
            f"ceil({HUGE_PAGE_MARGIN:g} x {buffers:,.1f} GiB / {inputs.huge_page_mib:g} MiB)",
            "PostgreSQL documentation, huge_pages",
        ),
        Figure("reservation", total, "GiB", "all of it"),
        Figure(
            "NUMA nodes",
            _nodes(inputs, total),
            "",
            f"{node:,.0f} GiB and {inputs.cores / inputs.numa_nodes:g} cores each",
        ),
        Figure("machines per host", floor(usable / each), "VMs", f"floor({usable:,.0f} / {each} GiB)"),
    )


def pages_of(inputs: Memory, total: int) -> int:
    """Huge pages for the buffers."""
    return ceil(HUGE_PAGE_MARGIN * buffers_gib(inputs, total) * 1024.0 / inputs.huge_page_mib)


def machine_gib(inputs: Memory) -> int:
    """Return the memory of the machine, whole GiB: the least in which all parts fit."""
    total = 1
    while True:
        rest = total - system_gib(total) - _sessions_gib(inputs) - inputs.other_gib
        wanted = inputs.working_set_gib
        if rest >= wanted and (inputs.engine != "postgresql" or rest >= POSTGRESQL_BUFFERS * total):
            return total
        total += 1 if total < 64 else max(1, ceil((wanted - rest) / 2))


def system_gib(total: float) -> float:
    """Return the memory that the operating system needs on a machine of ``total`` GiB, GiB."""
    return 4.0 + min(total, 64.0) / 8.0 + max(0.0, total - 64.0) / 16.0


def buffers_gib(inputs: Memory, total: float) -> float:
    """The database's own cache, GiB."""
    if inputs.engine == "postgresql":
        return min(inputs.working_set_gib, POSTGRESQL_BUFFERS * total)
    return inputs.working_set_gib


def _sessions_gib(inputs: Memory) -> float:
    return inputs.sessions * inputs.session_mib / 1024.0


def _machine_arithmetic(inputs: Memory, total: float, buffers: float) -> str:
    cached = inputs.working_set_gib - buffers
    cache = f" + {cached:,.1f} in the system's cache" if cached > 0.05 else ""
    other = f" + {inputs.other_gib:g} other" if inputs.other_gib else ""
    sessions, system = _sessions_gib(inputs), system_gib(total)
    return f"{buffers:,.1f} buffers{cache} + {sessions:,.1f} sessions + {system:,.1f} system{other}"


def _buffers_arithmetic(inputs: Memory) -> str:
    is_quarter = inputs.engine == "postgresql"
    return "a quarter of the machine; the system caches the rest" if is_quarter else "the working set"


def _bends(inputs: Memory, total: int) -> list[Bend]:
    bends = []
    nodes = _nodes(inputs, total)
    if nodes > 1:
        wide = f"{total:,} GiB and {inputs.vcpus} vCPUs take {nodes} nodes"
        cost = f"{wide}: show vNUMA to the guest, some memory is remote"
        bends.append(Bend("a machine fits a NUMA node", cost, VSPHERE))
    if inputs.spare_hosts == 0 and inputs.hosts > 1:
        bends.append(Bend("one host may fail", "no memory is kept free to restart machines"))
    return bends


def _unreserved(usage: MemoryUsage | None) -> list[Bend]:
    """Return a bend that names the databases of the inventory without a full memory reservation."""
    names = [] if usage is None else [name for name, size, reserved in usage.databases if reserved < size]
    if not names:
        return []
    more = f" and {len(names) - NAMES_SHOWN} more" if len(names) > NAMES_SHOWN else ""
    cost = f"{', '.join(names[:NAMES_SHOWN])}{more}: counted as if they were, yet hosts take memory from them"
    return [Bend("a database's memory is reserved whole", cost, VSPHERE)]


def _snippets(inputs: Memory, total: int) -> tuple[Snippet, ...]:
    buffers, pages = buffers_gib(inputs, total), pages_of(inputs, total)
    snippets = [
        Snippet(
            "Memory and its reservation",
            "powercli",
            f'Get-VM "<VM>" | Set-VM -MemoryGB {total} -Confirm:$false\n'
            f'Get-VM "<VM>" | Get-VMResourceConfiguration | Set-VMResourceConfiguration -MemReservationGB {total}',
        )
    ]
    if inputs.engine != "sqlserver":
        snippets.append(Snippet("Huge pages of the guest", "sysctl", f"vm.nr_hugepages = {pages}"))
    whole = floor(buffers)
    texts = {
        "postgresql": (
            f"shared_buffers = {whole}GB\nhuge_pages = on\neffective_cache_size = {floor(inputs.working_set_gib)}GB\n"
            f"work_mem = {max(4, floor(inputs.session_mib / 4))}MB\nmax_connections = {inputs.sessions}"
        ),
        "sqlserver": f"EXEC sp_configure 'max server memory (MB)', {whole * 1024}; RECONFIGURE;",
        "oracle": f"sga_target={whole}G\nmemory_target=0\nuse_large_pages=ONLY\n"
        f"pga_aggregate_target={ceil(_sessions_gib(inputs))}G",
        "intersystems": f"[config]\nglobals=0,0,{whole * 1024},0,0,0\nmemlock=1",
    }
    tools = {"postgresql": "postgresql.conf", "sqlserver": "T-SQL", "oracle": "init.ora", "intersystems": "iris.cpf"}
    snippets.append(Snippet("The database", tools[inputs.engine], texts[inputs.engine]))
    return tuple(snippets)


def _infeasible(inputs: Memory, estate: overcommit.MemoryEstate, total: int) -> Infeasible | None:
    """Return why some machines fit no host after hosts failed; None when all fit."""
    each = _each(total)
    possible = sum(floor(size / each) for size in estate.up(inputs.spare_hosts))
    if possible >= inputs.machines:
        return None
    needed = inputs.host_own_gib + each * ceil(inputs.machines / max(1, inputs.hosts - inputs.spare_hosts))
    return Infeasible(
        f"{inputs.machines} machines of {each} GiB on {inputs.hosts} hosts of {inputs.host_gib:,.0f} GiB of which "
        f"{inputs.spare_hosts} may fail",
        f"{possible} machines, or hosts of {needed:,.0f} GiB",
    )
