"""Memory of a database machine and of its host.

Answers:
    How much memory a machine gets, how it is divided between buffers, sessions and system, the huge pages that hold
    the buffers, the reservation, whether it fits a NUMA node, and how many such machines a host holds without
    overcommitting.

Method:
    Machine = buffers + sessions x memory of a session + system. Buffers come from the working set: SQL Server and
    InterSystems keep pages in their own cache alone, Oracle in the SGA, PostgreSQL a quarter of the machine's memory
    in shared buffers and the rest in the system's cache. System = 4 GiB + 1 GiB for every 8 GiB up to 64 GiB, and 1
    for every 16 beyond. Huge pages = ceil(1.05 x buffers / page). A node holds a machine when memory and vCPUs both
    fit. A host holds as many machines as fit beside its own memory and the overhead of each, with the largest
    restartable after one host fails when spare is asked for.

Assumptions:
    Databases are reserved whole: ballooning or swapping a buffer pool is worse than a small one.

Bends:
    A working set larger than the buffers the machine can have; a machine wider than a NUMA node; overcommitted hosts.

Sources:
    VMware, "Architecting Microsoft SQL Server on VMware vSphere": memory of the system, reservation.
    PostgreSQL documentation, "Resource consumption": shared_buffers about 25 % of memory, huge_pages.
    InterSystems community, "Virtualizing large databases - VMware CPU capacity planning": large pages.
"""

from __future__ import annotations

from math import ceil, floor
from typing import Annotated, Literal, cast

from pydantic import Field

from leadline.core.planner import Bend, Figure, Infeasible, Plan, PlanContext, PlanInput, PlannerMeta, Snippet

VSPHERE = "Architecting SQL Server on vSphere"
HUGE_PAGE_MARGIN = 1.05
POSTGRESQL_BUFFERS = 0.25
VM_OVERHEAD_SHARE = 0.01  # Judgement: of a large machine's memory, with its reservation
Engine = Literal["postgresql", "sqlserver", "oracle", "intersystems"]

META = PlannerMeta(
    about="Memory of a database machine: buffers, sessions, huge pages, reservation, NUMA, machines per host.",
    example={"engine": "postgresql", "working_set_gib": 48.0, "sessions": 200, "session_mib": 32.0},
    grows=(
        ("working_set_gib", "machine"),
        ("sessions", "machine"),
        ("working_set_gib", "huge pages"),
        ("host_gib", "machines per host"),
    ),
)


class Memory(PlanInput):
    """A database, its sessions, and the host it runs on."""

    engine: Annotated[Engine, Field(description="Database engine.")] = "postgresql"
    working_set_gib: Annotated[float, Field(gt=0, description="Data that is used again and again, GiB.")] = 48.0
    sessions: Annotated[int, Field(ge=1, description="Sessions at peak.")] = 200
    session_mib: Annotated[
        float, Field(gt=0, description="Memory of a session at peak, MiB: sorts, hashes, private areas.")
    ] = 32.0
    other_gib: Annotated[float, Field(ge=0, description="Other services on the machine, GiB.")] = 0.0
    huge_page_mib: Annotated[float, Field(gt=0, description="Size of a huge page, MiB.")] = 2.0
    vcpus: Annotated[int, Field(ge=1, description="vCPUs of the machine.")] = 8
    host_gib: Annotated[float, Field(gt=0, description="Memory of a host, GiB.")] = 512.0
    host_own_gib: Annotated[
        float, Field(ge=0, description="What the host needs itself: hypervisor, vSAN or storage machine, GiB.")
    ] = 16.0
    numa_nodes: Annotated[int, Field(ge=1, description="NUMA nodes of a host.")] = 2
    cores: Annotated[int, Field(ge=1, description="Physical cores of a host.")] = 32
    machines: Annotated[int, Field(ge=1, description="Such machines in all.")] = 4
    hosts: Annotated[int, Field(ge=1, description="Hosts.")] = 2
    spare_hosts: Annotated[int, Field(ge=0, description="Hosts that may fail.")] = 1


MODEL = Memory


def plan(inputs: PlanInput, context: PlanContext) -> Plan:
    """The machine's memory, its parts, and whether node, host and cluster hold it."""
    own = cast("Memory", inputs)  # read with MODEL
    total = machine_gib(own)
    buffers = buffers_gib(own, total)
    pages = ceil(HUGE_PAGE_MARGIN * buffers * 1024.0 / own.huge_page_mib)
    each = ceil(total * (1 + VM_OVERHEAD_SHARE))
    usable = own.host_gib - own.host_own_gib
    per_host = max(0, floor(usable / each))
    node = usable / own.numa_nodes
    nodes = max(ceil(total / node), ceil(own.vcpus / (own.cores / own.numa_nodes)))
    held = per_host * max(0, own.hosts - own.spare_hosts)
    figures = (
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
        Figure("NUMA nodes", nodes, "", f"{node:,.0f} GiB and {own.cores / own.numa_nodes:g} cores each"),
        Figure("machines per host", per_host, "VMs", f"floor({usable:,.0f} / {each} GiB)"),
    )
    return Plan(
        headline=f"{total:,} GiB: {buffers:,.0f} of buffers, {_sessions_gib(own):,.3g} for {own.sessions} sessions, "
        f"{system_gib(total):,.3g} for the system; {per_host} such machines fit a host.",
        figures=figures,
        assumptions=(
            "Databases are reserved whole.",
            "The working set is what is read again within minutes, not all data.",
        ),
        bends=tuple(_bends(own, total, nodes)),
        snippets=_snippets(own, total, buffers, pages),
        infeasible=None if held >= own.machines else _infeasible(own, each, usable),
    )


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


def _bends(own: Memory, total: float, nodes: int) -> list[Bend]:
    bends = []
    if nodes > 1:
        cost = f"{total:,} GiB and {own.vcpus} vCPUs take {nodes} nodes: show vNUMA to the guest, some memory is remote"
        bends.append(Bend("a machine fits a NUMA node", cost, VSPHERE))
    if own.spare_hosts == 0 and own.hosts > 1:
        bends.append(Bend("one host may fail", "no memory is kept free to restart machines"))
    return bends


def _snippets(own: Memory, total: int, buffers: float, pages: int) -> tuple[Snippet, ...]:
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


def _infeasible(own: Memory, each: int, usable: float) -> Infeasible:
    working = max(1, own.hosts - own.spare_hosts)
    needed = own.host_own_gib + each * ceil(own.machines / working)
    possible = floor(usable / each) * max(0, own.hosts - own.spare_hosts)
    return Infeasible(
        f"{own.machines} machines of {each} GiB on {own.hosts} hosts of {own.host_gib:,.0f} GiB of which "
        f"{own.spare_hosts} may fail",
        f"{possible} machines, or hosts of {needed:,.0f} GiB",
    )
