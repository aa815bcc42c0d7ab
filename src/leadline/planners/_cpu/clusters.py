"""Restarts after a host fails, DRS rules that are broken, and an assignment of VMs to hosts that corrects both."""

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
NAMES_MAX = 12
VSAN_SHARE = 0.1  # Source: SOURCE and the vSAN Design and Sizing guide: about a tenth of a host


@dataclass(frozen=True, slots=True)
class CheckedCluster:
    """A cluster with its checks: restarts, DRS rules, NUMA nodes.

    Attributes:
        estate: hosts and VMs of the cluster.
        now: VMs on the hosts they run on.
        spilled: names of VMs that do not fit the NUMA nodes of their host.
        left, left_then: by host that fails, names of VMs that cannot restart: as VMs are, and right-sized.
        pairs: pairs of VMs that share a host although a rule keeps them apart.
        placed: an assignment of right-sized VMs that keeps all rules and restarts all VMs; None where there is none.
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
        """Return the prefix of its figures and sheets: the cluster's name."""
        return f"{self.estate.name}: " if self.estate.name else ""

    @property
    def moved(self) -> list[int]:
        """VMs that the assignment moves."""
        if self.placed is None:
            return []
        return [i for i, (old, new) in enumerate(zip(self.estate.at, self.placed.hosts, strict=True)) if old != new]


def checked(estate: CpuEstate, counting: Counting) -> CheckedCluster:
    """Return the cluster with restarts and rules checked, and an assignment that corrects them."""
    now, then = ([getattr(member, key) for member in estate.members] for key in ("now", "then"))
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
    """Return the plan for all clusters; None where no restart could be checked and no rule is broken."""
    clusters = [checked(estate, counting) for estate in estates]
    clusters = [cluster for cluster in clusters if cluster.is_checked or cluster.pairs]
    if not clusters:
        return None
    sheets: list[Sheet] = []
    for cluster in clusters:
        sheets += [_failures(cluster), *([_stuck(cluster)] if cluster.left else [])]
        if cluster.placed is not None and cluster.is_checked:
            sheets.append(_places(cluster, cluster.placed))
    failed = [cluster for cluster in clusters if cluster.placed is None and cluster.is_checked]
    return Plan(
        headline=" ".join(_headline(cluster, counting) for cluster in clusters),
        figures=tuple(figure for cluster in clusters for figure in _figures(cluster, counting)),
        sheets=tuple(sheets),
        assumptions=tuple(_assumptions(clusters, counting)),
        bends=tuple(bend for cluster in clusters for bend in _bends(cluster, counting)),
        snippets=tuple(
            _moves(cluster, cluster.placed) for cluster in clusters if cluster.placed is not None and cluster.moved
        ),
        infeasible=_infeasible(failed[0], counting) if failed else None,
    )


def _headline(cluster: CheckedCluster, counting: Counting) -> str:
    estate = cluster.estate
    where = estate.name or _count(estate.servers, "host")
    lost = sorted({name for names in cluster.left.values() for name in names})
    if not cluster.is_checked:
        outcome = "restarts are not checked, as not all hosts are known"
    elif lost:
        outcome = f"{len(lost)} of {len(estate.members)} VMs cannot restart if their host fails ({_listed(lost)})"
    else:
        outcome = "every VM restarts if its host fails"
    if cluster.pairs:
        outcome += (
            f"; {_count(cluster.pairs, 'pair')} of VMs share{'s' * (len(cluster.pairs) == 1)} a host against a rule"
        )
    if cluster.placed is None and cluster.is_checked:
        return f"{where}: {outcome}; no assignment was found that mends it."
    if cluster.moved:
        ends = [(lost and _restarts(cluster, counting), "all restart"), (cluster.pairs, "rules are kept")]
        then = " and ".join(text for is_so, text in ends if is_so) or "all fit NUMA nodes"
        return f"{where}: {outcome}; after {_count(cluster.moved, 'move')} {then}."
    end = "; right-sized, all do." if lost and _restarts(cluster, counting) else "."
    return f"{where}: {outcome}{end}"


