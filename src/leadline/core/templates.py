"""Rule templates: most rules are data, only the odd ones need code.

`over_threshold` covers "a metric stays above a limit for a while", with a metric taken off first, a least load, or a
value computed from several metrics; findings of parts (vCPUs) are rolled up to the whole (VM).
`by_setting` covers "a setting has a bad value".
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.entities import Entity, Fact
from leadline.core.episodes import Episode, find_episodes, joined_windows
from leadline.core.finding import Evidence, Finding
from leadline.core.units import show
from leadline.core.vocabulary import EntityKind, Severity

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.capture import SeriesGroup
    from leadline.core.rule import RuleContext

SCORE_MAX = 100.0
EVIDENCE_COUNT_MAX = 4  # parts named in the evidence of a rolled-up finding; the rest are counted


@dataclass(frozen=True, slots=True)
class Over:
    """A metric above (or below) a limit for a duration.

    The rule's META gives thresholds ``warn`` and, optionally, ``crit``, both in the metric's unit, ``duration`` in
    seconds and, with ``load``, ``load_min``.

    Attributes:
        metric: the metric looked at.
        noun: how the summary calls it: "ready time", "device latency".
        kinds: entity kinds looked at; all when empty.
        below: bad is below the limit, not above.
        value: computes what is compared from the group, [k, n]; the metric's values when None.
        load: metrics whose sum must reach ``load_min`` for a sample to count (an average of two I/Os proves nothing).
        roll_up: findings of parts become one finding of the nearest ancestor of this kind.
        keep: leaves entities out (True keeps).
    """

    metric: str
    noun: str
    kinds: tuple[EntityKind, ...] = ()
    below: bool = False
    value: Callable[[RuleContext, SeriesGroup], NDArray[np.floating[Any]]] | None = None
    load: tuple[str, ...] = ()
    roll_up: EntityKind | None = None
    keep: Callable[[RuleContext, Entity], bool] | None = None


def over_threshold(context: RuleContext, spec: Over) -> Iterator[Finding]:
    """Findings of a metric that stays beyond its warning limit for the rule's duration.

    Severity is META's when the critical limit is exceeded for the duration too (or there is none), one lower
    otherwise. The limits are exclusive: a value at the limit is not beyond it.
    """
    owners: dict[Entity, list[Episode]] = {}
    for group in context.of(spec.metric, *spec.kinds):
        kept = _kept(context, group, spec)
        if kept is None:
            continue
        values = kept.values if spec.value is None else spec.value(context, kept)
        loaded = _loaded(context, kept, spec)
        met = _beyond(values, context.limit("warn"), below=spec.below) & loaded
        for episode in find_episodes(kept, met, values, context.limit("duration")):
            whole = episode.entity.ancestor(spec.roll_up) if spec.roll_up is not None else None
            owners.setdefault(whole or episode.entity, []).append(episode)
    for owner, episodes in owners.items():
        yield finding_of_episodes(context, owner, episodes, spec)


def finding_of_episodes(context: RuleContext, owner: Entity, episodes: list[Episode], spec: Over) -> Finding:
    """One finding of an entity from the episodes of it and its parts; the worst parts are the evidence."""
    warn = context.limit("warn")
    unit = episodes[0].group.unit
    worst = sorted(episodes, key=lambda e: _distance(e, warn, spec), reverse=True)
    critical = any(_critical(context, episode, spec) for episode in worst)
    side = "below" if spec.below else "above"
    evidence = [
        Evidence(
            f"{spec.noun} of {e.entity.label()}: median {show(e.median, unit)}, "
            f"{'lowest' if spec.below else 'peak'} {show(_extreme(e, spec), unit)} "
            f"while {side} {show(warn, unit)}, {e.held_s:.0f} s",
            metric=spec.metric,
            entity=e.entity,
            statistic="median",
            value=e.median,
            threshold=warn,
            unit=unit,
            source=context.source_name(e.group),
        )
        for e in worst[:EVIDENCE_COUNT_MAX]
    ]
    if len(worst) > EVIDENCE_COUNT_MAX:
        evidence.append(Evidence(f"and {len(worst) - EVIDENCE_COUNT_MAX} more like these"))
    lead = worst[0]
    parts = len({e.entity for e in episodes})
    of_parts = f" on {parts} of its parts" if spec.roll_up is not None and parts > 1 else ""
    summary = (
        f"{spec.noun[0].upper()}{spec.noun[1:]} {show(lead.median, unit)} on {owner.label()}{of_parts} "
        f"(limit {show(warn, unit)})"
    )
    return context.finding(
        owner,
        summary,
        evidence,
        severity=context.meta.severity if critical else context.meta.severity.lowered(),
        windows=joined_windows([e.window for e in episodes], context.limit("duration")),
        score=_distance(lead, warn, spec),
    )


def by_setting(
    context: RuleContext,
    kind: EntityKind,
    setting: str,
    judge: Callable[[Entity, Fact], tuple[str, Severity] | None],
) -> Iterator[Finding]:
    """Findings of entities whose setting is judged bad: ``judge`` returns summary and severity, or None."""
    for entity in context.inventory.of_kind(kind):
        fact = context.inventory.fact(entity, setting)
        verdict = None if fact is None else judge(entity, fact)
        if fact is None or verdict is None:
            continue
        summary, severity = verdict
        evidence = Evidence(f"{setting} of {entity.label()} is {fact.value}", entity=entity, source=fact.source)
        guessed = (f"{setting} of {entity.label()}",) if fact.guessed else ()
        yield context.finding(entity, summary, [evidence], severity=severity, guessed=guessed)


@dataclass(frozen=True, slots=True)
class Minus:
    """A value function for `Over`: the metric less other metrics of the same entity, never below zero.

    A metric to take off that was not measured takes off nothing.
    """

    metrics: tuple[str, ...] = field(default=())

    def __call__(self, context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
        """[k, n] like the group's values."""
        values = group.values
        for metric in self.metrics:
            other = context.aligned(group, metric)
            if other is not None:
                values = values - np.nan_to_num(other, nan=0.0)
        return values if values is group.values else np.maximum(values, 0.0)


