"""Rule templates: most rules are data, only the odd ones need code.

`over_threshold` covers "a metric stays above a limit for a while", with a metric taken off first, a least load, or a
value computed from several metrics; findings of parts (vCPUs) are rolled up to the whole (VM). `over_any` joins what
several such conditions find on one entity, as reads and writes of the same trouble.
`by_setting` covers "a setting has a bad value".
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.estate.arithmetic.episodes import (
    Episode,
    EpisodeColumns,
    Limits,
    Load,
    columns_of,
    find_beyond,
    joined_columns,
    joined_windows,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.derived import Recorded

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
        inclusive: a value at the limit is beyond it too.
        value: computes what is compared from the group, [k, n]; the metric's values when None.
        load: metrics whose sum must reach ``load_min`` for a sample to count (an average of two I/Os proves nothing).
        roll_up: findings of parts become one finding of the nearest ancestor of this kind.
        keep: leaves entities out (True keeps).
        mostly: a sample counts only when most samples within half the duration around it are beyond the limit too;
            for values sampled so often that single ones jump.
        averaged_s: seconds that a value is itself an average of; a recording of one sample stands for as long.
        warn: name of the warning limit, where a rule has several.
        crit: name of the critical limit.
        unit: of what ``value`` computes or a rule computed itself, where it is not the metric's.
        says: the summary, from {noun}, {value}, {where} and {limit}.
    """

    metric: str
    noun: str
    kinds: tuple[EntityKind, ...] = ()
    below: bool = False
    inclusive: bool = False
    value: Callable[[RuleContext, SeriesGroup], NDArray[np.floating[Any]]] | None = None
    load: tuple[str, ...] = ()
    roll_up: EntityKind | None = None
    keep: Callable[[RuleContext, Entity], bool] | None = None
    mostly: bool = False
    averaged_s: float = math.nan
    warn: str = "warn"
    crit: str = "crit"
    unit: str = ""
    says: str = "{noun} {value} on {where} (limit {limit})"


def over_threshold(context: RuleContext, spec: Over) -> Iterator[Finding]:
    """Findings of a metric that stays beyond its warning limit for the rule's duration.

    Severity is META's when the critical limit is exceeded for the duration too (or there is none), one lower
    otherwise. The limits are exclusive unless ``spec.inclusive``: a value at the limit is not beyond it.
    """
    yield from over_groups(context, context.of(spec.metric, *spec.kinds), spec)


def over_groups(context: RuleContext, groups: Iterable[SeriesGroup], spec: Over) -> Iterator[Finding]:
    """`over_threshold` of groups a rule chose or computed itself; ``spec.kinds`` is not looked at."""
    parts: list[EpisodeColumns] = []
    limits = _limits_of(context, spec)
    for group in groups:
        whole = replace(group, interval_s=spec.averaged_s) if math.isnan(group.interval_s) else group
        for part in whole.slices():
            load, is_loaded = _load_of(context, part, whole, spec)
            if is_loaded:
                values = part.values if spec.value is None else spec.value(context, part)
                # The group as a whole stands for its slices: they would keep values that nobody looks at again.
                parts.append(_kept(context, find_beyond(part, values, limits, load), spec).of_group(whole))
    if parts:
        yield from _findings_of_owners(context, joined_columns(parts), spec)


def _findings_of_owners(context: RuleContext, episodes: EpisodeColumns, spec: Over) -> Iterator[Finding]:
    owners: dict[Entity, list[int]] = {}
    place = 0
    for entity, same in groupby(episodes.entities):
        whole = entity.ancestor(spec.roll_up) if spec.roll_up is not None else None
        count = sum(1 for _ in same)
        owners.setdefault(whole or entity, []).extend(range(place, place + count))
        place += count
    distances = _distances(context, episodes, spec)
    for owner, places in owners.items():
        yield _finding_of_owner(context, owner, episodes.take(np.array(places)), distances[places], spec)


def _limits_of(context: RuleContext, spec: Over) -> Limits:
    crit = float(context.limit(spec.crit)) if context.has_limit(spec.crit) else None
    warn, duration_s = float(context.limit(spec.warn)), float(context.limit("duration"))
    return Limits(warn, crit, duration_s, spec.below, spec.inclusive, spec.mostly)