def _restarts(cluster: CheckedCluster, counting: Counting) -> bool:
    """Whether all VMs of the assignment restart."""
    return cluster.is_checked and counting.spare_hosts > 0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMES_MAX]) + (f" and {len(names) - NAMES_MAX} more" if len(names) > NAMES_MAX else "")


def _count(counted: Sequence[object], noun: str) -> str:
    return several(len(counted), noun)


def _figures(cluster: CheckedCluster, counting: Counting) -> Iterator[Figure]:
    estate, title = cluster.estate, cluster.title
    whole = sum(server.cores for server in estate.servers)
    is_sized = any(member.needed != member.vcpus for member in estate.members)
    for text, key in (("cores counted", "now"), ("cores counted, right-sized", "then"))[: 1 + is_sized]:
        note = f"{_parts(estate, key, counting)}; of {whole} cores of {_count(estate.servers, 'host')}"
        total = sum(getattr(member, key).cores for member in estate.members)
        yield Figure(f"{title}{text}", round(total, 1), "cores", note, SOURCE)
    sides = (("as they lie", cluster.left), ("right-sized where they lie", cluster.left_then))[: 1 + is_sized]
    for text, left in sides if cluster.is_checked else ():
        note = "; ".join(f"{estate.servers[host].entity.name} fails: {_listed(n)}" for host, n in left.items())
        count = len({name for names in left.values() for name in names})
        note = note or "each host fails in turn; its VMs find cores and memory of whole NUMA nodes on one host each"
        yield Figure(f"{title}VMs that cannot restart, {text}", count, "VMs", note, SOURCE)
    note = "; ".join(_pair(cluster, pair) for pair in cluster.pairs[:NAMES_MAX]) or "rules that keep VMs apart are kept"
    if any(member.now.apart for member in estate.members):
        yield Figure(
            f"{title}pairs against anti-affinity", len(cluster.pairs), "count", note, "DRS rules of the inventory"
        )
    if cluster.placed is not None:
        note = "VMs that lie elsewhere in the assignment"
        yield Figure(f"{title}moves", len(cluster.moved), "count", note)
    yield from _licences(cluster)


def _parts(estate: CpuEstate, key: str, counting: Counting) -> str:
    """Return, for each way to count cores, the cores and the number of VMs counted that way."""
    texts = {
        DATABASE: "of databases, a core per vCPU",
        RECORDED: f"of VMs by recorded peak / {counting.target_pct:g} %",
        CONFIGURED: f"of VMs by vCPUs / {counting.vcpus_per_core:g}",
    }
    sums = {how: [getattr(member, key).cores for member in estate.members if member.how == how] for how in texts}
    return " + ".join(f"{sum(cores):.1f} {texts[how]} ({len(cores)})" for how, cores in sums.items() if cores)


def _pair(cluster: CheckedCluster, pair: tuple[int, int]) -> str:
    one, two = (cluster.estate.members[i] for i in pair)
    rule = ", ".join(sorted(one.now.apart & two.now.apart))
    return f"{one.name} and {two.name} on {cluster.estate.servers[one.host].entity.name} ({rule})"


def _licences(cluster: CheckedCluster) -> Iterator[Figure]:
    servers = cluster.estate.servers
    if all(server.sockets for server in servers):
        cores = sum(server.sockets * max(ceil(server.cores / server.sockets), LICENCE_CORES_MIN) for server in servers)
        arithmetic = (
            f"{sum(server.sockets for server in servers)} sockets, each with its cores but at least {LICENCE_CORES_MIN}"
        )
        yield Figure(f"{cluster.title}licences, hypervisor", cores, "cores", arithmetic, "Broadcom, counting cores")
    members = [member for member in cluster.estate.members if member.how == DATABASE]
    if members:
        now, then = (sum(max(getattr(one, key), LICENCE_VM_MIN) for one in members) for key in ("vcpus", "needed"))
        arithmetic = f"{_count(members, 'database VM')}, vCPUs of each but at least {LICENCE_VM_MIN}; {now} as they are"
        yield Figure(
            f"{cluster.title}licences, database by machine", then, "cores", arithmetic, "SQL Server licensing guide"
        )


