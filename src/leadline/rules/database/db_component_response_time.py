"""What users call is slow to answer.

Finds:
    Mean response time of the ten slowest of the components (screens, services) that users use much, above 0.8 s
    (warning) or 1 s (critical) in most samples for at least a minute.

Why:
    It is what the whole stack is for. A server may show high figures in every layer while users are content, and the
    other way round; only this number says whether there is a problem at all.

Do:
    Take it as the measure of acceptance: it should stay flat while load grows. Where it rises, look at which layer
    rises with it, in the same minutes: locks in the database, run queue and ready time, latency of reads and of the
    log.

When it is wrong:
    A component that is called seldom, or that computes a report, has another measure; leave it out of the recording.

Sources:
    Virtualizing large databases: VMware CPU capacity planning (InterSystems community): component response below one
    second on average.
    Judgement: 0.8 s as the warning, a minute as the duration.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import Over, over_groups

_SOURCE = "Virtualizing large databases: VMware CPU capacity planning (InterSystems community)"

META = RuleMeta(
    code="DBS117",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_component_response_s",),
    thresholds={
        "warn": Threshold(0.8, "s", "Judgement: four fifths of the limit"),
        "crit": Threshold(1.0, "s", _SOURCE),
        "duration": Threshold(60.0, "s", "Judgement: what users notice as more than a hiccup"),
    },
)

_SLOWEST_COUNT = 10
_NAMED_COUNT = 3  # components named in the evidence


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database (or guest) whose components were timed."""
    groups = context.of("db_component_response_s", EntityKind.JOB)
    groups_by_owner: dict[Entity, list[SeriesGroup]] = {}
    for owner, of_owner in (pair for group in groups for pair in _by_owner(group)):
        groups_by_owner.setdefault(owner, []).append(of_owner)
    slowest = [of_owner for group in groups for of_owner in _slowest(group)]
    spec = Over("db_component_response_s", "mean response time of the slowest components", mostly=True)
    for finding in over_groups(context, slowest, spec):
        parts = means_over(groups_by_owner.get(finding.entity, ()), finding.windows)
        worst = sorted(parts, key=lambda entity: parts[entity], reverse=True)[:_NAMED_COUNT]
        named = tuple(
            Evidence(
                f"{entity.name} took {show(parts[entity], 's')} on average",
                metric="db_component_response_s",
                entity=entity,
                statistic="mean",
                value=parts[entity],
                unit="s",
            )
            for entity in worst
        )
        yield replace(finding, evidence=(*finding.evidence, *named))


def _owner(component: Entity) -> Entity:
    return component.parent or component


def _by_owner(group: SeriesGroup) -> Iterator[tuple[Entity, SeriesGroup]]:
    rows: dict[Entity, list[int]] = {}
    for row, entity in enumerate(group.entities):
        rows.setdefault(_owner(entity), []).append(row)
    for owner, of_owner in rows.items():
        yield owner, group.take(of_owner)


def _slowest(group: SeriesGroup) -> Iterator[SeriesGroup]:
    """Per owner, the mean of the ten slowest components of each moment; NaN where none was measured."""
    for owner, of_owner in _by_owner(group):
        values = of_owner.values
        ranked = -np.sort(-np.where(np.isfinite(values), values, -np.inf), axis=0)[:_SLOWEST_COUNT]
        known = np.isfinite(ranked)
        counts = known.sum(axis=0)
        totals = np.where(known, ranked, 0.0).sum(axis=0)
        means = np.where(counts > 0, totals / np.maximum(counts, 1), np.nan)
        yield replace(group, entities=[owner], values=means[np.newaxis, :])
