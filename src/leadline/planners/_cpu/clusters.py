"""What restarts where after a host fails, which rules are broken, and an assignment that mends both."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import ceil, isfinite

from leadline.core.contracts.planner import Bend, Figure, Infeasible, Plan, Sheet, Snippet
from leadline.core.model.units import several
from leadline.planners._cpu.estate import (
    CONFIGURED,
    DATABASE,
    RECORDED,
    Counting,
    CpuEstate,
    EstateHost,
    box_text,
    room_text,
)
from leadline.planners._cpu.packing import Box, PackedVms, cores_free, fits, lying
from leadline.planners._cpu.restart import arranged, clashes, left_by

SOURCE = "Virtualizing large databases: VMware CPU capacity planning"
LICENCE_CORES_MIN, LICENCE_VM_MIN = 16, 4
MORE_MAX = 8  # hosts tried on top
TOLD_MAX = 12
VSAN_SHARE = 0.1  # Source: SOURCE and the vSAN Design and Sizing guide: about a tenth of a host


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """A cluster with what was found.

    Attributes:
        now: VMs where they lie, and who does not fit the nodes of the host it is on.
        left, left_then: by host that fails, who finds no place: as VMs are, and right-sized.
        pairs: of VMs that share a host against a rule.
        placed: an assignment with right-sized VMs that keeps rules and restarts all; None where none was found.
        is_checked: whether restarts could be checked: two hosts or more, and none missing.
    """

    estate: CpuEstate
    now: PackedVms
    spilled: tuple[str, ...]
    left: dict[int, list[str]]
    left_then: dict[int, list[str]]
    pairs: tuple[tuple[int, int], ...]
    placed: PackedVms | None
    is_checked: bool

    @property
    def title(self) -> str:
        """What its parts of the answer begin with."""
        return f"{self.estate.name}: " if self.estate.name else ""

    @property
    def moved(self) -> list[int]:
        """VMs that the assignment moves."""
        if self.placed is None:
            return []
        return [i for i, (old, new) in enumerate(zip(self.estate.at, self.placed.hosts, strict=True)) if old != new]


def checked(estate: CpuEstate, counting: Counting) -> CheckedCluster:
    """Restarts as VMs lie, and an assignment where needed."""
    now, then = ([getattr(own, key) for own in estate.members] for key in ("now", "then"))
    lies, spilled = lying(now, estate.at, estate.empty)
    is_checked = len(estate.servers) > 1 and not estate.missing
    left, left_then = {}, {}
    if is_checked:
        left, left_then = left_by(now, lies), left_by(then, lying(then, estate.at, estate.empty)[0])
    spare = counting.spare_hosts if is_checked else 0
    placed = arranged(then, estate.empty, spare, estate.at)
    pairs = tuple(clashes(now, estate.at))
    return CheckedCluster(estate, lies, tuple(spilled), left, left_then, pairs, placed, is_checked)


def plan_clusters(estates: Sequence[CpuEstate], counting: Counting) -> Plan | None:
    """The answer for all clusters of an inventory; None where no restart could be checked and no rule is broken."""
    found = [checked(estate, counting) for estate in estates]
    found = [own for own in found if own.is_checked or own.pairs]
    if not found:
        return None
    sheets: list[Sheet] = []
    for own in found:
        sheets += [_failures(own), *([_stuck(own)] if own.left else [])]
        if own.placed is not None and own.is_checked:
            sheets.append(_places(own, own.placed))
    failed = [own for own in found if own.placed is None and own.is_checked]
    return Plan(
        headline=" ".join(_headline(own, counting) for own in found),
        figures=tuple(figure for own in found for figure in _figures(own, counting)),
        sheets=tuple(sheets),
        assumptions=tuple(_assumptions(found, counting)),
        bends=tuple(bend for own in found for bend in _bends(own, counting)),
        snippets=tuple(_moves(own, own.placed) for own in found if own.placed is not None and own.moved),
        infeasible=_infeasible(failed[0], counting) if failed else None,
    )


def _headline(own: CheckedCluster, counting: Counting) -> str:
    estate = own.estate
    where = estate.name or _count(estate.servers, "host")
    lost = sorted({name for names in own.left.values() for name in names})
    if not own.is_checked:
        said = "restarts are not checked, as not all hosts are known"
    elif lost:
        said = f"{len(lost)} of {len(estate.members)} VMs cannot restart if their host fails ({_listed(lost)})"
    else:
        said = "every VM restarts if its host fails"
    if own.pairs:
        said += f"; {_count(own.pairs, 'pair')} of VMs share{'s' * (len(own.pairs) == 1)} a host against a rule"
    if own.placed is None and own.is_checked:
        return f"{where}: {said}; no assignment was found that mends it."
    if own.moved:
        ends = [(lost and _restarts(own, counting), "all restart"), (own.pairs, "rules are kept")]
        then = " and ".join(text for is_so, text in ends if is_so) or "all fit NUMA nodes"
        return f"{where}: {said}; after {_count(own.moved, 'move')} {then}."
    return f"{where}: {said}; right-sized, all do." if lost and _restarts(own, counting) else f"{where}: {said}."


def _restarts(own: CheckedCluster, counting: Counting) -> bool:
    """Whether all VMs of the assignment restart."""
    return own.is_checked and counting.spare_hosts > 0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:TOLD_MAX]) + (f" and {len(names) - TOLD_MAX} more" if len(names) > TOLD_MAX else "")


def _count(things: Sequence[object], noun: str) -> str:
    return several(len(things), noun)


def _figures(own: CheckedCluster, counting: Counting) -> Iterator[Figure]:
    estate, title = own.estate, own.title
    whole = sum(server.cores for server in estate.servers)
    is_sized = any(member.needed != member.vcpus for member in estate.members)
    for text, key in (("cores counted", "now"), ("cores counted, right-sized", "then"))[: 1 + is_sized]:
        told = f"{_parts(estate, key, counting)}; of {whole} cores of {_count(estate.servers, 'host')}"
        total = sum(getattr(member, key).cores for member in estate.members)
        yield Figure(f"{title}{text}", round(total, 1), "cores", told, SOURCE)
    sides = (("as they lie", own.left), ("right-sized where they lie", own.left_then))[: 1 + is_sized]
    for text, left in sides if own.is_checked else ():
        told = "; ".join(f"{estate.servers[host].entity.name} fails: {_listed(n)}" for host, n in left.items())
        count = len({name for names in left.values() for name in names})
        told = told or "each host fails in turn; its VMs find cores and memory of whole NUMA nodes on one host each"
        yield Figure(f"{title}VMs that cannot restart, {text}", count, "VMs", told, SOURCE)
    told = "; ".join(_pair(own, pair) for pair in own.pairs[:TOLD_MAX]) or "rules that keep VMs apart are kept"
    if any(member.now.apart for member in estate.members):
        yield Figure(f"{title}pairs against anti-affinity", len(own.pairs), "count", told, "DRS rules of the inventory")
    if own.placed is not None:
        told = "VMs that lie elsewhere in the assignment"
        yield Figure(f"{title}moves", len(own.moved), "count", told)
    yield from _licences(own)


def _parts(estate: CpuEstate, key: str, counting: Counting) -> str:
    """How many VMs were counted by which rule, and what they come to."""
    said = {
        DATABASE: "of databases, a core per vCPU",
        RECORDED: f"of VMs by recorded peak / {counting.target_pct:g} %",
        CONFIGURED: f"of VMs by vCPUs / {counting.vcpus_per_core:g}",
    }
    sums = {how: [getattr(own, key).cores for own in estate.members if own.how == how] for how in said}
    return " + ".join(f"{sum(cores):.1f} {said[how]} ({len(cores)})" for how, cores in sums.items() if cores)


def _pair(own: CheckedCluster, pair: tuple[int, int]) -> str:
    one, two = (own.estate.members[i] for i in pair)
    rule = ", ".join(sorted(one.now.apart & two.now.apart))
    return f"{one.name} and {two.name} on {own.estate.servers[one.host].entity.name} ({rule})"


def _licences(own: CheckedCluster) -> Iterator[Figure]:
    servers = own.estate.servers
    if all(server.sockets for server in servers):
        cores = sum(server.sockets * max(ceil(server.cores / server.sockets), LICENCE_CORES_MIN) for server in servers)
        told = (
            f"{sum(server.sockets for server in servers)} sockets, each with its cores but at least {LICENCE_CORES_MIN}"
        )
        yield Figure(f"{own.title}licences, hypervisor", cores, "cores", told, "Broadcom, counting cores")
    members = [member for member in own.estate.members if member.how == DATABASE]
    if members:
        now, then = (sum(max(getattr(one, key), LICENCE_VM_MIN) for one in members) for key in ("vcpus", "needed"))
        told = f"{_count(members, 'database VM')}, vCPUs of each but at least {LICENCE_VM_MIN}; {now} as they are"
        yield Figure(f"{own.title}licences, database by machine", then, "cores", told, "SQL Server licensing guide")


def _failures(own: CheckedCluster) -> Sheet:
    rows: list[tuple[str | float | int, ...]] = []
    for host, server in enumerate(own.estate.servers):
        here = [member for member in own.estate.members if member.host == host]
        counted, stuck = sum(member.now.cores for member in here), len(own.left.get(host, ()))
        known = stuck if own.is_checked else "not checked"
        rows.append((server.entity.name, len(here), round(counted, 1), cores_text(server), known))
    columns = ("host that fails", "VMs", "cores counted", "it has", "cannot restart")
    return Sheet(f"{own.title}hosts that fail, VMs as they lie", columns, tuple(rows))


def _stuck(own: CheckedCluster) -> Sheet:
    rows: list[tuple[str | float | int, ...]] = []
    for host, names in own.left.items():
        room = room_text(max((free for other, free in enumerate(own.now.free) if other != host), key=cores_free))
        rows += [
            (member.name, own.estate.servers[host].entity.name, round(member.now.cores, 2), round(member.now.gib, 1),
             member.now.nodes, room)
            for member in own.estate.members
            if member.host == host and member.name in names
        ]  # fmt: skip
    columns = ("VM", "host", "cores", "GiB", "nodes", "largest room elsewhere")
    return Sheet(f"{own.title}VMs that cannot restart, as they lie", columns, tuple(rows))


def cores_text(server: EstateHost) -> str:
    """Nodes of a host for people."""
    memory = f", {server.gib:,.0f} GiB" if isfinite(server.gib) else ""
    return f"{server.nodes} x {server.node[0]:g} cores{memory}"


def _places(own: CheckedCluster, placed: PackedVms) -> Sheet:
    names = [server.entity.name for server in own.estate.servers]
    rows = tuple(
        (member.name, names[member.host], names[host], member.vcpus, member.needed, round(member.then.cores, 2),
         member.how)
        for member, host in sorted(zip(own.estate.members, placed.hosts, strict=True),
                                   key=lambda pair: (pair[1], -pair[0].then.cores, pair[0].name))
    )  # fmt: skip
    columns = ("VM", "host now", "host then", "vCPUs", "needed", "cores counted", "counted by")
    return Sheet(f"{own.title}an assignment that keeps rules and restarts", columns, rows)


def _assumptions(found: Sequence[CheckedCluster], counting: Counting) -> Iterator[str]:
    yield (
        "Cores a VM counts: of databases one per vCPU; of others what was recorded at peak / "
        f"{counting.target_pct:g} %; not recorded, its vCPUs / {counting.vcpus_per_core:g} (vcpus_per_core)."
    )
    yield "A VM restarts where one host has its cores and memory free on as many NUMA nodes as it spans; nobody moves."
    if any(member.now.apart for own in found for member in own.estate.members):
        yield "HA keeps VMs of a rule apart when it restarts them: its option for anti-affinity rules is on."
    yield "HA starts a VM where its reservations fit: one that cannot restart here may start there, and wait."
    yield "No memory is shared or swapped: VMs count with all of it. Threads are not counted."
    for own in found:
        guessed = [server for server in own.estate.servers if not server.is_told]
        unknown = sum(1 for server in own.estate.servers if not isfinite(server.gib))
        small = sum(1 for member in own.estate.members if not member.gib)
        if not own.estate.name:
            yield "Hosts that name no cluster are taken as one."
        if guessed:
            yield f"{own.title}NUMA nodes of {_count(guessed, 'host')} are not known: {counting.socket_nodes} a socket."
        if unknown or small:
            yield f"{own.title}memory of {unknown} hosts and {small} VMs is not known and not checked."
        if own.estate.together:
            yield f"{own.title}{own.estate.together} rules that keep VMs together are not counted."
        if own.estate.missing:
            yield f"{own.title}{own.estate.missing} hosts or their cores are not known: restarts are not checked."


def _bends(own: CheckedCluster, counting: Counting) -> Iterator[Bend]:
    estate, title = own.estate, own.title
    if own.pairs:
        cost = "; ".join(_pair(own, pair) for pair in own.pairs[:TOLD_MAX]) + ": one failed host takes both"
        yield Bend(f"{title}VMs of a rule lie apart", cost, "DRS rules of the inventory")
    full = [i for i, free in enumerate(own.now.free) if cores_free(free) < -1e-6]
    for host in full:
        counted = sum(member.now.cores for member in estate.members if member.host == host)
        server = estate.servers[host]
        cost = f"{server.entity.name}: {counted:.1f} cores counted on {cores_text(server)}: VMs wait at peak"
        yield Bend(f"{title}hosts hold what their VMs count", cost, SOURCE)
    wide = [i for i, name in enumerate(member.name for member in estate.members) if name in own.spilled]
    wide = [i for i in wide if estate.members[i].host not in full]
    if wide:
        cost = f"{_listed([estate.members[i].name for i in wide])}: no nodes of their hosts have the cores and memory"
        yield Bend(f"{title}VMs fit NUMA nodes", cost, "vSphere resource management: virtual NUMA")
    if estate.is_ha_off:
        yield Bend(f"{title}HA is on", "nothing restarts by itself", SOURCE)
    if estate.is_vsan and not counting.storage_cores:
        cores = ceil(VSAN_SHARE * max(server.cores for server in estate.servers))
        cost = f"vSAN runs on these hosts and takes about a tenth of them: storage_cores: {cores}"
        yield Bend(f"{title}cores of hyperconverged storage are kept free", cost, "vSAN Design and Sizing guide")


def _moves(own: CheckedCluster, placed: PackedVms) -> Snippet:
    names = [server.entity.name for server in own.estate.servers]
    lines = ["# each when its target has room; between full hosts by way of a third"]
    lines += [
        f'Move-VM -VM (Get-VM "{own.estate.members[i].name}") -Destination (Get-VMHost "{names[placed.hosts[i]]}")'
        for i in own.moved
    ]
    return Snippet(f"{own.title}the assignment", "powercli", "\n".join(lines))


def _infeasible(own: CheckedCluster, counting: Counting) -> Infeasible:
    """The constraint that binds: a VM no host holds, cores, memory, or pieces; and how many hosts more would do."""
    estate = own.estate
    boxes = [member.then for member in estate.members]
    wide = [box for box in boxes if not any(next(fits(box, host), None) for host in estate.empty)]
    if wide:
        largest = max(estate.servers, key=lambda server: server.node[0] * server.nodes)
        constraint = f"{own.title}no empty host holds {', '.join(map(box_text, wide[:TOLD_MAX]))}"
        return Infeasible(constraint, f"VMs of {cores_text(largest)} at most, as {largest.entity.name} has")
    return Infeasible(f"{own.title}{_binding(own, boxes)}", _nearest(estate, boxes, counting))


def _binding(own: CheckedCluster, boxes: Sequence[Box]) -> str:
    estate = own.estate
    largest = max(range(len(estate.servers)), key=lambda host: cores_free(estate.empty[host]))
    rest = [host for position, host in enumerate(estate.empty) if position != largest]
    name = estate.servers[largest].entity.name
    for what, part, need in (
        ("cores", 0, sum(box.cores for box in boxes)),
        ("GiB", 1, sum(box.gib for box in boxes)),
    ):
        has = sum(node[part] for host in rest for node in host)
        if need > has:
            return f"VMs count {need:,.1f} {what}; without {name} there are {has:,.1f}"
    lost = sorted({name for names in (own.left_then or own.left).values() for name in names})
    free = sum(max(cores_free(host), 0.0) for host in own.now.free)
    what = f"{_listed(lost)} cannot restart" if lost else "VMs of a rule find no hosts apart"
    return f"{what}, though {free:,.1f} cores are free: in pieces on {_count(estate.servers, 'host')} and their nodes"


def _nearest(estate: CpuEstate, boxes: Sequence[Box], counting: Counting) -> str:
    largest = max(estate.servers, key=lambda server: server.node[0] * server.nodes)
    for more in range(1, MORE_MAX + 1):
        empty = (*estate.empty, *((largest.empty,) * more))
        if arranged(boxes, empty, counting.spare_hosts) is not None:
            return f"{more} more host{'s' * (more > 1)} like {largest.entity.name} ({cores_text(largest)})"
    return f"more than {MORE_MAX} hosts like {largest.entity.name} ({cores_text(largest)})"
