"""Memory of a database machine and of its hosts.

Answers:
    How much memory a machine gets, how it is divided between buffers, sessions and system, the huge pages that hold
    the buffers, the reservation, whether it fits a NUMA node, how many such machines a host holds; what overcommitted
    hosts take back from other VMs, also with one failed; and with ``far``, how much of a machine's memory may lie on
    an SSD or in another host.

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
    reserved; remote memory.

Sources:
    VMware, "Architecting Microsoft SQL Server on VMware vSphere": memory of the system, reservation.
    PostgreSQL documentation, "Resource consumption": shared_buffers about 25 % of memory, huge_pages.
    InterSystems community, "Virtualizing large databases - VMware CPU capacity planning": large pages.
    Waldspurger, "Memory resource management in VMware ESX Server" (OSDI 2002), and VMware, "vSphere resource
    management", for ballooning and the tax on idle memory. VMware, "NVMe memory tiering: design and sizing" (2025).
    The system far-memory, with its sources: `leadline explain far-memory`.
"""

from __future__ import annotations

from math import ceil, floor
from typing import cast

from leadline.core.contracts.planner import Bend, Figure, Infeasible, Plan, PlanContext, PlanInput, PlannerMeta, Snippet
from leadline.planners._memory import far, overcommit
from leadline.planners._memory.facts import Held, filled
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
)


MODEL = Memory


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """The machine's memory, its parts, whether node, host and cluster hold it, and what may lie elsewhere."""
    own, held = filled(cast("Memory", inputs), context.capture)  # read with MODEL
    total = machine_gib(own)
    if own.host_gib <= own.host_own_gib:
        constraint = f"hosts of {own.host_gib:g} GiB of which they need {own.host_own_gib:g} themselves"
        needed = f"hosts of {ceil(own.host_own_gib + total * (1 + VM_OVERHEAD_SHARE))} GiB"
        return Plan(f"Hosts of {own.host_gib:g} GiB hold no VM.", infeasible=Infeasible(constraint, needed))
    estate = estate_of(own, held, total)
    found = None if own.far == "none" else far.tolerable(own, context)
    return Plan(
        headline=_headline(own, estate, total, found),
        figures=(
            *_figures(own, total),
            *overcommit.figures(estate, own.spare_hosts),
            *([] if found is None else far.figures(own, found, total)),
        ),
        sheets=(overcommit.sheet(estate, own.spare_hosts),),
        assumptions=(
            "Databases are reserved whole.",
            "The working set is what is read again within minutes, not all data.",
            "Other VMs have touched all they were given, and hosts share them evenly.",
            *(
                []
                if found is None
                else ["One thread, which stops at each fault; far memory without faults (CXL) is faster."]
            ),
        ),
        bends=(
            *_bends(own, total),
            *_unreserved(held),
            *overcommit.bends(estate, own.spare_hosts),
            *([] if found is None else far.bends(own, found, total)),
        ),
        snippets=(*_snippets(own, total), *([] if found is None else far.snippets(own, found, total))),
        pictures=() if found is None else (far.picture(own, found),),
        evidence=() if held is None else held.evidence,
        infeasible=_infeasible(own, estate, total) or overcommit.infeasible(estate, own.spare_hosts),
    )


def estate_of(own: Memory, held: Held | None, total: int) -> overcommit.MemoryEstate:
    """Hosts and all VMs: those of the inputs, and those of the inventory."""
    sizes = (held.hosts if held is not None else ()) or (own.host_gib,) * own.hosts
    hosts = tuple(max(0.0, size - own.host_own_gib) for size in sizes)
    reserved = float(own.machines * _each(total))
    others, active = own.others_gib, own.others_gib * own.others_active_pct / 100.0
    if own.overcommit is not None:
        others = max(0.0, own.overcommit * sum(hosts) - reserved)
        active = others * own.others_active_pct / 100.0
    elif held is not None and held.has_vms:
        reserved += held.reserved + sum(size for _, size, _ in held.databases) * (1 + VM_OVERHEAD_SHARE)
        others, active = held.others, held.active
    return overcommit.MemoryEstate(hosts, reserved, others, active)