def _failures(cluster: CheckedCluster) -> Sheet:
    rows: list[tuple[str | float | int, ...]] = []
    for host, server in enumerate(cluster.estate.servers):
        here = [member for member in cluster.estate.members if member.host == host]
        counted, stuck = sum(member.now.cores for member in here), len(cluster.left.get(host, ()))
        known = stuck if cluster.is_checked else "not checked"
        rows.append((server.entity.name, len(here), round(counted, 1), cores_text(server), known))
    columns = ("host that fails", "VMs", "cores counted", "it has", "cannot restart")
    return Sheet(f"{cluster.title}hosts that fail, VMs as they lie", columns, tuple(rows))


def _stuck(cluster: CheckedCluster) -> Sheet:
    rows: list[tuple[str | float | int, ...]] = []
    for host, names in cluster.left.items():
        room = room_text(max((free for other, free in enumerate(cluster.now.free) if other != host), key=cores_free))
        name = cluster.estate.servers[host].entity.name
        rows += [
            (member.name, name, round(member.now.cores, 2), round(member.now.gib, 1), member.now.nodes, room)
            for member in cluster.estate.members
            if member.host == host and member.name in names
        ]
    columns = ("VM", "host", "cores", "GiB", "nodes", "largest room elsewhere")
    return Sheet(f"{cluster.title}VMs that cannot restart, as they lie", columns, tuple(rows))


def cores_text(server: EstateHost) -> str:
    """Return the NUMA nodes and memory of a host as text."""
    memory = f", {server.gib:,.0f} GiB" if isfinite(server.gib) else ""
    return f"{server.nodes} x {server.node[0]:g} cores{memory}"


def _places(cluster: CheckedCluster, placed: PackedVms) -> Sheet:
    names = [server.entity.name for server in cluster.estate.servers]
    rows = tuple(
        (member.name, names[member.host], names[host], member.vcpus, member.needed, round(member.then.cores, 2),
         member.how)
        for member, host in sorted(zip(cluster.estate.members, placed.hosts, strict=True),
                                   key=lambda pair: (pair[1], -pair[0].then.cores, pair[0].name))
    )  # fmt: skip
    columns = ("VM", "host now", "host then", "vCPUs", "needed", "cores counted", "counted by")
    return Sheet(f"{cluster.title}an assignment that keeps rules and restarts", columns, rows)


def _assumptions(clusters: Sequence[CheckedCluster], counting: Counting) -> Iterator[str]:
    yield (
        "Cores a VM counts: of databases one per vCPU; of others what was recorded at peak / "
        f"{counting.target_pct:g} %; not recorded, its vCPUs / {counting.vcpus_per_core:g} (vcpus_per_core)."
    )
    yield "A VM restarts where one host has its cores and memory free on as many NUMA nodes as it spans; nobody moves."
    if any(member.now.apart for cluster in clusters for member in cluster.estate.members):
        yield "HA keeps VMs of a rule apart when it restarts them: its option for anti-affinity rules is on."
    yield "HA starts a VM where its reservations fit: one that cannot restart here may start there, and wait."
    yield "No memory is shared or swapped: VMs count with all of it. Threads are not counted."
    for cluster in clusters:
        guessed = [server for server in cluster.estate.servers if not server.has_known_nodes]
        unknown = sum(1 for server in cluster.estate.servers if not isfinite(server.gib))
        small = sum(1 for member in cluster.estate.members if not member.gib)
        if not cluster.estate.name:
            yield "Hosts that name no cluster are taken as one."
        if guessed:
            guess = f"{counting.socket_nodes} a socket"
            yield f"{cluster.title}NUMA nodes of {_count(guessed, 'host')} are not known: {guess}."
        if unknown or small:
            yield f"{cluster.title}memory of {unknown} hosts and {small} VMs is not known and not checked."
        if cluster.estate.together:
            yield f"{cluster.title}{cluster.estate.together} rules that keep VMs together are not counted."
        if cluster.estate.missing:
            missing = f"{cluster.estate.missing} hosts or their cores"
            yield f"{cluster.title}{missing} are not known: restarts are not checked."


