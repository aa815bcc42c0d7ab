"""The verdict on a live window: a rule is asked again only where a metric that it reads has new samples.

What a rule found stays until it is asked again. Rules that read settings only are asked when the inventory changes.
What is found for longer than the window holds is kept as `Ongoing`, from its begin.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from leadline.app.diagnose.findings import run_rules
from leadline.app.diagnose.symptoms import symptoms_of
from leadline.app.watch.ongoing import Ongoing
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.profile import Profile

if TYPE_CHECKING:
    from leadline.app.watch.window import LiveWindow
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Finding

GAP_S = 60.0  # of a rule without a duration: windows nearer to each other are one
_Key = tuple[str, "Entity"]


@dataclass(frozen=True, slots=True)
class LiveVerdict:
    """What is known after a step.

    Attributes:
        findings: of all rules, those that were not asked again among them.
        ongoing: what holds, or held until less than its rule's duration ago, each from its begin.
        ended: what was ongoing at the step before and is over.
        asked: how many rules were asked in this step.
    """

    findings: tuple[Finding, ...]
    ongoing: tuple[Ongoing, ...]
    ended: tuple[Ongoing, ...]
    asked: int


@dataclass(eq=False)
class LiveJudge:
    """Judges the window after each step.

    Attributes:
        profile: a site's own limits.
    """

    profile: Profile = field(default_factory=Profile)
    _findings: dict[str, tuple[Finding, ...]] = field(default_factory=dict)
    _ongoing: dict[_Key, Ongoing] = field(default_factory=dict)
    _over: dict[_Key, int] = field(default_factory=dict)
    _version: int = -1

    def take_up(self, ongoing: Iterable[Ongoing]) -> None:
        """Go on with what was stored when the last judge stopped."""
        self._ongoing.update({(one.rule, one.entity): one for one in ongoing})

    def judge(self, window: LiveWindow) -> LiveVerdict:
        """What the rules find in the window after its last step."""
        is_new = window.inventory.version != self._version
        self._version = window.inventory.version
        names = [name for name, meta in rule_metas().items() if is_new or not window.changed.isdisjoint(meta.metrics())]
        run = run_rules(self.profile, names, symptoms_of(window.capture, None, None), window.capture)
        for name in names:
            self._findings.pop(name, None)
        for finding in run.findings:
            self._findings[finding.rule] = (*self._findings.get(finding.rule, ()), finding)
        findings = tuple(one for some in self._findings.values() for one in some)
        span = window.capture.span_ns()
        ended = () if span is None else self._go_on(findings, span[1])
        return LiveVerdict(findings, tuple(self._ongoing.values()), ended, len(run.powers))

    def _go_on(self, findings: Iterable[Finding], time_ns: int) -> tuple[Ongoing, ...]:
        """Take up what is found again, and forget what is over, which is returned."""
        found_now: set[_Key] = set()
        for finding in findings:
            key = (finding.rule, finding.entity)
            end_ns = finding.windows[-1].end_ns if finding.windows else time_ns
            if end_ns <= self._over.get(key, -1):
                found_now.add(key)
                continue  # it is over, and its end has not left the window yet
            known = self._ongoing.get(key)
            self._ongoing[key] = Ongoing.of(finding) if known is None else known.taken_up(finding, self._gap_s(key[0]))
            found_now.add(key)
        ended = [
            key
            for key, one in self._ongoing.items()
            if (one.is_over(time_ns, self._gap_s(one.rule)) if one.windows else key not in found_now)
        ]
        over = tuple(self._ongoing.pop(key) for key in ended)
        self._over = {key: end_ns for key, end_ns in self._over.items() if key in found_now}
        self._over.update({(one.rule, one.entity): one.windows[-1].end_ns for one in over if one.windows})
        return over

    def _gap_s(self, rule: str) -> float:
        return rule_duration_s(rule, self.profile, GAP_S)


def rule_duration_s(rule: str, profile: Profile, usual_s: float) -> float:
    """How long a rule's condition must hold, seconds: as the site says, as the rule does, or what is usual."""
    duration = rule_metas()[rule].thresholds.get("duration")
    return profile.limits.get(rule, {}).get("duration", usual_s if duration is None else duration.value)