def _each(total: int) -> int:
    return ceil(total * (1 + VM_OVERHEAD_SHARE))


def _nodes(own: Memory, total: int) -> int:
    node = (own.host_gib - own.host_own_gib) / own.numa_nodes
    return max(ceil(total / node), ceil(own.vcpus / (own.cores / own.numa_nodes)))


def _headline(own: Memory, estate: overcommit.MemoryEstate, total: int, found: far.Tolerable | None) -> str:
    per_host = floor((own.host_gib - own.host_own_gib) / _each(total))
    text = (
        f"{total:,} GiB: {buffers_gib(own, total):,.0f} of buffers, {_sessions_gib(own):,.3g} for {own.sessions} "
        f"sessions, {system_gib(total):,.3g} for the system; {per_host} such machines fit a host."
    )
    if estate.others:
        after = overcommit.taken(estate, own.spare_hosts)
        text += (
            f" Hosts are committed {estate.overcommit:.2f} times; {after.reclaimed:,.0f} GiB are taken back with "
            f"{own.spare_hosts} failed."
        )
    if found is not None:
        text += f" {found.share_pct} % of a machine may be remote."
    return text


def _figures(own: Memory, total: int) -> tuple[Figure, ...]:
    buffers = buffers_gib(own, total)
    pages = pages_of(own, total)
    usable = own.host_gib - own.host_own_gib
    node, each = usable / own.numa_nodes, _each(total)
    return (
        Figure("machine", total, "GiB", _told(own, total, buffers), VSPHERE),
        Figure("buffers", round(buffers, 1), "GiB", _buffers_told(own)),
        Figure("sessions", round(_sessions_gib(own), 1), "GiB", f"{own.sessions} x {own.session_mib:g} MiB"),
        Figure(
            "system", round(system_gib(total), 1), "GiB", "4 + 1 for every 8 up to 64, 1 for every 16 beyond", VSPHERE
        ),
        Figure(
            "huge pages",
            pages,
            "",
            f"ceil({HUGE_PAGE_MARGIN:g} x {buffers:,.1f} GiB / {own.huge_page_mib:g} MiB)",
            "PostgreSQL documentation, huge_pages",
        ),
        Figure("reservation", total, "GiB", "all of it"),
        Figure("NUMA nodes", _nodes(own, total), "", f"{node:,.0f} GiB and {own.cores / own.numa_nodes:g} cores each"),
        Figure("machines per host", floor(usable / each), "VMs", f"floor({usable:,.0f} / {each} GiB)"),
    )


def pages_of(own: Memory, total: int) -> int:
    """Huge pages for the buffers."""
    return ceil(HUGE_PAGE_MARGIN * buffers_gib(own, total) * 1024.0 / own.huge_page_mib)


def machine_gib(own: Memory) -> int:
    """Memory of the machine, whole GiB: the least in which all parts fit."""
    total = 1
    while True:
        rest = total - system_gib(total) - _sessions_gib(own) - own.other_gib
        wanted = own.working_set_gib
        if rest >= wanted and (own.engine != "postgresql" or rest >= POSTGRESQL_BUFFERS * total):
            return total
        total += 1 if total < 64 else max(1, ceil((wanted - rest) / 2))


def system_gib(total: float) -> float:
    """What the operating system needs of so much memory, GiB."""
    return 4.0 + min(total, 64.0) / 8.0 + max(0.0, total - 64.0) / 16.0


def buffers_gib(own: Memory, total: float) -> float:
    """The database's own cache, GiB."""
    if own.engine == "postgresql":
        return min(own.working_set_gib, POSTGRESQL_BUFFERS * total)
    return own.working_set_gib


def _sessions_gib(own: Memory) -> float:
    return own.sessions * own.session_mib / 1024.0


