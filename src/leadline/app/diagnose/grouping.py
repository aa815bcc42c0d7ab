"""Findings of one rule on many siblings are one story: a sick host makes all its VMs suffer.

Findings stay as they are; groups say how to tell them. Siblings are of one kind, below one ancestor, at the same time.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding, Window
from leadline.core.model.vocabulary import EntityKind, Severity

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture

MEMBERS_MIN = 3  # Judgement: two are read as fast one by one


@dataclass(frozen=True)
class FindingGroup:
    """Findings of one rule that are told as one; a single finding is a group of its own.

    Attributes:
        members: the worst first.
        places: where each member is in the list that was grouped, counted from 0.
        below: the nearest common ancestor of the members; None for a single finding.
        sibling_count: how many entities of the members' kind are known below it, members included.
    """

    members: tuple[Finding, ...]
    places: tuple[int, ...]
    below: Entity | None = None
    sibling_count: int = 1

    @property
    def lead(self) -> Finding:
        """The worst member, which stands for all."""
        return self.members[0]

    @property
    def is_many(self) -> bool:
        """Whether it stands for several findings."""
        return len(self.members) > 1

    @cached_property
    def windows(self) -> tuple[Window, ...]:
        """When any member held, in order of time, without overlaps."""
        joined: list[Window] = []
        for window in sorted((w for f in self.members for w in f.windows), key=lambda w: w.start_ns):
            if joined and window.start_ns <= joined[-1].end_ns:
                joined[-1] = Window(joined[-1].start_ns, max(joined[-1].end_ns, window.end_ns))
            else:
                joined.append(window)
        return tuple(joined)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; ``findings`` are places in the document's list of findings."""
        return {
            "rule": self.lead.rule,
            "severity": self.lead.severity.label,
            "entity": None if self.below is None else str(self.below),
            "kind": self.lead.entity.kind.value,
            "count": len(self.members),
            "of_count": self.sibling_count,
            "caused_by": self.lead.caused_by,
            "windows": [window.to_dict() for window in self.windows],
            "findings": list(self.places),
        }


def grouped(findings: Iterable[Finding], capture: Capture) -> tuple[FindingGroup, ...]:
    """Groups of findings in the order of their first members; a rule's findings on few entities stay single.

    Args:
        findings: in order, the worst of a rule first.
        capture: its inventory and series say which siblings there are.
    """
    siblings: dict[tuple[object, ...], list[tuple[int, Finding]]] = {}
    groups: list[FindingGroup] = []
    tops: dict[Entity, Entity | None] = {}
    counted = _Siblings(capture)
    for place, finding in enumerate(findings):
        entity = finding.entity
        if entity not in tops:
            tops[entity] = _top(entity, capture)
        if tops[entity] is None:
            groups.append(FindingGroup((finding,), (place,)))
            continue
        weighty = finding.severity >= Severity.MEDIUM
        key = (finding.rule, entity.kind, tops[entity], finding.caused_by, weighty)
        siblings.setdefault(key, []).append((place, finding))
    for placed in siblings.values():
        for part in _at_the_same_time(placed):
            groups.extend(_group(part, counted))
    return tuple(sorted(groups, key=lambda group: group.places[0]))


def _top(entity: Entity, capture: Capture) -> Entity | None:
    """What siblings are below: the host, else the outermost ancestor; None for what is below nothing."""
    above = _lineage(entity, capture)
    return next((one for one in above if one.kind is EntityKind.HOST), above[-1] if above else None)


def _at_the_same_time(placed: list[tuple[int, Finding]]) -> list[list[tuple[int, Finding]]]:
    """Findings parted so that each shares time with the first of its part, or is a setting like it."""
    parts: list[list[tuple[int, Finding]]] = []
    for item in placed:
        part = next((part for part in parts if _overlap(part[0][1].windows, item[1].windows)), None)
        if part is None:
            parts.append([item])
        else:
            part.append(item)
    return parts


def _overlap(ones: tuple[Window, ...], others: tuple[Window, ...]) -> bool:
    """Whether two series of windows, each in order of time, share any moment; two settings always do."""
    if not ones or not others:
        return not ones and not others
    i = j = 0
    while i < len(ones) and j < len(others):
        if ones[i].overlaps(others[j]):
            return True
        if ones[i].end_ns <= others[j].end_ns:
            i += 1
        else:
            j += 1
    return False


def _group(part: list[tuple[int, Finding]], counted: _Siblings) -> list[FindingGroup]:
    if len({finding.entity for _, finding in part}) < MEMBERS_MIN:
        return [FindingGroup((finding,), (place,)) for place, finding in part]
    ordered = sorted(part, key=lambda item: (-item[1].severity, -item[1].score, item[0]))
    members = tuple(finding for _, finding in ordered)
    places = tuple(place for place, _ in ordered)
    below = _common([finding.entity for finding in members], counted.capture)
    return [FindingGroup(members, places, below, counted.below(members, below))]


def _lineage(entity: Entity, capture: Capture) -> list[Entity]:
    """Ancestors, the nearest first; of a guest also its VM's, of a host its cluster."""
    guest = entity.ancestor(EntityKind.GUEST)
    vm = None if guest is None else capture.inventory.vm_of(guest)
    lineage = [*entity.lineage(), *(() if vm is None else vm.lineage())]
    host = lineage[-1] if lineage[-1].kind is EntityKind.HOST else None
    cluster = None if host is None else capture.inventory.get(host, "cluster")
    return [*lineage[1:], *(() if cluster is None else (Entity(EntityKind.CLUSTER, str(cluster)),))]


def _common(entities: list[Entity], capture: Capture) -> Entity:
    """The nearest ancestor that all have; there is one, since they are below one top."""
    shared = set.intersection(*(set(_lineage(entity, capture)) for entity in entities))
    return next(one for one in _lineage(entities[0], capture) if one in shared)


class _Siblings:
    """How many entities of a kind there are below another: counted once for each kind, not for each group."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture
        self._known: dict[EntityKind, set[Entity]] = {}
        self._counts: dict[EntityKind, Counter[Entity]] = {}
        self._recorded: dict[tuple[EntityKind, str], set[Entity]] = {}

    def below(self, members: tuple[Finding, ...], ancestor: Entity) -> int:
        """The entities of the members' kind that are known or recorded below an ancestor, members included."""
        kind = members[0].entity.kind
        if kind not in self._known:
            known = self._known[kind] = set(self.capture.inventory.of_kind(kind))
            self._counts[kind] = Counter(above for entity in known for above in _lineage(entity, self.capture))
        others = {finding.entity for finding in members} - self._known[kind]
        for metric in {e.metric for e in members[0].evidence if e.metric is not None}:
            others |= self._recorded_only(kind, metric)
        return self._counts[kind][ancestor] + sum(ancestor in _lineage(entity, self.capture) for entity in others)

    def _recorded_only(self, kind: EntityKind, metric: str) -> set[Entity]:
        """Entities of a kind that have a metric, or parts with it, and are not in the inventory."""
        key = (kind, metric)
        if key not in self._recorded:
            parts = (entity for group in self.capture.of(metric) for entity in group.entities)
            recorded = {entity if entity.kind is kind else entity.ancestor(kind) for entity in parts}
            self._recorded[key] = {entity for entity in recorded if entity is not None} - self._known[kind]
        return self._recorded[key]