def _kept(context: RuleContext, group: SeriesGroup, spec: Over) -> SeriesGroup | None:
    if spec.keep is None:
        return group
    rows = [i for i, entity in enumerate(group.entities) if spec.keep(context, entity)]
    if len(rows) == len(group.entities):
        return group
    return group.take(rows) if rows else None


def _loaded(context: RuleContext, group: SeriesGroup, spec: Over) -> NDArray[np.bool_]:
    if not spec.load:
        return np.ones(1, dtype=bool)
    parts = [context.aligned(group, metric) for metric in spec.load]
    known = [part for part in parts if part is not None]
    if not known:
        return np.ones(1, dtype=bool)
    total = np.sum([np.nan_to_num(part, nan=0.0) for part in known], axis=0)
    loaded: NDArray[np.bool_] = total >= context.limit("load_min")
    return loaded


def _beyond(values: NDArray[np.floating[Any]], limit: float, *, below: bool) -> NDArray[np.bool_]:
    with np.errstate(invalid="ignore"):
        met: NDArray[np.bool_] = values < limit if below else values > limit
    return met


def _critical(context: RuleContext, episode: Episode, spec: Over) -> bool:
    if not context.has_limit("crit"):
        return True
    met = episode.held & _beyond(episode.values, context.limit("crit"), below=spec.below)
    if not met.any():
        return False
    again = find_episodes(
        episode.group.take([list(episode.group.entities).index(episode.entity)]),
        met[np.newaxis, :],
        episode.values[np.newaxis, :],
        context.limit("duration"),
    )
    return next(again, None) is not None


def _extreme(episode: Episode, spec: Over) -> float:
    return float(np.min(episode.values[episode.held])) if spec.below else episode.peak


def _distance(episode: Episode, warn: float, spec: Over) -> float:
    median = episode.median
    ratio = (warn / median if median else SCORE_MAX) if spec.below else (median / warn if warn else 1.0 + median)
    return min(max(ratio, 0.0), SCORE_MAX)