def over_any(context: RuleContext, specs: Iterable[Over]) -> Iterator[Finding]:
    """Findings of several conditions of one rule, joined to one finding per entity: the worst leads."""
    by_entity: dict[Entity, list[Finding]] = {}
    for spec in specs:
        for finding in over_threshold(context, spec):
            by_entity.setdefault(finding.entity, []).append(finding)
    for findings in by_entity.values():
        yield joined(findings, context.limit("duration"))


def joined(findings: list[Finding], gap_s: float) -> Finding:
    """Findings of one entity as one: summary and severity of the worst, evidence and windows of all."""
    worst = sorted(findings, key=lambda f: (f.severity, f.score), reverse=True)
    if len(worst) == 1:
        return worst[0]
    evidence = tuple(item for finding in worst for item in finding.evidence)
    windows = joined_windows([window for finding in worst for window in finding.windows], gap_s)
    guessed = tuple(dict.fromkeys(guess for finding in worst for guess in finding.guessed))
    return replace(worst[0], evidence=evidence, windows=windows, guessed=guessed)


def finding_of_episodes(context: RuleContext, owner: Entity, episodes: list[Episode], spec: Over) -> Finding:
    """One finding of an entity from the episodes of it and its parts; the worst parts are the evidence."""
    columns = columns_of(episodes, _limits_of(context, spec))
    return _finding_of_owner(context, owner, columns, _distances(context, columns, spec), spec)


def _finding_of_owner(
    context: RuleContext, owner: Entity, episodes: EpisodeColumns, distances: NDArray[np.float64], spec: Over
) -> Finding:
    warn = context.stated_limit(spec.warn)
    unit = spec.unit or episodes.groups[0].unit
    # What the whole itself shows is the mean of its parts: it adds nothing where parts were recorded.
    of_parts = [place for place, entity in enumerate(episodes.entities) if entity != owner]
    if 0 < len(of_parts) < len(episodes):
        episodes, distances = episodes.take(np.array(of_parts)), distances[of_parts]
    worst = np.argsort(-distances, kind="stable")
    evidence = list(_evidence_of(context, episodes.take(worst[:EVIDENCE_COUNT_MAX]), unit, spec))
    if len(worst) > EVIDENCE_COUNT_MAX:
        evidence.append(Evidence(f"and {len(worst) - EVIDENCE_COUNT_MAX} more like these"))
    lead = int(worst[0])
    leader = episodes.entities[lead]
    parts = len(set(episodes.entities))
    where = owner.label() if leader == owner else f"{parts} {_plural(leader.kind, parts)} of {owner.label()}"
    value, limit = show(float(episodes.median[lead]), unit), show(warn, unit)
    summary = spec.says.format(noun=spec.noun, value=value, where=where, limit=limit)
    summary = f"{summary[0].upper()}{summary[1:]}"
    return context.finding(
        owner,
        summary,
        evidence,
        severity=context.meta.severity if episodes.is_critical.any() else context.meta.severity.lowered(),
        windows=episodes.windows(context.limit("duration")),
        score=float(distances[lead]),
    )


def _evidence_of(context: RuleContext, episodes: EpisodeColumns, unit: str, spec: Over) -> Iterator[Evidence]:
    warn = context.stated_limit(spec.warn)
    side, extreme = ("below", "lowest") if spec.below else ("above", "peak")
    extremes = (episodes.lowest if spec.below else episodes.peak).tolist()
    numbers = (episodes.median.tolist(), extremes, episodes.held_ns.tolist())
    for entity, group, median, furthest, held_ns in zip(episodes.entities, episodes.groups, *numbers, strict=True):
        yield Evidence(
            f"{spec.noun} of {entity.label()}: median {show(median, unit)}, {extreme} {show(furthest, unit)} "
            f"while {side} {show(warn, unit)}, {held_ns / 1e9:.0f} s",
            metric=spec.metric,
            entity=entity,
            statistic="median",
            value=median,
            threshold=warn,
            unit=unit,
            source=context.source_name(group),
        )


def by_setting(
    context: RuleContext,
    kind: EntityKind,
    setting: str,
    judge: Callable[[Entity, Fact], tuple[str, Severity] | None],
    beside: tuple[str, ...] = (),
) -> Iterator[Finding]:
    """Findings of entities whose setting is judged bad: ``judge`` returns summary and severity, or None.

    Other settings of the entity that the judgement rests on, named in ``beside``, are evidence too.
    """
    for entity in context.inventory.of_kind(kind):
        fact = context.inventory.fact(entity, setting)
        verdict = None if fact is None else judge(entity, fact)
        if fact is None or verdict is None:
            continue
        summary, severity = verdict
        evidence = setting_evidence(context, entity, setting, *beside)
        guessed = (f"{setting} of {entity.label()}",) if fact.guessed else ()
        yield context.finding(entity, summary, evidence, severity=severity, guessed=guessed)


