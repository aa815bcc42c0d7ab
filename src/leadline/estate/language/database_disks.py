"""Latency of the disks under a database, reported as a finding of the database."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.core.model.vocabulary import EntityKind, Role, Severity
from leadline.estate.derived.disks import Busy, Use, role_said, uses
from leadline.estate.derived.latencies import awaits_by_disk
from leadline.estate.derived.series import Places
from leadline.estate.knowledge.database_settings import disks_of, of_engine
from leadline.estate.language.templates import Over, joined, over_groups

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Finding


@dataclass(frozen=True, slots=True)
class DiskClass:
    """Disks judged by the same limits.

    Attributes:
        limits: prefix of the names of the rule's limits: ``flash`` for ``flash_warn`` and ``flash_crit``.
        noun: how the summary calls the latency.
        holds: whether a disk of a medium (None: not known) is of the class.
        most: the highest severity its findings may have.
    """

    limits: str
    noun: str
    holds: Callable[[str | None], bool]
    most: Severity = Severity.CRITICAL


_HELD = (Role.DATA, Role.WAL, Role.TEMP)


def database_disks(context: RuleContext) -> frozenset[Entity]:
    """The block devices that hold what a database keeps, as an inventory or a mount says; empty where nothing does."""
    known = uses(context)
    disks = {disk for disk, use in known.items() if use.role in _HELD and disk.kind is EntityKind.BLOCK_DEVICE}
    for database in context.inventory.of_kind(EntityKind.DATABASE):
        for role in (Role.DATA, Role.WAL):
            disks.update(disks_of(context.inventory, known, database, role))
    return frozenset(disks)


def slow_disks(
    context: RuleContext, engine: str, role: Role, value: Busy, classes: Sequence[DiskClass]
) -> Iterator[Finding]:
    """One finding per database of an engine, of its disks of a role whose await is beyond the limits of their class.

    The rule's META gives the limits of each class, ``load_min`` and ``duration``, as `Busy` and `Over` use them.
    """
    databases = list(of_engine(context.inventory, engine))
    if not databases:
        return
    known = uses(context)
    places = context.table(awaits_by_disk)
    for database in databases:
        disks = disks_of(context.inventory, known, database, role)
        groups = _groups_of(places, disks)
        slow = [finding for of_class in classes for finding in _of_class(context, groups, disks, value, of_class)]
        if slow:
            yield replace(joined(list(role_said(slow, known)), context.limit("duration")), entity=database)


def _groups_of(places: Places, disks: Iterable[Entity]) -> list[SeriesGroup]:
    """The series of some disks, a group of each recording."""
    rows_by_group: dict[int, tuple[SeriesGroup, list[int]]] = {}
    for group, row in (place for disk in disks for place in places.get(disk, ())):
        rows_by_group.setdefault(id(group), (group, []))[1].append(row)
    return [group.take(sorted(rows)) for group, rows in rows_by_group.values()]


def _of_class(
    context: RuleContext, groups: list[SeriesGroup], disks: Mapping[Entity, Use], value: Busy, of_class: DiskClass
) -> Iterator[Finding]:
    members = {disk for disk, use in disks.items() if of_class.holds(use.medium)}
    spec = Over(
        "guest_disk_await_ms",
        of_class.noun,
        value=value,
        keep=lambda _, entity: entity in members,
        mostly=True,
        warn=f"{of_class.limits}_warn",
        crit=f"{of_class.limits}_crit",
    )
    for finding in over_groups(context, groups, spec):
        unknown = disks[finding.entity].medium is None
        guess = (f"medium of {finding.entity.label()} is not known: taken for {of_class.limits}",) if unknown else ()
        yield replace(finding, severity=min(finding.severity, of_class.most), guessed=(*finding.guessed, *guess))
