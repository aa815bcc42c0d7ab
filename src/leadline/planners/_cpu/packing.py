"""VMs on hosts and their NUMA nodes: cores and memory, apart where they must be, and after a host failed.

An exact search by branch and bound for the fewest hosts, cut off after a number of steps; the first answer of the
search is first fit in decreasing size, so that a search cut off is still a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil

STEPS_MAX = 20_000
SOME_STEPS, SOME_BOXES = 500, 60  # Judgement: where any place will do, the greedy tries before nearly always find it
NEAR = 1e-9  # sums that are equal but for rounding
Node = tuple[float, float]  # free cores, free GiB
Host = tuple[Node, ...]
Free = tuple[Host, ...]  # by host
Groups = Mapping[int, frozenset[str]]  # by host, groups of which a VM is on it


@dataclass(frozen=True, slots=True)
class Box:
    """A VM to place.

    Attributes:
        name: of the VM.
        cores, gib: what it takes of a host.
        nodes: over how many NUMA nodes, evenly.
        apart: groups of which no two share a host.
        more: other numbers of nodes that it may lie on, where hosts differ.
    """

    name: str
    cores: float
    gib: float
    nodes: int
    apart: frozenset[str] = frozenset()
    more: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class PackedVms:
    """Hosts by VM (in the order given), what is free then, and whether no plan with fewer hosts exists."""

    hosts: tuple[int, ...]
    free: Free
    is_optimal: bool = False

    @property
    def hosts_used(self) -> int:
        """How many hosts have a VM."""
        return len(set(self.hosts))


def split(vcpus: int, gib: float, node: Node, nodes: int) -> tuple[int, int] | None:
    """How many vCPUs in all and vNUMA nodes: the fewest nodes that hold an even number split evenly.

    >>> split(16, 64.0, (12, 128.0), 2), split(12, 100.0, (12, 128.0), 2), split(12, 200.0, (12, 128.0), 2)
    ((16, 2), (12, 1), (12, 2))
    """
    even = vcpus + vcpus % 2 if vcpus > 1 else 1
    for count in range(1, nodes + 1):
        whole = even
        while whole % count or (whole % 2 and whole > 1):
            whole += 1
        if whole // count <= node[0] and gib / count <= node[1]:
            return whole, count
    return None


def by_size(boxes: Sequence[Box]) -> list[int]:
    """Positions of the boxes, the largest first."""
    return sorted(range(len(boxes)), key=lambda i: (-boxes[i].cores, -boxes[i].gib, boxes[i].name))


def packed(boxes: Sequence[Box], free: Free, fixed: Groups | None = None) -> PackedVms | None:
    """The plan with the fewest hosts; None when there is none (or none was found within the steps).

    Args:
        boxes: what to place.
        free: what each host has free, by node.
        fixed: groups that are on a host already.
    """
    return _searched(boxes, free, fixed or {}, STEPS_MAX, is_any=False)


def _searched(boxes: Sequence[Box], free: Free, fixed: Groups, steps_max: int, *, is_any: bool) -> PackedVms | None:
    order = by_size(boxes)
    search = _Search([boxes[i] for i in order], free, fixed, steps_max, is_any=is_any)
    search.descend(0, free, ())
    if search.best is None:
        return None
    hosts = [0] * len(boxes)
    for position, host in zip(order, search.best[0], strict=True):
        hosts[position] = host
    return PackedVms(tuple(hosts), search.best[1], search.steps < steps_max)


class _Search:
    def __init__(self, boxes: Sequence[Box], free: Free, fixed: Groups, steps_max: int, *, is_any: bool) -> None:
        self.boxes, self.fixed, self.steps, self.steps_max, self.is_any = boxes, fixed, 0, steps_max, is_any
        largest = max((sum(cores for cores, _ in host) for host in free), default=0.0)
        self.bound = ceil(sum(box.cores for box in boxes) / largest - NEAR) if largest > 0 else 0
        self.best: tuple[tuple[int, ...], Free] | None = None

    def descend(self, position: int, free: Free, hosts: tuple[int, ...]) -> None:
        """Place the VMs from this position on, in every way that may still need fewer hosts."""
        if self.steps >= self.steps_max or self._is_enough(hosts):
            return
        self.steps += 1
        if position == len(self.boxes):
            self.best = (hosts, free)
            return
        seen: set[object] = set()
        for host in range(len(free)):
            groups = self._groups(host, hosts)
            key = (free[host], groups, host in hosts)
            if key not in seen and not self.boxes[position].apart & groups:
                seen.add(key)
                for after in fits(self.boxes[position], free[host]):
                    self.descend(position + 1, (*free[:host], after, *free[host + 1 :]), (*hosts, host))

    def _is_enough(self, hosts: tuple[int, ...]) -> bool:
        if self.best is None:
            return False
        return self.is_any or len(set(self.best[0])) <= max(len(set(hosts)), self.bound)

    def _groups(self, host: int, hosts: tuple[int, ...]) -> frozenset[str]:
        here = (b.apart for b, h in zip(self.boxes, hosts, strict=False) if h == host)
        return self.fixed.get(host, frozenset()).union(*here)


def fits(box: Box, host: Host) -> Iterator[Host]:
    """Yield the host's free resources with the VM on it, for each different choice of nodes, fullest nodes first."""
    seen = set()
    for count in (box.nodes, *box.more):
        cores, gib = box.cores / count, box.gib / count
        able = [i for i, (free, room) in enumerate(host) if free >= cores - NEAR and room >= gib - NEAR]
        for chosen in combinations(sorted(able, key=lambda i: host[i]), count):
            key = tuple(host[i] for i in chosen)
            if key not in seen:
                seen.add(key)
                yield tuple((c - cores, m - gib) if i in chosen else (c, m) for i, (c, m) in enumerate(host))