def _bends(cluster: CheckedCluster, counting: Counting) -> Iterator[Bend]:
    estate, title = cluster.estate, cluster.title
    if cluster.pairs:
        cost = "; ".join(_pair(cluster, pair) for pair in cluster.pairs[:NAMES_MAX]) + ": one failed host takes both"
        yield Bend(f"{title}VMs of a rule lie apart", cost, "DRS rules of the inventory")
    full = [i for i, free in enumerate(cluster.now.free) if cores_free(free) < -1e-6]
    for host in full:
        counted = sum(member.now.cores for member in estate.members if member.host == host)
        server = estate.servers[host]
        cost = f"{server.entity.name}: {counted:.1f} cores counted on {cores_text(server)}: VMs wait at peak"
        yield Bend(f"{title}hosts hold what their VMs count", cost, SOURCE)
    wide = [i for i, name in enumerate(member.name for member in estate.members) if name in cluster.spilled]
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


def _moves(cluster: CheckedCluster, placed: PackedVms) -> Snippet:
    names = [server.entity.name for server in cluster.estate.servers]
    lines = ["# each when its target has room; between full hosts by way of a third"]
    lines += [
        f'Move-VM -VM (Get-VM "{cluster.estate.members[i].name}") -Destination (Get-VMHost "{names[placed.hosts[i]]}")'
        for i in cluster.moved
    ]
    return Snippet(f"{cluster.title}the assignment", "powercli", "\n".join(lines))


def _infeasible(cluster: CheckedCluster, counting: Counting) -> Infeasible:
    """Return what is short (a host large enough, cores, memory) and how many more hosts would be enough."""
    estate = cluster.estate
    boxes = [member.then for member in estate.members]
    wide = [box for box in boxes if not any(next(fits(box, host), None) for host in estate.empty)]
    if wide:
        largest = max(estate.servers, key=lambda server: server.node[0] * server.nodes)
        constraint = f"{cluster.title}no empty host holds {', '.join(map(box_text, wide[:NAMES_MAX]))}"
        return Infeasible(constraint, f"VMs of {cores_text(largest)} at most, as {largest.entity.name} has")
    return Infeasible(f"{cluster.title}{_binding(cluster, boxes)}", _nearest(estate, boxes, counting))


def _binding(cluster: CheckedCluster, boxes: Sequence[Box]) -> str:
    estate = cluster.estate
    largest = max(range(len(estate.servers)), key=lambda host: cores_free(estate.empty[host]))
    rest = [host for position, host in enumerate(estate.empty) if position != largest]
    name = estate.servers[largest].entity.name
    for unit, axis, need in (
        ("cores", 0, sum(box.cores for box in boxes)),
        ("GiB", 1, sum(box.gib for box in boxes)),
    ):
        has = sum(node[axis] for host in rest for node in host)
        if need > has:
            return f"VMs count {need:,.1f} {unit}; without {name} there are {has:,.1f}"
    lost = sorted({name for names in (cluster.left_then or cluster.left).values() for name in names})
    free = sum(max(cores_free(host), 0.0) for host in cluster.now.free)
    problem = f"{_listed(lost)} cannot restart" if lost else "VMs of a rule find no hosts apart"
    return (
        f"{problem}, though {free:,.1f} cores are free: in pieces on {_count(estate.servers, 'host')} and their nodes"
    )


def _nearest(estate: CpuEstate, boxes: Sequence[Box], counting: Counting) -> str:
    largest = max(estate.servers, key=lambda server: server.node[0] * server.nodes)
    for more in range(1, MORE_MAX + 1):
        empty = (*estate.empty, *((largest.empty,) * more))
        if arranged(boxes, empty, counting.spare_hosts) is not None:
            return f"{more} more host{'s' * (more > 1)} like {largest.entity.name} ({cores_text(largest)})"
    return f"more than {MORE_MAX} hosts like {largest.entity.name} ({cores_text(largest)})"
