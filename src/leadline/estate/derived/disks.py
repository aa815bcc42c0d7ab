"""Disks seen from several heights: what a disk is for, what lies behind it, and when its latency counts.

A block device of a guest is a virtual disk of its VM, which lies on a device (LUN) or a datastore of the host. The
inventory may name each step; where it does, a role given to one of them holds for those below.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.derived import Upkeep, derived
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.vocabulary import EntityKind, Role
from leadline.estate.arithmetic.timeline import window_mean

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.derived import Recorded
    from leadline.core.model.finding import Finding, Window

MS_PER_S = 1000.0
# sda1 and nvme0n1p1 are parts of sda and nvme0n1; nvme0n1, dm-0, loop0 and md0 are disks of their own.
_PARTITION = re.compile(
    r"^((?:s|h|v|xv)d[a-z]+)\d+$|^((?:nvme\d+n|mmcblk|loop|md|nbd)\d+)p\d+$|^(disk\d+)s\d+(?:s\d+)?$"
)
# Where one device serves several roles, it must be as quick as the most demanding one needs.
_DEMAND = (Role.WAL, Role.DATA, Role.TEMP, Role.SYSTEM, Role.BACKUP)


@dataclass(frozen=True, slots=True)
class Use:
    """What a disk is used for: role (None: not known), whether that is a guess, and its medium if known."""

    role: Role | None = None
    guessed: bool = False
    medium: str | None = None


def whole_disk(name: str) -> str:
    """The disk a partition is on, by its name; another name is returned as it is, without ``/dev/``.

    >>> [whole_disk(name) for name in ("/dev/sdb2", "nvme0n1p1", "nvme0n1", "disk1s2", "dm-0")]
    ['sdb', 'nvme0n1', 'nvme0n1', 'disk1', 'dm-0']
    """
    bare = name.removeprefix("/dev/")
    match = _PARTITION.match(bare)
    return bare if match is None else next(stem for stem in match.groups() if stem)


def is_whole(context: Recorded, entity: Entity) -> bool:
    """False for a partition whose disk was recorded too: its I/O would count twice."""
    stem = whole_disk(entity.name)
    return stem == entity.name or replace(entity, name=stem) not in context.inventory.facts


def role_of(inventory: Inventory, entity: Entity) -> tuple[Role, bool] | None:
    """What a disk is for, and whether that is a guess; None when nothing hints at it."""
    fact = inventory.fact(entity, "role")
    return None if fact is None else (Role(fact.value), fact.guessed)


def virtual_disk_of(inventory: Inventory, block_device: Entity) -> Entity | None:
    """The virtual disk a guest's block device is, where the inventory says it."""
    name = inventory.get(block_device, "virtual_disk")
    guest = block_device.ancestor(EntityKind.GUEST)
    vm = None if guest is None else inventory.vm_of(guest)
    return None if name is None or vm is None else Entity(EntityKind.VIRTUAL_DISK, str(name), vm)


def behind(inventory: Inventory, disk: Entity) -> list[Entity]:
    """Devices and datastores a virtual disk or block device lies on, where the inventory says it."""
    virtual = virtual_disk_of(inventory, disk) if disk.kind is EntityKind.BLOCK_DEVICE else disk
    if virtual is None:
        return []
    host = virtual.ancestor(EntityKind.HOST)
    entities = []
    for kind, setting in ((EntityKind.DEVICE, "device"), (EntityKind.DATASTORE, "datastore")):
        name = inventory.get(virtual, setting)
        if name is not None and host is not None:
            entities.append(Entity(kind, str(name), host))
        elif name is not None:
            entities.extend(inventory.named(kind, str(name)))
    return entities


def uses(context: Recorded) -> Mapping[Entity, Use]:
    """Every disk of the inventory whose use is known: its own facts, else those of the disks that lie on it.

    A given role wins over a guess; of several roles on one device the most demanding one counts.
    """
    return context.table(_uses)


@derived(upkeep=Upkeep.WHOLE)
def _uses(reader: Recorded) -> Mapping[Entity, Use]:
    inventory = reader.inventory
    known_uses: dict[Entity, Use] = {}
    kinds = (EntityKind.BLOCK_DEVICE, EntityKind.VIRTUAL_DISK, EntityKind.DEVICE, EntityKind.DATASTORE)
    for kind in kinds:
        for entity in inventory.of_kind(kind):
            role = role_of(inventory, entity)
            medium = inventory.get(entity, "medium")
            declared = Use(*role, medium) if role is not None else Use(medium=medium)
            _take(known_uses, entity, declared)
    for kind in kinds[:2]:
        for entity in inventory.of_kind(kind):
            lower = behind(inventory, entity)
            virtual = virtual_disk_of(inventory, entity) if kind is EntityKind.BLOCK_DEVICE else None
            for below in lower if virtual is None else (virtual, *lower):
                _take(known_uses, below, known_uses.get(entity, Use()))
    return {entity: use for entity, use in known_uses.items() if use.role is not None or use.medium is not None}


def role_said(findings: Iterable[Finding], known: Mapping[Entity, Use]) -> Iterator[Finding]:
    """The findings, with the role of their disk named as guessed where it is a guess."""
    for finding in findings:
        use = known.get(finding.entity, Use())
        if use.role is not None and use.guessed:
            guess = f"{finding.entity.label()} holds {use.role.value}"
            yield replace(finding, guessed=(*finding.guessed, guess))
        else:
            yield finding


