"""Step five of a verdict: findings joined into causes, for each incident the one that covers most of it first.

A finding is a cause of an incident where it was there in it, more than outside, and nothing else explains it. Where
users suffered before the incident too and nothing that changed explains it, limits judge, as without an incident.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from leadline.app.diagnose.bystanders import BYSTANDER, are_apart, uninvolved_disks
from leadline.app.diagnose.cause_terms import kind_and_who, sure_share, takes, terms_of
from leadline.app.diagnose.feeling import suffered_before
from leadline.app.diagnose.placing import COVER_MIN, cover, has_weight, lowered, lowered_in, unfelt
from leadline.app.diagnose.who import culprits
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.answer import Cause, Certainty, Felt
from leadline.core.model.entities import Entity, machines
from leadline.core.model.finding import Evidence, Finding, LoweredBecause
from leadline.core.model.vocabulary import Blames, EntityKind, Layer, Severity

if TYPE_CHECKING:
    from leadline.app.diagnose.symptoms import Symptoms
    from leadline.core.model.account import Account
    from leadline.core.model.capture import Capture
    from leadline.core.model.incident import Incident
    from leadline.core.model.who import Who


@dataclass(frozen=True, slots=True)
class Explained:
    """The findings of a recording in order, causes first, and what each incident has of them.

    Attributes:
        findings: symptoms name what explains them; what explains nothing that was felt is of low severity.
        as_measured: the findings before anything was weighed against what users felt.
        capture: what was looked at.
        is_placed: findings were compared with the incidents; else limits judged.
        uninvolved: disks that no database uses.
    """

    findings: tuple[Finding, ...]
    as_measured: tuple[Finding, ...]
    capture: Capture
    is_placed: bool
    uninvolved: frozenset[Entity] = frozenset()

    def of(self, incident: Incident | None) -> tuple[Finding, ...]:
        """The findings of an incident, in order: without those of weight that only explain another one."""
        if incident is None or not self.is_placed:
            return self.findings
        return tuple(
            one for one in self.findings if not has_weight(one) or lowered_in(one, incident, self.capture) is None
        )

    def unfelt_layers(self) -> frozenset[Layer]:
        """Layers whose findings all lost their weight because users felt nothing."""
        return _weighty_layers(self.as_measured) - _weighty_layers(self.findings)

    def causes(self, incident: Incident | None, account: Account | None) -> tuple[Cause, ...]:
        """What explains an incident, or a recording without one, the first one most."""
        findings = order(self.of(incident), account)
        leads = [one for one in findings if one.severity >= Severity.MEDIUM and not one.is_symptom]
        if incident is not None:  # a setting was the same before; one that names no kind of cause made nothing slow
            leads = [one for one in leads if not _is_mere_setting(one) or _explains_any(one, findings)]
        who = culprits(self.capture, incident) if leads else ()
        symptoms: dict[tuple[str | None, Entity | None], list[Finding]] = {}
        for one in findings:
            symptoms.setdefault((one.caused_by, one.caused_by_entity), []).append(one)
        return tuple(_cause(lead, symptoms.get((lead.rule, lead.entity), ()), incident, account, who) for lead in leads)


def _is_mere_setting(finding: Finding) -> bool:
    """Whether a finding states a setting that names no kind of cause."""
    meta = rule_metas()[finding.rule]
    return meta.blames is Blames.SETTING and not meta.causes


def _explains_any(finding: Finding, findings: Iterable[Finding]) -> bool:
    return any(other.caused_by == finding.rule for other in findings)


def explained(
    findings: Iterable[Finding], symptoms: Symptoms, capture: Capture, accounts: tuple[Account | None, ...]
) -> Explained:
    """Join the findings of rules, weighed by what users felt and by where their time went.

    Args:
        findings: as the rules made them.
        symptoms: when it was bad, and what was felt.
        capture: what was looked at; its inventory says what is related.
        accounts: of the added time in each incident.
    """
    worst = next(iter(accounts), None)
    uninvolved = uninvolved_disks(capture)
    once = [_uninvolved(finding, uninvolved) for finding in without_repeats(findings)]
    for incident, account in zip(symptoms.incidents, accounts, strict=True):
        once = _raised(once, incident, account)
    if symptoms.incidents:
        weighed = joined([_placed(finding, symptoms.incidents, capture) for finding in once], capture)
        has_cause = any(has_weight(finding) and not finding.is_symptom for finding in weighed)
        is_placed = has_cause or not any(map(suffered_before, symptoms.incidents))
        kept = weighed if is_placed else joined(once, capture)
    else:
        is_placed, is_fine = False, symptoms.feeling.felt is Felt.FINE
        kept = joined([unfelt(finding, symptoms.feeling) for finding in once] if is_fine else once, capture)
    return Explained(tuple(order(kept, worst)), tuple(once), capture, is_placed, uninvolved)


def _uninvolved(finding: Finding, disks: frozenset[Entity]) -> Finding:
    """A finding as it is, or of low severity where it is of a disk that no database uses."""
    return lowered(finding, BYSTANDER) if finding.entity in disks and has_weight(finding) else finding


def _raised(findings: list[Finding], incident: Incident, account: Account | None) -> list[Finding]:
    """Findings, with a higher severity for low ones that name what surely took most of the added time.

    Only where no finding of medium severity or above names it.
    """
    share = sure_share(account)
    if share is None or any(has_weight(one) and not one.is_wait and takes(one, share) for one in findings):
        return findings

    def is_it(finding: Finding) -> bool:
        is_near = share.entity in (None, finding.entity) and cover(finding.windows, incident.window) >= COVER_MIN
        return is_near and finding.severity is Severity.LOW and takes(finding, share)

    return [replace(finding, severity=Severity.MEDIUM) if is_it(finding) else finding for finding in findings]


def _placed(finding: Finding, incidents: tuple[Incident, ...], capture: Capture) -> Finding:
    """A finding as it is where it explains one of the incidents; else of low severity, with the reason."""
    if not has_weight(finding):
        return finding
    reasons = [lowered_in(finding, incident, capture) for incident in incidents]
    against = [reason for reason in reasons if reason is not None]
    return finding if len(against) < len(reasons) else lowered(finding, against[0])


def _weighty_layers(findings: Iterable[Finding]) -> frozenset[Layer]:
    return frozenset(finding.layer for finding in findings if has_weight(finding))


def _cause(
    lead: Finding,
    symptoms: Iterable[Finding],
    incident: Incident | None,
    account: Account | None,
    who: tuple[Who, ...],
) -> Cause:
    (kind, did), terms = kind_and_who(lead, who), terms_of(lead)
    size = account.of(*terms) if account is not None and terms else None
    time = 1.0 if incident is None or not lead.windows else cover(lead.windows, incident.window)
    certainty = Certainty.PROBABLY if lead.guessed or lead.severity < Severity.HIGH else Certainty.IS
    return Cause(kind, lead.entity, (lead, *symptoms), time, size, certainty, did)


def without_repeats(findings: Iterable[Finding]) -> list[Finding]:
    """Findings of one rule on one entity from several recordings of the same time are one: the clearest stays.

    The others are named in its evidence, since two tools that agree are better than one.
    """
    kept: list[Finding] = []
    known: dict[tuple[str, Entity], list[int]] = {}
    for finding in sorted(findings, key=lambda f: (-f.severity, -f.score)):
        places = known.setdefault((finding.rule, finding.entity), [])
        same = next((i for i in places if _same_time(kept[i], finding)), None)
        if same is None:
            places.append(len(kept))
            kept.append(finding)
        else:
            agreeing = _sources(finding) - _sources(kept[same])
            evidence = tuple(Evidence("shown there too", source=source) for source in sorted(agreeing))
            kept[same] = replace(kept[same], evidence=(*kept[same].evidence, *evidence))
    return kept


def _sources(finding: Finding) -> set[str]:
    return {evidence.source for evidence in finding.evidence if evidence.source is not None}


def joined(findings: list[Finding], capture: Capture) -> list[Finding]:
    """Mark findings that another one explains: a related entity, at the same time, by a rule that says so.

    Of several explanations the one that nothing else explains is named: the root, not the link before.
    """
    lineages = {entity: capture.inventory.full_lineage(entity) for entity in {f.entity for f in findings}}
    asked: dict[str, set[Entity]] = {}
    for finding in findings:
        of_rule = asked.setdefault(finding.rule, set())
        of_rule.add(finding.entity)
        of_rule.update(machines(lineages[finding.entity]))
    explaining = {
        rule: _Explaining.of(others, lineages, asked[rule])
        for rule, others in _by_explained(findings).items()
        if rule in asked
    }
    candidates_of = [_related(finding, explaining.get(finding.rule), lineages) for finding in findings]
    roots = {id(finding) for finding, candidates in zip(findings, candidates_of, strict=True) if not candidates}
    marked = []
    for finding, candidates in zip(findings, candidates_of, strict=True):
        cause = next((other for other in candidates if id(other) in roots), candidates[0] if candidates else None)
        marked.append(
            finding if cause is None else replace(finding, caused_by=cause.rule, caused_by_entity=cause.entity)
        )
    return marked


def _by_explained(findings: list[Finding]) -> dict[str, list[Finding]]:
    """Rule -> the findings that could explain one of it."""
    metas = rule_metas()
    explaining: dict[str, list[Finding]] = {}
    for finding in findings:
        for rule in metas[finding.rule].explains:
            explaining.setdefault(rule, []).append(finding)
    return explaining


@dataclass(frozen=True, slots=True)
class _Explaining:
    """The findings that could explain one rule's, by their entity and by what is asked for in the lineage of it.

    A host has hundreds of VMs and each has its findings: only those that are related are looked at.
    """

    findings: list[Finding]
    at: dict[Entity, list[int]]
    below: dict[Entity, list[int]]

    @classmethod
    def of(cls, findings: list[Finding], lineages: dict[Entity, set[Entity]], asked: set[Entity]) -> _Explaining:
        at: dict[Entity, list[int]] = {}
        below: dict[Entity, list[int]] = {}
        for place, finding in enumerate(findings):
            at.setdefault(finding.entity, []).append(place)
            for entity in asked & lineages[finding.entity]:
                below.setdefault(entity, []).append(place)
        return cls(findings, at, below)

    def related(self, entity: Entity, lineage: set[Entity]) -> list[Finding]:
        """Those of an entity of the lineage, below the entity, or of the same machine, in their order."""
        places = {place for one in lineage for place in self.at.get(one, ())}
        places.update(self.below.get(entity, ()))
        places.update(place for machine in machines(lineage) for place in self.below.get(machine, ()))
        return [self.findings[place] for place in sorted(places)]


def _related(finding: Finding, explaining: _Explaining | None, lineages: dict[Entity, set[Entity]]) -> list[Finding]:
    if explaining is None:
        return []
    least = finding.severity.lowered()
    related = explaining.related(finding.entity, lineages[finding.entity])
    explain = (
        other
        for other in related
        if other.severity >= least and _same_time(other, finding) and not _is_elsewhere(other, finding)
    )
    return sorted(explain, key=lambda other: other.lowered is not None)  # what explains nothing felt comes last


def _is_elsewhere(cause: Finding, finding: Finding) -> bool:
    """Whether a finding is of another disk; a disk that no database uses explains no wait of one either."""
    if cause.lowered is not None and cause.lowered.because is LoweredBecause.BYSTANDER:
        is_beside = finding.entity.kind in (EntityKind.BLOCK_DEVICE, EntityKind.DATABASE)
        return is_beside and cause.entity != finding.entity
    return are_apart(cause.entity, finding.entity)


def _same_time(one: Finding, other: Finding) -> bool:
    if not one.windows or not other.windows:
        return True
    return any(a.overlaps(b) for a in one.windows for b in other.windows)


def order(findings: Iterable[Finding], account: Account | None = None) -> list[Finding]:
    """Causes before symptoms; what was measured before settings, unless it is minor; then by severity and distance.

    A wait that nothing explains comes after the causes that were measured. Where the account is sure what took most of
    the added time, a cause that takes such time comes before one that does not.
    """
    first = sure_share(account)

    def rank(finding: Finding) -> tuple[object, ...]:
        minor = finding.severity < Severity.MEDIUM
        group = 3 if minor else 2 if not finding.windows else int(finding.is_wait)
        is_elsewhere = first is not None and not takes(finding, first)
        return (
            finding.is_explained,
            group,
            is_elsewhere,
            -finding.severity,
            -finding.score,
            finding.rule,
            str(finding.entity),
        )

    return sorted(findings, key=rank)