def cores_free(host: Host) -> float:
    """Free cores of all its nodes."""
    return sum(cores for cores, _ in host)


def spread(
    boxes: Sequence[Box], free: Free, fixed: Groups | None = None, *, is_packed: bool = False
) -> PackedVms | None:
    """Place the largest VM first, each on the host with the most free cores it fits on (the fewest, if packed)."""
    hosts, left = [0] * len(boxes), list(free)
    groups = dict(fixed or {})
    sign = 1 if is_packed else -1
    for i in by_size(boxes):
        for host in sorted(range(len(left)), key=lambda position: (sign * cores_free(left[position]), position)):
            after = None if boxes[i].apart & groups.get(host, frozenset()) else next(fits(boxes[i], left[host]), None)
            if after is not None:
                hosts[i], left[host] = host, after
                groups[host] = groups.get(host, frozenset()) | boxes[i].apart
                break
        else:
            return None
    return PackedVms(tuple(hosts), tuple(left))


def somehow(boxes: Sequence[Box], free: Free, fixed: Groups | None = None) -> PackedVms | None:
    """Return any assignment of all VMs: spread, packed, else the first of a short search; None without one."""
    for is_packed in (False, True):
        placed = spread(boxes, free, fixed, is_packed=is_packed)
        if placed is not None or len(boxes) == 1:
            return placed
    return _searched(boxes, free, fixed or {}, SOME_STEPS, is_any=True) if len(boxes) <= SOME_BOXES else None


def lying(boxes: Sequence[Box], hosts: Sequence[int], empty: Free) -> tuple[PackedVms, list[str]]:
    """Return VMs on their hosts, and names of those that fit no nodes there: they count on all nodes evenly."""
    free, spilled = list(empty), []
    for i in by_size(boxes):
        box, host = boxes[i], hosts[i]
        after = next(fits(box, free[host]), None)
        if after is None:
            spilled.append(box.name)
            count = len(free[host])
            after = tuple((cores - box.cores / count, gib - box.gib / count) for cores, gib in free[host])
        free[host] = after
    return PackedVms(tuple(hosts), tuple(free)), spilled


def stranded(boxes: Sequence[Box], placed: PackedVms, host: int) -> list[str]:
    """Return names of VMs that cannot restart when the host fails and no other VM moves; the largest restart first."""
    lost = [box for box, at in zip(boxes, placed.hosts, strict=True) if at == host]
    lost = [lost[i] for i in by_size(lost)]
    keep = [other for other in range(len(placed.free)) if other != host]
    groups = {
        position: frozenset[str]().union(*(b.apart for b, h in zip(boxes, placed.hosts, strict=True) if h == other))
        for position, other in enumerate(keep)
    }
    free = tuple(placed.free[other] for other in keep)
    left = [box.name for box in lost if somehow([box], free, groups) is None]
    able = [box for box in lost if box.name not in left]
    if somehow(able, free, groups) is not None:
        return left
    for box in able:
        one = somehow([box], free, groups)
        if one is None:
            left.append(box.name)
        else:
            free = one.free
            groups[one.hosts[0]] |= box.apart
    return left
