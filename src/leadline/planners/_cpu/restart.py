"""An assignment of VMs to hosts of which every VM restarts elsewhere after its host failed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from leadline.planners._cpu.packing import (
    SOME_BOXES,
    Box,
    Free,
    PackedVms,
    by_size,
    cores_free,
    lying,
    packed,
    somehow,
    spread,
    stranded,
)

# Judgement: moves tried one by one, fewer of many VMs and hosts; after them a new assignment is made.
TRIES_MAX, TRIES_WORK = 400, 200_000


def left_by(boxes: Sequence[Box], placed: PackedVms) -> dict[int, list[str]]:
    """Return the names of VMs that cannot restart, by the host that fails; hosts whose VMs all restart are left out."""
    names_by_host = {host: stranded(boxes, placed, host) for host in sorted(set(placed.hosts))}
    return {host: names for host, names in names_by_host.items() if names}


def clashes(boxes: Sequence[Box], hosts: Sequence[int]) -> list[tuple[int, int]]:
    """Pairs of VMs that share a host although a rule keeps them apart."""
    pairs = combinations((i for i, box in enumerate(boxes) if box.apart), 2)
    return [(i, j) for i, j in pairs if hosts[i] == hosts[j] and boxes[i].apart & boxes[j].apart]


def arranged(boxes: Sequence[Box], empty: Free, spare: int, at: Sequence[int] | None = None) -> PackedVms | None:
    """Return the first assignment that places all VMs, and restarts all after any one host failed; None without one.

    Tried in this order: where VMs lie (``at``) with few moves, spread over all hosts, and packed on some with the
    largest hosts kept empty. With no spare host nothing has to restart; with more than one, they are kept empty.
    """
    if spare <= 1:
        for placed in _tries(boxes, empty, at, spare):
            if spare == 0 or (len(empty) > 1 and not left_by(boxes, placed)):
                return placed
    order = sorted(range(len(empty)), key=lambda host: (cores_free(empty[host]), -host))
    used = sorted(order[: max(len(empty) - spare, 0)])
    packed_vms = _place_any(boxes, tuple(empty[host] for host in used)) if used else None
    if packed_vms is None:
        return None
    free = list(empty)
    for position, host in enumerate(used):
        free[host] = packed_vms.free[position]
    placed = _kept(PackedVms(tuple(used[host] for host in packed_vms.hosts), tuple(free)), empty, at)
    return placed if spare != 1 or not left_by(boxes, placed) else None


def _place_any(boxes: Sequence[Box], empty: Free) -> PackedVms | None:
    placed = somehow(boxes, empty)
    return packed(boxes, empty) if placed is None and len(boxes) <= SOME_BOXES else placed


def _tries(boxes: Sequence[Box], empty: Free, at: Sequence[int] | None, spare: int) -> Iterator[PackedVms]:
    if at is not None:
        mended = _mended(boxes, empty, at)
        if mended is not None:
            yield mended
            if spare:
                yield _improved(boxes, empty, mended)
        elif spare and not clashes(boxes, at):
            yield lying(boxes, at, empty)[0]  # some take more nodes than they need, but all may restart
    placed = spread(boxes, empty)
    if placed is not None:
        yield _kept(placed, empty, at)


def _mended(boxes: Sequence[Box], empty: Free, at: Sequence[int]) -> PackedVms | None:
    """Return VMs on their hosts, except those that do not fit or break a rule there: these are spread."""
    spilled = lying(boxes, at, empty)[1]
    going = {i for i, box in enumerate(boxes) if box.name in spilled} | {j for _, j in clashes(boxes, at)}
    staying = [i for i in range(len(boxes)) if i not in going]
    placed, _ = lying([boxes[i] for i in staying], [at[i] for i in staying], empty)
    groups = {
        host: frozenset[str]().union(*(boxes[i].apart for i in staying if at[i] == host)) for host in range(len(empty))
    }
    moved = sorted(going)
    placed_movers = spread([boxes[i] for i in moved], placed.free, groups)
    if placed_movers is None:
        return None
    hosts = list(at)
    for i, host in zip(moved, placed_movers.hosts, strict=True):
        hosts[i] = host
    return PackedVms(tuple(hosts), placed_movers.free)


def _improved(boxes: Sequence[Box], empty: Free, placed: PackedVms) -> PackedVms:
    """Move VMs one by one while this leaves fewer cores of VMs that cannot restart; return the placement."""
    tries, lost = 0, _lost(boxes, placed)
    tries_max = min(TRIES_MAX, TRIES_WORK // (len(boxes) * len(empty)))
    is_better = True
    while lost and is_better:
        is_better = False
        for i in by_size(boxes):
            for host in range(len(empty)):
                if host == placed.hosts[i] or tries >= tries_max:
                    continue
                tries += 1
                hosts = (*placed.hosts[:i], host, *placed.hosts[i + 1 :])
                other, spilled = lying(boxes, hosts, empty)
                if spilled or clashes(boxes, hosts):
                    continue
                less = _lost(boxes, other)
                if less < lost:
                    placed, lost, is_better = other, less, True
                if not lost:
                    return placed
    return placed


def _lost(boxes: Sequence[Box], placed: PackedVms) -> float:
    """Return the cores of all VMs that cannot restart when one of the hosts fails."""
    names = {name for left in left_by(boxes, placed).values() for name in left}
    return sum(box.cores for box in boxes if box.name in names)


def _kept(placed: PackedVms, empty: Free, at: Sequence[int] | None) -> PackedVms:
    """Exchange identical hosts in the assignment so that as many VMs as possible stay where they are."""
    if at is None:
        return placed
    names: dict[int, int] = {}
    for new in sorted(range(len(empty)), key=lambda host: -placed.hosts.count(host)):
        alike = [host for host in range(len(empty)) if empty[host] == empty[new] and host not in names.values()]
        pairs = [now for now, host in zip(at, placed.hosts, strict=True) if host == new]
        names[new] = max(alike, key=lambda host: (pairs.count(host), host == new, -host))
    free = {names[new]: host for new, host in enumerate(placed.free)}
    return PackedVms(tuple(names[host] for host in placed.hosts), tuple(free[host] for host in range(len(empty))))