def _told(own: Memory, total: float, buffers: float) -> str:
    cached = own.working_set_gib - buffers
    cache = f" + {cached:,.1f} in the system's cache" if cached > 0.05 else ""
    other = f" + {own.other_gib:g} other" if own.other_gib else ""
    return (
        f"{buffers:,.1f} buffers{cache} + {_sessions_gib(own):,.1f} sessions + {system_gib(total):,.1f} system{other}"
    )


def _buffers_told(own: Memory) -> str:
    return "a quarter of the machine; the system caches the rest" if own.engine == "postgresql" else "the working set"


def _bends(own: Memory, total: int) -> list[Bend]:
    bends = []
    nodes = _nodes(own, total)
    if nodes > 1:
        cost = f"{total:,} GiB and {own.vcpus} vCPUs take {nodes} nodes: show vNUMA to the guest, some memory is remote"
        bends.append(Bend("a machine fits a NUMA node", cost, VSPHERE))
    if own.spare_hosts == 0 and own.hosts > 1:
        bends.append(Bend("one host may fail", "no memory is kept free to restart machines"))
    return bends


def _unreserved(held: Held | None) -> list[Bend]:
    """Databases of the inventory whose memory is not reserved whole."""
    found = [] if held is None else [name for name, size, reserved in held.databases if reserved < size]
    if not found:
        return []
    more = f" and {len(found) - NAMES_SHOWN} more" if len(found) > NAMES_SHOWN else ""
    cost = f"{', '.join(found[:NAMES_SHOWN])}{more}: counted as if they were, yet hosts take memory from them"
    return [Bend("a database's memory is reserved whole", cost, VSPHERE)]


def _snippets(own: Memory, total: int) -> tuple[Snippet, ...]:
    buffers, pages = buffers_gib(own, total), pages_of(own, total)
    made = [
        Snippet(
            "Memory and its reservation",
            "powercli",
            f'Get-VM "VM-NAME" | Set-VM -MemoryGB {total} -Confirm:$false\n'
            f'Get-VM "VM-NAME" | Get-VMResourceConfiguration | Set-VMResourceConfiguration -MemReservationGB {total}',
        )
    ]
    if own.engine != "sqlserver":
        made.append(Snippet("Huge pages of the guest", "sysctl", f"vm.nr_hugepages = {pages}"))
    whole = floor(buffers)
    texts = {
        "postgresql": (
            f"shared_buffers = {whole}GB\nhuge_pages = on\neffective_cache_size = {floor(own.working_set_gib)}GB\n"
            f"work_mem = {max(4, floor(own.session_mib / 4))}MB\nmax_connections = {own.sessions}"
        ),
        "sqlserver": f"EXEC sp_configure 'max server memory (MB)', {whole * 1024}; RECONFIGURE;",
        "oracle": f"sga_target={whole}G\nmemory_target=0\nuse_large_pages=ONLY\n"
        f"pga_aggregate_target={ceil(_sessions_gib(own))}G",
        "intersystems": f"[config]\nglobals=0,0,{whole * 1024},0,0,0\nmemlock=1",
    }
    tools = {"postgresql": "postgresql.conf", "sqlserver": "T-SQL", "oracle": "init.ora", "intersystems": "iris.cpf"}
    made.append(Snippet("The database", tools[own.engine], texts[own.engine]))
    return tuple(made)


def _infeasible(own: Memory, estate: overcommit.MemoryEstate, total: int) -> Infeasible | None:
    """None when every machine has a host, whole, with hosts failed."""
    each = _each(total)
    possible = sum(floor(size / each) for size in estate.up(own.spare_hosts))
    if possible >= own.machines:
        return None
    needed = own.host_own_gib + each * ceil(own.machines / max(1, own.hosts - own.spare_hosts))
    return Infeasible(
        f"{own.machines} machines of {each} GiB on {own.hosts} hosts of {own.host_gib:,.0f} GiB of which "
        f"{own.spare_hosts} may fail",
        f"{possible} machines, or hosts of {needed:,.0f} GiB",
    )
