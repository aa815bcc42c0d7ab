"""VMs on hosts and their NUMA nodes: whole cores and memory, apart where they must be, and after a host failed.

An exact search by branch and bound for the fewest hosts, cut off after a number of steps; the first answer of the
search is first fit in decreasing size, so that a search cut off is still a plan.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations
from math import ceil

STEPS_MAX = 20_000
Node = tuple[int, float]  # free cores, free GiB
Free = tuple[tuple[Node, ...], ...]  # by host


@dataclass(frozen=True, slots=True)
class Box:
    """A VM to place: vCPUs and GiB, over how many nodes, and the group of which no two share a host."""

    name: str
    vcpus: int
    gib: float
    nodes: int
    apart: str = ""


@dataclass(frozen=True, slots=True)
class Placed:
    """Hosts by VM (in the order given), what is free then, and whether no plan with fewer hosts exists."""

    hosts: tuple[int, ...]
    free: Free
    is_optimal: bool

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


def packed(boxes: Sequence[Box], free: Free, fixed: dict[int, set[str]] | None = None) -> Placed | None:
    """The plan with the fewest hosts; None when there is none (or none was found within the steps).

    Args:
        boxes: what to place.
        free: what each host has free, by node.
        fixed: groups that are on a host already.
    """
    order = sorted(range(len(boxes)), key=lambda i: (-boxes[i].vcpus, -boxes[i].gib, boxes[i].name))
    search = _Search([boxes[i] for i in order], free, fixed or {})
    search.descend(0, free, ())
    if search.best is None:
        return None
    hosts = [0] * len(boxes)
    for position, host in zip(order, search.best[0], strict=True):
        hosts[position] = host
    return Placed(tuple(hosts), search.best[1], search.steps < STEPS_MAX)


class _Search:
    def __init__(self, boxes: Sequence[Box], free: Free, fixed: dict[int, set[str]]) -> None:
        self.boxes, self.fixed, self.steps = boxes, fixed, 0
        self.start = free
        largest = max((sum(cores for cores, _ in host) for host in free), default=0)
        self.bound = ceil(sum(box.vcpus for box in boxes) / largest) if largest else 0
        self.best: tuple[tuple[int, ...], Free] | None = None

    def descend(self, position: int, free: Free, hosts: tuple[int, ...]) -> None:
        """Place the VMs from this position on, in every way that may still need fewer hosts."""
        used = len(set(hosts))
        if self.steps >= STEPS_MAX or (self.best is not None and len(set(self.best[0])) <= max(used, self.bound)):
            return
        self.steps += 1
        if position == len(self.boxes):
            self.best = (hosts, free)
            return
        seen: set[object] = set()
        for host in range(len(free)):
            if self._is_apart(position, host, hosts):
                groups = frozenset(b.apart for b, h in zip(self.boxes, hosts, strict=False) if h == host)
                key = (free[host], groups | self.fixed.get(host, set()), host in hosts)
                if key not in seen:
                    seen.add(key)
                    for after in fits(self.boxes[position], free[host]):
                        self.descend(position + 1, (*free[:host], after, *free[host + 1 :]), (*hosts, host))

    def _is_apart(self, position: int, host: int, hosts: tuple[int, ...]) -> bool:
        group = self.boxes[position].apart
        if not group:
            return True
        here = {self.boxes[i].apart for i, own in enumerate(hosts) if own == host}
        return group not in here | self.fixed.get(host, set())


def fits(box: Box, host: tuple[Node, ...]) -> Iterator[tuple[Node, ...]]:
    """What a host has free with the VM on it, for every choice of nodes that differ; the fullest nodes first."""
    cores, gib = box.vcpus // box.nodes, box.gib / box.nodes
    able = [i for i, (free, room) in enumerate(host) if free >= cores and room >= gib - 1e-9]
    seen = set()
    for chosen in combinations(sorted(able, key=lambda i: host[i]), box.nodes):
        key = tuple(host[i] for i in chosen)
        if key not in seen:
            seen.add(key)
            yield tuple((c - cores, m - gib) if i in chosen else (c, m) for i, (c, m) in enumerate(host))


def spread(boxes: Sequence[Box], free: Free) -> Placed | None:
    """The largest VM first, each on the host with the most free cores; None when one does not fit so."""
    hosts = [0] * len(boxes)
    groups: dict[int, set[str]] = {}
    for i in sorted(range(len(boxes)), key=lambda i: (-boxes[i].vcpus, -boxes[i].gib, boxes[i].name)):
        able = [
            (-sum(cores for cores, _ in free[host]), host, after)
            for host in range(len(free))
            if not boxes[i].apart or boxes[i].apart not in groups.get(host, set())
            if (after := next(fits(boxes[i], free[host]), None)) is not None
        ]
        if not able:
            return None
        _, host, after = min(able, key=lambda own: own[:2])
        hosts[i] = host
        groups.setdefault(host, set()).add(boxes[i].apart)
        free = (*free[:host], after, *free[host + 1 :])
    return Placed(tuple(hosts), free, is_optimal=False)


def stranded(boxes: Sequence[Box], placed: Placed, host: int) -> list[str]:
    """VMs of a host that find no place when it fails and nobody else moves; the largest is restarted first."""
    lost = sorted((b for b, h in zip(boxes, placed.hosts, strict=True) if h == host), key=lambda b: (-b.vcpus, b.name))
    keep = [h for h in range(len(placed.free)) if h != host]
    groups = {
        position: {b.apart for b, h in zip(boxes, placed.hosts, strict=True) if h == own and b.apart}
        for position, own in enumerate(keep)
    }
    free = tuple(placed.free[h] for h in keep)
    if packed(lost, free, groups) is not None:
        return []
    left = []
    for box in lost:
        one = packed([box], free, groups)
        if one is None:
            left.append(box.name)
        else:
            free = one.free
            groups[one.hosts[0]].add(box.apart)
    return left