def setting_evidence(context: RuleContext, entity: Entity, *settings: str) -> list[Evidence]:
    """Evidence of the settings of an entity that are known, in the order asked for."""
    facts = [(name, context.inventory.fact(entity, name)) for name in settings]
    return [
        Evidence(f"{name} of {entity.label()} is {worded(fact.value)}", entity=entity, source=fact.source)
        for name, fact in facts
        if fact is not None
    ]


def worded(value: object) -> str:
    """The value of a setting for people, as an inventory file writes it.

    >>> worded(4096.0), worded(False), worded({"vmk1": 1.0, "vmk2": 2.0}), worded([])
    ('4096', 'false', 'vmk1: 1, vmk2: 2', 'empty')
    """
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, dict):
        return ", ".join(f"{name}: {worded(item)}" for name, item in value.items()) or "empty"
    if isinstance(value, list | tuple):
        return ", ".join(worded(item) for item in value) or "empty"
    return str(value)


def flag_is(
    context: RuleContext,
    setting: tuple[EntityKind, str],
    bad: bool,
    says: str,
    keep: Callable[[Entity], bool] | None = None,
) -> Iterator[Finding]:
    """Findings of entities whose flag has the bad value, at META's severity.

    Args:
        context: of the rule.
        setting: kind of entity and name of the flag.
        bad: the value that is found fault with.
        says: the summary; ``{name}`` stands for the entity.
        keep: leaves entities out (True keeps).
    """

    def judge(entity: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if bool(fact.value) is not bad or (keep is not None and not keep(entity)):
            return None
        return says.format(name=entity.label()), context.meta.severity

    yield from by_setting(context, setting[0], setting[1], judge)


@dataclass(frozen=True, slots=True)
class SettingLimit:
    """A setting, or a number made from settings, beyond a limit.

    The rule's META gives thresholds ``warn`` and, optionally, ``crit``, both in the unit of what is compared.

    Attributes:
        kind: kind of entity.
        setting: the setting looked at; entities without it are left out.
        noun: how the summary calls it: "free space".
        below: bad is below the limit, not above.
        value: computes what is compared; None leaves the entity out. The setting's own value when not given.
        keep: leaves entities out (True keeps).
        warn: name of the warning limit, where a rule has several.
        crit: name of the critical limit.
    """

    kind: EntityKind
    setting: str
    noun: str
    below: bool = False
    value: Callable[[RuleContext, Entity], float | None] | None = None
    keep: Callable[[RuleContext, Entity], bool] | None = None
    warn: str = "warn"
    crit: str = "crit"


def setting_over(context: RuleContext, spec: SettingLimit) -> Iterator[Finding]:
    """Findings of entities whose setting is beyond its warning limit; a value at the limit is not.

    Severity is META's beyond the critical limit (or when there is none), one lower otherwise.
    """
    warn, unit = context.limit(spec.warn), context.meta.thresholds[spec.warn].unit
    crit = context.limit(spec.crit) if context.has_limit(spec.crit) else warn
    for entity in context.inventory.of_kind(spec.kind):
        fact = context.inventory.fact(entity, spec.setting)
        if fact is None or (spec.keep is not None and not spec.keep(context, entity)):
            continue
        value = float(fact.value) if spec.value is None else spec.value(context, entity)
        if value is None or not (value < warn if spec.below else value > warn):
            continue
        critical = value < crit if spec.below else value > crit
        ratio = (warn / value if value else SCORE_MAX) if spec.below else (value / warn if warn else SCORE_MAX)
        side = "below" if spec.below else "above"
        statement = f"{spec.noun} of {entity.label()} is {show(value, unit)}, {side} {show(warn, unit)}"
        yield context.finding(
            entity,
            f"{spec.noun[0].upper()}{spec.noun[1:]} of {entity.label()} is {show(value, unit)} "
            f"(limit {show(warn, unit)})",
            [Evidence(statement, entity=entity, value=value, threshold=warn, unit=unit, source=fact.source)],
            severity=context.meta.severity if critical else context.meta.severity.lowered(),
            score=min(max(ratio, 0.0), SCORE_MAX),
            guessed=(f"{spec.setting} of {entity.label()}",) if fact.guessed else (),
        )


def of_facts(
    context: RuleContext,
    entity: Entity,
    summary: str,
    facts: Iterable[tuple[Entity | None, str]],
    *,
    severity: Severity | None = None,
) -> Finding:
    """A finding whose evidence is settings of one or several entities, and which says which of them are guesses.

    Args:
        context: of the rule.
        entity: what is accused.
        summary: what was found.
        facts: entity and setting of each; those that are not known are left out.
        severity: META's unless given.
    """
    evidence, guessed = [], []
    for owner, setting in facts:
        fact = None if owner is None else context.inventory.fact(owner, setting)
        if owner is None or fact is None:
            continue
        whole = isinstance(fact.value, float) and fact.value.is_integer()
        shown = int(fact.value) if whole else fact.value
        evidence.append(Evidence(f"{setting} of {owner.label()} is {shown}", entity=owner, source=fact.source))
        if fact.guessed:
            guessed.append(f"{setting} of {owner.label()}")
    return context.finding(entity, summary, evidence, severity=severity, guessed=guessed)


@dataclass(frozen=True, slots=True)
class Minus:
    """A value function for `Over`: the metric less other metrics of the same entity, never below zero.

    A metric to take off that was not measured takes off nothing.
    """

    metrics: tuple[str, ...] = field(default=())

    def __call__(self, context: Recorded, group: SeriesGroup) -> NDArray[np.floating[Any]]:
        """[k, n] like the group's values."""
        whole = group.values
        left = whole
        for metric in self.metrics:
            other = context.aligned(group, metric)
            if other is not None:
                known = np.nan_to_num(other, nan=0.0)
                del other
                left = np.subtract(left, known, out=known)  # one array at a time: a metric may fill much of the memory
        return left if left is whole else np.maximum(left, 0.0, out=left)


def _kept(context: RuleContext, episodes: EpisodeColumns, spec: Over) -> EpisodeColumns:
    """The episodes of entities that the rule keeps: it is asked of those alone that have one."""
    if spec.keep is None or not len(episodes):
        return episodes
    is_kept = {entity: spec.keep(context, entity) for entity in dict.fromkeys(episodes.entities)}
    places = [place for place, entity in enumerate(episodes.entities) if is_kept[entity]]
    return episodes if len(places) == len(episodes) else episodes.take(np.array(places, dtype=np.intp))


def _load_of(context: RuleContext, group: SeriesGroup, whole: SeriesGroup, spec: Over) -> tuple[Load | None, bool]:
    """The load to ask of the samples of a group, if any, and whether the group can have any load at all."""
    if not spec.load:
        return None, True
    aligned = [context.aligned(group, metric) for metric in spec.load]
    known = [values for values in aligned if values is not None]
    if not known:
        # Series without a load are idle where others of the same recording have one.
        elsewhere = group is not whole and any(context.capture.is_aligned(whole, metric) for metric in spec.load)
        return None, not elsewhere
    return Load(known, float(context.limit("load_min"))), True


def _plural(kind: EntityKind, count: int) -> str:
    noun = {EntityKind.VCPU: "vCPU", EntityKind.PCPU: "PCPU", EntityKind.CPU: "CPU"}.get(kind, kind.value)
    return noun if count == 1 else f"{noun}s"


def _distances(context: RuleContext, episodes: EpisodeColumns, spec: Over) -> NDArray[np.float64]:
    """How far the median of each episode is beyond the warning limit: 1 at the limit, 2 at twice (or half of) it.

    A limit of zero has no multiple; there the critical limit is the measure, or the logarithm where there is none.
    """
    warn = context.limit(spec.warn)
    crit = context.limit(spec.crit) if context.has_limit(spec.crit) else 0.0
    median = episodes.median
    with np.errstate(all="ignore"):
        if spec.below:
            ratio = np.where(median == 0.0, SCORE_MAX, warn / median)
        elif warn:
            ratio = median / warn
        else:
            ratio = 1.0 + (median / crit if crit else np.log1p(np.maximum(median, 0.0)))
        distances: NDArray[np.float64] = np.minimum(np.maximum(ratio, 0.0), SCORE_MAX)
    return distances
