"""Use case: rules look at a capture; findings are joined into causes and symptoms, then into a verdict."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING

from leadline.app.diagnose import feeling, incidents, judging, near, seconds
from leadline.app.diagnose.account import account_of, sentence
from leadline.app.diagnose.examine import unused_sentence
from leadline.app.diagnose.feeling import Feeling, Felt, feeling_of, is_comparable, suffered_before
from leadline.app.diagnose.findings import run_rules
from leadline.app.diagnose.grouping import grouped, retold
from leadline.app.diagnose.incidents import find_incidents, told_incident
from leadline.app.diagnose.judging import Ran, faint_disks, judge
from leadline.app.diagnose.placing import placed, unfelt
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.account import Term
from leadline.core.model.entities import Entity, machines
from leadline.core.model.finding import Diagnosis, Evidence, Finding, Verdict
from leadline.core.model.profile import Profile
from leadline.core.model.vocabulary import Layer, Severity

if TYPE_CHECKING:
    from leadline.core.model.account import Account
    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Window
    from leadline.core.model.incident import Incident

SAID_SHARE, DOUBT_SHARE = 0.1, 0.3  # of the time that a transaction takes longer


@cache
def rule_modules() -> dict[str, ModuleType]:
    """Every rule by name."""
    return load_units("rule")


@cache
def metrics_read() -> frozenset[str]:
    """Every metric that a step of the verdict or a rule reads: what importers are asked for.

    Whatever else a capture holds, `diagnose` does not look at it: the verdict is the same however it was read.
    """
    steps = (
        incidents.READS,
        feeling.READS,
        seconds.READS,
        judging.READS,
        near.READS,
    )  # the account's are those of its seconds
    return frozenset().union(*steps, *(meta.metrics() for meta in rule_metas().values()))


def diagnose(
    capture: Capture,
    profile: Profile | None = None,
    rules: Iterable[str] | None = None,
    *,
    incident: Window | None = None,
    normal: Window | None = None,
) -> Diagnosis:
    """Findings and verdict of a capture.

    Args:
        capture: as read by `leadline.app.read.importing.import_paths`.
        profile: a site's own limits.
        rules: names of the rules to run; all by default.
        incident: when it was bad, as `leadline.app.diagnose.spans.asked_spans` reads it; found by default.
        normal: what a given incident is compared with; the rest of the recording by default.
    """
    site = profile or Profile()
    unused = unused_sentence(capture, metrics_read())
    capture = capture.of_metrics(metrics_read())
    if incident is None:
        compared = tuple(filter(is_comparable, find_incidents(capture)))
    else:
        compared = (told_incident(capture, incident, normal),)
    run = run_rules(capture, site, rules, compared)
    account = account_of(capture, compared[0]) if compared else None
    of_disk = None if account is None else account.of(Term.DISK, Term.LOG)
    felt = feeling_of(capture)
    once = told_once(run.findings)
    weighed = _weighed(once, compared, felt, capture)
    ordered = order(weighed)
    unfelt_layers = frozenset() if compared else _weighty_layers(run.findings) - _weighty_layers(weighed)
    ran = Ran(run.powers, run.skipped, unfelt_layers, faint_disks(once), unused, run.near, run.brief, of_disk)
    verdict = judge(ordered, ran, capture, compared, felt)
    verdict = retold(verdict, grouped(ordered, capture))
    if account is not None:
        verdict = accounted(verdict, account)
    return Diagnosis(
        verdict,
        tuple(ordered),
        run.skipped,
        tuple(power.rule for power in run.powers),
        incidents=compared,
        account=account,
        powers=run.powers,
    )


def accounted(verdict: Verdict, account: Account) -> Verdict:
    """The verdict whose "yes" says how much of the time it is, and whose "no" agrees with the account."""
    answer, of_disk = verdict.is_it_the_disk, account.of(Term.DISK, Term.LOG)
    if answer.startswith("Yes") and of_disk >= SAID_SHARE:
        answer = f"{answer} {sentence(account)}."
    elif answer.startswith("No:") and of_disk >= DOUBT_SHARE:
        answer = f"Not known: no disk passed a limit, but {sentence(account)}."
    return replace(verdict, is_it_the_disk=answer)


def _weighed(findings: list[Finding], compared: tuple[Incident, ...], felt: Feeling, capture: Capture) -> list[Finding]:
    """Findings of less weight where they explain nothing that was felt.

    Where users suffered before the incident too and nothing that changed explains it, limits judge, as without one.
    """
    if compared:
        weighed = explain([placed(finding, compared, capture) for finding in findings], capture)
        is_explained = any(not finding.is_symptom for finding in _weighty(weighed))
        if is_explained or not any(map(suffered_before, compared)):
            return weighed
    elif felt.felt is Felt.FINE:
        findings = [unfelt(finding, felt.sentence) for finding in findings]
    return explain(findings, capture)


def _weighty(findings: Iterable[Finding]) -> list[Finding]:
    return [finding for finding in findings if finding.windows and finding.severity >= Severity.MEDIUM]


def _weighty_layers(findings: Iterable[Finding]) -> frozenset[Layer]:
    return frozenset(finding.layer for finding in _weighty(findings))


def told_once(findings: Iterable[Finding]) -> list[Finding]:
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


def explain(findings: list[Finding], capture: Capture) -> list[Finding]:
    """Mark findings that another one explains: a related entity, at the same time, by a rule that says so.

    Of several explanations the one that nothing else explains is named: the root, not the link before.
    """
    lineages = {entity: capture.inventory.full_lineage(entity) for entity in {f.entity for f in findings}}
    explaining = {rule: _Explaining.of(others, lineages) for rule, others in _by_explained(findings).items()}
    causes = [_causes(finding, explaining.get(finding.rule), lineages) for finding in findings]
    roots = {id(finding) for finding, candidates in zip(findings, causes, strict=True) if not candidates}
    marked = []
    for finding, candidates in zip(findings, causes, strict=True):
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
    """The findings that could explain one rule's, by their entity and by whatever is in the lineage of it.

    A host has hundreds of VMs and each has its findings: only those that are related are looked at.
    """

    findings: list[Finding]
    at: dict[Entity, list[int]]
    below: dict[Entity, list[int]]

    @classmethod
    def of(cls, findings: list[Finding], lineages: dict[Entity, set[Entity]]) -> _Explaining:
        at: dict[Entity, list[int]] = {}
        below: dict[Entity, list[int]] = {}
        for place, finding in enumerate(findings):
            at.setdefault(finding.entity, []).append(place)
            for entity in lineages[finding.entity]:
                below.setdefault(entity, []).append(place)
        return cls(findings, at, below)

    def related(self, entity: Entity, lineage: set[Entity]) -> list[Finding]:
        """Those of an entity of the lineage, below the entity, or of the same machine, in their order."""
        places = {place for one in lineage for place in self.at.get(one, ())}
        places.update(self.below.get(entity, ()))
        places.update(place for machine in machines(lineage) for place in self.below.get(machine, ()))
        return [self.findings[place] for place in sorted(places)]


def _causes(finding: Finding, explaining: _Explaining | None, lineages: dict[Entity, set[Entity]]) -> list[Finding]:
    if explaining is None:
        return []
    least = finding.severity.lowered()
    related = explaining.related(finding.entity, lineages[finding.entity])
    return [other for other in related if other.severity >= least and _same_time(other, finding)]


def _same_time(one: Finding, other: Finding) -> bool:
    if not one.windows or not other.windows:
        return True
    return any(a.overlaps(b) for a in one.windows for b in other.windows)


def order(findings: list[Finding]) -> list[Finding]:
    """Causes before symptoms; what was measured before settings, unless it is minor; then by severity and distance.

    A wait that nothing explains comes after the causes that were measured.
    """

    def rank(finding: Finding) -> tuple[object, ...]:
        minor = finding.severity < Severity.MEDIUM
        group = 3 if minor else 2 if not finding.windows else int(finding.is_wait)
        return (finding.is_explained, group, -finding.severity, -finding.score, finding.rule, str(finding.entity))

    return sorted(findings, key=rank)
