"""Step three of a verdict: rules look at the capture; each finds something, or says whether it could have seen it.

A rule that asks for a duration has looked only where the recording is as long. In a recording that is too short for it
a rule judges by the size of the effect: twice its limit, and beyond its critical one, in what there is. What it finds
then is of medium severity at most; what it does not find clears nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, cast

import numpy as np

from leadline.core.contracts.discovery import load_unit
from leadline.core.contracts.rule import DISKS, Rule, RuleContext, RuleMeta, Scope, rule_metas
from leadline.core.model.derived import Recorded, Upkeep, derived
from leadline.core.model.finding import Evidence, Finding, Skipped
from leadline.core.model.power import SLACK, Power
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

if TYPE_CHECKING:
    from leadline.app.diagnose.symptoms import Symptoms
    from leadline.core.model.capture import Capture
    from leadline.core.model.incident import Incident
    from leadline.core.model.profile import Profile

NO_INCIDENT = "an incident and a normal time to compare it with"
SEEN_SHARE = 0.5  # Judgement: what held for half of an incident, or of a short recording, was sustained
SEEN_S_MIN = 8.0  # Judgement: less than that is a burst, whatever it is part of
SHORT_S = 15.0  # Judgement: what lasts as long is judged by the limits, shorter only where it is far beyond them
ALONE_S = 1.0  # a sample that stands alone counts as one of a second
NEAR_RATIO = 0.5  # Judgement: what stays below half of its limits is quick, also where an average hides half of it
# A sample beyond a limit, of five requests a second or more: a database that commits so often feels each.
_SINGLE = {"longest_s": 0.1, "load_ratio": 0.1}
EFFECT_RATIO = 2.0  # Judgement: twice a limit in every second that was recorded is no burst


@dataclass(frozen=True, slots=True)
class RulesRun:
    """What came of the rules: findings, the power of each rule that looked, and the rules that could not.

    ``near`` are what the rules on disks that found nothing find at `NEAR_RATIO` of their limits, ``brief`` what they
    find at their limits in single samples, also of a disk that does little.
    """

    findings: tuple[Finding, ...]
    powers: tuple[Power, ...]
    skipped: tuple[Skipped, ...]
    near: tuple[Finding, ...] = ()
    brief: tuple[Finding, ...] = ()

    def of(self, layer: Layer) -> tuple[Power, ...]:
        """What the rules of a layer could see."""
        return tuple(power for power in self.powers if power.layer is layer)

    def cleared_parts(self, *layers: Layer) -> frozenset[str]:
        """The parts of some layers in which finding nothing means that there is nothing."""
        return frozenset(power.part for power in self.powers if power.layer in layers and power.clears)

    def shortest(self, layer: Layer, part: str | None = None) -> Power | None:
        """The rule of a layer, or of a part of it, that lacks most of the time it needs; None where none lacks any."""
        lacking = [p for p in self.of(layer) if p.can_clear and p.is_short and part in (None, p.part)]
        return max(lacking, key=lambda power: power.needed_s, default=None)


def run_rules(site: Profile, names: Iterable[str] | None, symptoms: Symptoms, capture: Capture) -> RulesRun:
    """Ask every rule, or those with some names, about a capture.

    Args:
        site: a site's own limits.
        names: of rules; all when None.
        symptoms: rules on changes compare its incidents with their normal; the others look at all of the capture.
        capture: what is looked at.
    """
    incidents = symptoms.incidents
    looked = _Asked(capture, incidents)
    wanted = None if names is None else set(names)
    findings: list[Finding] = []
    powers: list[Power] = []
    skipped: list[Skipped] = []
    for name, meta in rule_metas().items():
        if name in site.disabled or (wanted is not None and name not in wanted):
            continue
        missing = looked.missing(meta.needs)
        if not missing and meta.of_incident and not incidents:
            missing = (NO_INCIDENT,)
        if missing:
            skipped.append(Skipped(name, meta.layer, missing))
            continue
        power = looked.power(name, meta, site.limits.get(name, {}))
        findings.extend(looked.ask(name, meta, site, power))
        powers.append(power)
    reported_by = {finding.rule for finding in findings}
    quiet = [p for p in powers if p.part == DISKS and p.clears and p.rule not in reported_by and _has_limits(p.rule)]
    near = (finding for power in quiet for finding in looked.ask_again(power, site, effect_ratio=NEAR_RATIO))
    brief = (finding for power in quiet for finding in looked.ask_again(power, site, **_SINGLE))
    return RulesRun(tuple(findings), tuple(powers), tuple(skipped), tuple(near), tuple(brief))


def _has_limits(rule: str) -> bool:
    """Whether a rule compares with limits, so that it finds more where these are nearer."""
    return any("warn" in name for name in rule_metas()[rule].thresholds)


@dataclass(eq=False)
class _Asked:
    """A capture while rules are asked about it: what it holds, and for how long."""

    capture: Capture
    incidents: tuple[Incident, ...]

    def __post_init__(self) -> None:
        self._present = _Presence(self.capture)

    @cached_property
    def single_reports(self) -> Capture:
        """The capture with reports that stand alone, which may be averages since boot, as samples of one second."""
        groups = [
            replace(group, values=group.stored, since_boot=False, interval_s=np.nanmax((group.interval_s, ALONE_S)))
            if len(group.times_ns) == 1
            else group
            for group in self.capture.groups
        ]
        return replace(self.capture, groups=groups)

    @cached_property
    def _present_alone(self) -> _Presence:
        return _Presence(self.single_reports)

    def missing(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """The needs that are not met, even by a report that stands alone."""
        missing = self._present.missing(needs)
        return self._present_alone.missing(missing) if missing and self._has_single_reports else missing

    @cached_property
    def _has_single_reports(self) -> bool:
        return any(len(group.times_ns) == 1 for group in self.capture.groups)

    def power(self, name: str, meta: RuleMeta, limits: dict[str, float]) -> Power:
        """What a rule can see in the capture."""
        needed_s = limits.get("duration", meta.thresholds["duration"].value) if "duration" in meta.thresholds else 0.0
        since_boot = bool(self._present.missing(meta.needs))
        recorded_s = 0.0 if since_boot else min(map(self._length_s, meta.needs), default=float("inf"))
        can_clear = meta.clears and not self._present.missing(meta.clears_with)
        return Power(name, meta.layer, meta.examines, recorded_s, needed_s, can_clear, since_boot)

    def ask(self, name: str, meta: RuleMeta, site: Profile, power: Power) -> Iterator[Finding]:
        """The findings of a rule, of less weight where the recording is too short for it."""
        is_short = power.is_alone or power.recorded_s < SLACK * min(power.needed_s, SHORT_S)
        capture = self.single_reports if power.is_alone else self.capture
        longest_s = SEEN_SHARE * (power.recorded_s or ALONE_S) if is_short else self._longest_s
        module = load_unit("rule", name)
        for one in self.incidents[: None if meta.of_incident else 1] or (None,):
            scope = Scope(one, longest_s, EFFECT_RATIO if is_short else 1.0)
            context = RuleContext(name, meta, module.__doc__ or "", capture, site.limits.get(name), scope)
            reported = cast("Rule", module).check(context)
            yield from ((_seen_shortly(finding, power) for finding in reported) if is_short else reported)

    def ask_again(self, power: Power, site: Profile, **scoped: float) -> Iterator[Finding]:
        """What a rule that found nothing finds in another scope."""
        meta = rule_metas()[power.rule]
        scope = Scope(next(iter(self.incidents), None), **{"longest_s": self._longest_s, **scoped})
        context = RuleContext(power.rule, meta, "", self.capture, site.limits.get(power.rule), scope)
        yield from cast("Rule", load_unit("rule", power.rule)).check(context)

    @cached_property
    def _longest_s(self) -> float:
        """The longest duration a rule may ask for: a part of the incident, or of the recording where it is short."""
        if self.incidents:
            return max(SEEN_SHARE * min(one.window.duration_s for one in self.incidents), SEEN_S_MIN)
        span = self.capture.span_ns()
        return float("inf") if span is None else max(SEEN_SHARE * (span[1] - span[0]) / 1e9, SEEN_S_MIN)

    def _length_s(self, need: str) -> float:
        """The longest time over which any of the alternatives of a need was measured; inf for a setting."""
        return max(_recorded_s(self.capture, name) for name in need.split("|"))


def _recorded_s(capture: Capture, name: str) -> float:
    """The time that the samples of the longest series of a metric stand for; inf for a setting and for results."""
    if "." in name or any(result.has(name) for result in capture.results):
        return float("inf")
    return capture.table(_longest_s, name)


@derived()
def _longest_s(reader: Recorded, metric: str) -> float:
    """The time that the samples of the longest series of a metric stand for, seconds."""
    longest = 0.0
    for group in reader.of(metric):
        distances = np.diff(group.times_ns) / 1e9
        step = group.interval_s if np.isfinite(group.interval_s) else 0.0
        # A sample stands for its interval; what was not recorded between two stretches is no part of it.
        length_s = step + float(np.minimum(distances, step or np.inf).sum())
        longest = max(longest, length_s)
    return longest


def _seen_shortly(finding: Finding, power: Power) -> Finding:
    """A finding of a recording that is too short for its rule: of medium severity at most, and said so."""
    if power.is_alone:
        # What counts since boot in a guest prints that first.
        boot = ", which may be an average since boot" if finding.layer is Layer.GUEST else ""
        statement = f"one report alone{boot}, counted as one second: judged by large effects only"
    else:
        statement = f"only {power.recorded_s:.3g} s were recorded: judged by large effects only"
    evidence = (*finding.evidence, Evidence(statement))
    return replace(finding, evidence=evidence, severity=min(finding.severity, Severity.MEDIUM))


def missing_needs(capture: Capture, needs: tuple[str, ...]) -> tuple[str, ...]:
    """The needs (as in `RuleMeta.needs`) a capture does not meet.

    A metric that is all "not measured" does not meet its need.
    """
    return _Presence(capture).missing(needs)


class _Presence:
    """What a capture holds of what rules need."""

    def __init__(self, capture: Capture) -> None:
        self._capture = capture
        self._answers: dict[str, bool] = {}
        self._version = capture.inventory.version

    def missing(self, needs: tuple[str, ...]) -> tuple[str, ...]:
        """The needs that are not met."""
        return tuple(need for need in needs if not any(self._has(name) for name in need.split("|")))

    def _has(self, name: str) -> bool:
        """Whether one of the names of a need is there; many rules need the same."""
        if self._version != self._capture.inventory.version:
            self._answers.clear()
            self._version = self._capture.inventory.version
        if name not in self._answers:
            self._answers[name] = self._holds(name)
        return self._answers[name]

    def _holds(self, name: str) -> bool:
        kind, dot, setting = name.partition(".")
        if dot:
            return (EntityKind(kind), setting) in self._capture.table(_settings_known)
        return any(result.has(name) for result in self._capture.results) or self._capture.table(_is_measured, name)


@derived(upkeep=Upkeep.WHOLE)
def _settings_known(reader: Recorded) -> frozenset[tuple[EntityKind, str]]:
    """The settings that are known of any entity of each kind."""
    facts = reader.inventory.facts.items()
    return frozenset((entity.kind, name) for entity, settings in facts for name in settings)


@derived()
def _is_measured(reader: Recorded, metric: str) -> bool:
    """Whether any sample of a metric is there. Row by row: the first one that was measured answers, and most are."""
    parts = (part for group in reader.of(metric) for part in group.slices())
    return any(bool(np.isfinite(row).any()) for part in parts for row in part.values)
