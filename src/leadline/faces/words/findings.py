"""Findings and groups of findings in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.model.answer import Feeling, Sign
from leadline.core.model.finding import Lowered, LoweredBecause
from leadline.core.model.units import UNITS, show
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from collections.abc import Iterable

    from leadline.app.diagnose.grouping import FindingGroup
    from leadline.core.model.finding import Finding

NAMED_MAX = 5
_NOUNS = {
    EntityKind.VM: "VM",
    EntityKind.VCPU: "vCPU",
    EntityKind.CPU: "CPU",
    EntityKind.PCPU: "PCPU",
    EntityKind.NIC: "NIC",
    EntityKind.NUMA_NODE: "NUMA node",
    EntityKind.BLOCK_DEVICE: "disk",
    EntityKind.PROCESS: "process",
}


def group_summary(group: FindingGroup) -> str:
    """The finding's summary; of many, how many of how many, and the summary of the worst."""
    if group.below is None:
        return group.lead.summary
    nouns = noun_of(group.lead.entity.kind, group.sibling_count)
    count = f"{len(group.members):,} of {group.sibling_count:,} {nouns}"
    return f"{count} of {group.below.label()}, the worst: {group.lead.summary}"


def group_entity(group: FindingGroup) -> str:
    """What a group is about: an entity, or how many of which kind."""
    count = len(group.members)
    return f"{count:,} {noun_of(group.lead.entity.kind, count)}" if group.is_many else group.lead.entity.label()


def group_line(group: FindingGroup) -> str:
    """The finding's summary; of many, how many and the summary of the worst: for one line of a table."""
    return f"{group_entity(group)}: {group.lead.summary}" if group.is_many else group_summary(group)


def worst_members(group: FindingGroup) -> str:
    """The worst members by name, with the number that was measured: "vm1 55 MiB/s, vm2 48 MiB/s and 148 more"."""
    named = [f"{f.entity.label()} {level_of(f)}".strip() for f in group.members[:NAMED_MAX]]
    more = len(group.members) - len(named)
    return f"{', '.join(named)}{f' and {more:,} more' if more else ''}"


def noun_of(kind: EntityKind, count: int) -> str:
    """What entities of a kind are called.

    >>> noun_of(EntityKind.VIRTUAL_DISK, 2), noun_of(EntityKind.PROCESS, 3), noun_of(EntityKind.VM, 1)
    ('virtual disks', 'processes', 'VM')
    """
    noun = _NOUNS.get(kind, kind.value.replace("-", " "))
    return noun if count == 1 else f"{noun}es" if noun.endswith(("s", "ch")) else f"{noun}s"


def level_of(finding: Finding) -> str:
    """The first number of a finding's evidence, for people; empty where it has none."""
    for evidence in finding.evidence:
        if evidence.value is not None and evidence.unit in UNITS:
            return show(evidence.value, evidence.unit)
    return ""


def lowered_sentence(reason: Lowered) -> str:
    """Why a finding explains nothing that was felt."""
    change = reason.change
    if reason.because is LoweredBecause.UNFELT and reason.feeling is not None:
        return f"but nobody felt it: {feeling_sentence(reason.feeling)} throughout"
    if reason.because is LoweredBecause.AS_ALWAYS and change is not None:
        return f"it was so before and after the incident as well: {change.normal:.4g} and {change.during:.4g}"
    if reason.because is LoweredBecause.LESS and change is not None:
        return f"there was less of it in the incident: {change.during:.4g}, normally {change.normal:.4g}"
    if reason.because is LoweredBecause.BYSTANDER:
        return "but the database does not use this disk"
    return "it did not hold during the incident"


def feeling_sentence(feeling: Feeling) -> str:
    """What users felt through all of a recording; empty where that is not known."""
    if feeling.sign is Sign.LATE_START:
        return f"transactions started {show(feeling.value, 'ms')} late"
    if feeling.sign is Sign.STANDSTILL:
        return f"no transaction ended for {feeling.value:.0f} s in all"
    return f"a transaction took {show(feeling.value, 'ms')}" if feeling.sign is Sign.LATENCY else ""


def evidence_lines(finding: Finding, count: int | None = None) -> list[str]:
    """The evidence of a finding, each with its file, then why it has less weight than its rule gave it."""
    lines = [
        one.statement if one.source is None else f"{one.statement} ({one.source.rsplit('/', 1)[-1]})"
        for one in finding.evidence[:count]
    ]
    return lines if finding.lowered is None else [*lines, lowered_sentence(finding.lowered)]


class Quotes:
    """What is quoted of a finding: its summary, or that of the group that it leads."""

    def __init__(self, groups: Iterable[FindingGroup] = ()) -> None:
        self._many = {(g.lead.rule, g.lead.entity, g.lead.summary): g for g in groups if g.is_many}

    def summary(self, finding: Finding) -> str:
        """For a sentence."""
        group = self._group(finding)
        return finding.summary if group is None else group_summary(group)

    def line(self, finding: Finding) -> str:
        """For one line of a table."""
        group = self._group(finding)
        return finding.summary if group is None else group_line(group)

    def _group(self, finding: Finding) -> FindingGroup | None:
        return self._many.get((finding.rule, finding.entity, finding.summary))