@dataclass(frozen=True, slots=True)
class Busy:
    """A value function for `Over`: a latency in ms, NaN where too little I/O was done for an average to count.

    A sample counts from ``load_min`` operations per second on, or when by Little's law at least one operation was
    under way at any time (rate x latency >= 1): a device so slow that few complete is not idle.

    Attributes:
        prefer: metric used instead where it was measured, such as the latency of writes.
        rates: metrics whose sum is the rate; the first group of which any was measured counts.
    """

    prefer: str | None = None
    rates: tuple[tuple[str, ...], ...] = (("disk_iops",), ("disk_reads_per_s", "disk_writes_per_s"))

    def __call__(self, context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
        """[k, n] in ms like the group's values."""
        values = group.values
        preferred = None if self.prefer is None else context.aligned(group, self.prefer)
        if preferred is not None:
            values = np.where(np.isnan(preferred), values, preferred)
        rate = io_rate(context, group, self.rates)
        if rate is None:
            return values
        with np.errstate(invalid="ignore"):
            enough = (rate >= context.limit("load_min")) | (rate * values >= MS_PER_S)
        enough |= np.isnan(rate).all(axis=1, keepdims=True)
        return np.where(enough, values, np.nan)


def io_rate(
    context: Recorded,
    group: SeriesGroup,
    rates: tuple[tuple[str, ...], ...] = (("disk_iops",), ("disk_reads_per_s", "disk_writes_per_s")),
) -> NDArray[np.floating[Any]] | None:
    """Operations per second [k, n] of the group's entities at its times; NaN not measured, None for no such series."""
    whole: NDArray[np.floating[Any]] | None = None
    for metrics in rates:
        if whole is not None and not np.isnan(whole).any():
            break
        parts = [part for part in (context.aligned(group, metric) for metric in metrics) if part is not None]
        if not parts:
            continue
        total = np.where(
            np.all([np.isnan(part) for part in parts], axis=0),
            np.nan,
            np.sum([np.nan_to_num(part, nan=0.0) for part in parts], axis=0),
        )
        whole = total if whole is None else np.where(np.isnan(whole), total, whole)
    return whole


def read_write_mean(context: Recorded, group: SeriesGroup, write_metric: str) -> NDArray[np.floating[Any]]:
    """Latency of an average operation [k, n] from that of reads and that of writes, weighted by their rates.

    Args:
        context: of the rule.
        group: latency of reads.
        write_metric: latency of writes of the same disks.

    Returns:
        In the group's unit; the plain mean where rates were not measured, NaN where neither latency was.
    """
    writes = context.aligned(group, write_metric)
    return group.values if writes is None else weighted_mean(context, group, group.values, writes)


def weighted_mean(
    context: Recorded, group: SeriesGroup, reads: NDArray[np.floating[Any]], writes: NDArray[np.floating[Any]]
) -> NDArray[np.floating[Any]]:
    """Latency of an average operation [k, n] from that of reads and that of writes [k, n] of a group's entities."""
    weights = [context.aligned(group, metric) for metric in ("disk_reads_per_s", "disk_writes_per_s")]
    ones = np.ones(reads.shape)
    read_weight, write_weight = (np.where(np.isnan(w), 1.0, w) if w is not None else ones for w in weights)
    read_weight = np.where(np.isnan(reads), 0.0, read_weight)
    write_weight = np.where(np.isnan(writes), 0.0, write_weight)
    total = read_weight + write_weight
    weighted = np.nan_to_num(reads) * read_weight + np.nan_to_num(writes) * write_weight
    idle = np.where(np.isnan(reads) & np.isnan(writes), np.nan, 0.0)
    return np.where(total > 0, weighted / np.where(total > 0, total, 1.0), idle)


def lowest_kind(context: Recorded, metric: str) -> tuple[EntityKind, ...]:
    """Devices where a metric was recorded for any, else adapters: both tell of the same commands."""
    return (EntityKind.DEVICE,) if context.of(metric, EntityKind.DEVICE) else (EntityKind.ADAPTER,)


def means_over(
    groups: Iterable[SeriesGroup], windows: Iterable[Window], only: Entity | None = None
) -> dict[Entity, float]:
    """Mean of each series over windows, weighted by time; entities not measured then are left out.

    Args:
        groups: of one metric; the result is in its unit.
        windows: not empty.
        only: look at this entity alone.
    """
    spans = list(windows)
    starts = np.array([w.start_ns for w in spans], dtype=np.int64)
    ends = np.array([w.end_ns for w in spans], dtype=np.int64)
    weights = (ends - starts) / 1e9
    mean_by_entity: dict[Entity, float] = {}
    for group in groups:
        rows = range(len(group.entities)) if only is None else group.rows_of(only)
        if not rows:
            continue
        means = window_mean(group.take(rows), starts, ends)
        for mean, row in zip(means, rows, strict=True):
            known = np.isfinite(mean)
            if known.any():
                mean_by_entity[group.entities[row]] = float(np.average(mean[known], weights=weights[known]))
    return mean_by_entity


def _take(known_uses: dict[Entity, Use], entity: Entity, use: Use) -> None:
    known = known_uses.get(entity, Use())
    stronger = use.role is not None and (
        known.role is None
        or (known.guessed and not use.guessed)
        or (known.guessed == use.guessed and _DEMAND.index(use.role) < _DEMAND.index(known.role))
    )
    role, guessed = (use.role, use.guessed) if stronger else (known.role, known.guessed)
    known_uses[entity] = Use(role, guessed, known.medium or use.medium)
