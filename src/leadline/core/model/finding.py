"""Findings and verdicts: what rules say, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer, LayerState, Severity

if TYPE_CHECKING:
    from leadline.core.model.account import Account
    from leadline.core.model.answer import Answer, Feeling
    from leadline.core.model.incident import Change, Incident
    from leadline.core.model.power import Power


@dataclass(frozen=True, slots=True)
class Window:
    """A half-open span of time, UTC nanoseconds."""

    start_ns: int
    end_ns: int

    @property
    def duration_s(self) -> float:
        """Length in seconds."""
        return (self.end_ns - self.start_ns) / 1e9

    def overlaps(self, other: Window) -> bool:
        """Whether they share any moment."""
        return self.start_ns < other.end_ns and other.start_ns < self.end_ns

    def shared_ns(self, other: Window) -> int:
        """How long both last at the same time, nanoseconds."""
        return max(min(self.end_ns, other.end_ns) - max(self.start_ns, other.start_ns), 0)

    def to_dict(self) -> dict[str, Any]:
        """ISO 8601 UTC."""
        return {"start": iso(self.start_ns), "end": iso(self.end_ns), "duration_s": self.duration_s}


@dataclass(frozen=True, slots=True)
class Evidence:
    """One number behind a finding, with what it is compared to and where it was read.

    ``value``, ``threshold`` and ``normal`` are in ``unit``; each may be None. The threshold is a limit; ``normal`` is
    what the same series was outside the incident.
    """

    statement: str
    metric: str | None = None
    entity: Entity | None = None
    statistic: str | None = None
    value: float | None = None
    threshold: float | None = None
    unit: str | None = None
    source: str | None = None
    normal: float | None = None


class LoweredBecause(StrEnum):
    """Why a finding explains nothing that was felt."""

    NOT_DURING = "not-during"  # it was not there in the incident
    AS_ALWAYS = "as-always"  # it was so outside the incident as well
    LESS = "less"  # there was less of it in the incident
    UNFELT = "unfelt"  # users felt nothing in the recording
    BYSTANDER = "bystander"  # it is on a disk that the database does not use


@dataclass(frozen=True, slots=True)
class Lowered:
    """Why a finding has less weight than its rule gave it: what changed, or what users felt instead."""

    because: LoweredBecause
    change: Change | None = None
    feeling: Feeling | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: on which entity of which layer, when, how bad, why we think so, what to do.

    Attributes:
        windows: when it held, in order of time; empty for a setting, which holds always.
        score: distance from the threshold (1.0 is at the threshold) used to order findings of one severity.
        guessed: what was guessed to get here (a device role, a vCPU count); shown to the user.
        caused_by: the rule whose finding explains this one.
        is_wait: it states that something is waited for, not why.
        lowered: why it has less weight than its rule gave it; None where it has that weight.
    """

    rule: str
    code: str
    layer: Layer
    entity: Entity
    severity: Severity
    summary: str
    evidence: tuple[Evidence, ...]
    remedy: str
    windows: tuple[Window, ...] = ()
    score: float = 1.0
    guessed: tuple[str, ...] = ()
    caused_by: str | None = None
    caused_by_entity: Entity | None = None
    is_wait: bool = False
    lowered: Lowered | None = None

    @property
    def window(self) -> Window | None:
        """The longest window, or None for a setting."""
        return max(self.windows, key=lambda w: w.duration_s) if self.windows else None

    @property
    def is_symptom(self) -> bool:
        """Whether another finding explains this one, or it states a wait, whose cause is another thing."""
        return self.is_wait or self.is_explained

    @property
    def is_explained(self) -> bool:
        """Whether another finding explains this one."""
        return self.caused_by is not None

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "rule": self.rule,
            "code": self.code,
            "layer": self.layer.value,
            "entity": str(self.entity),
            "severity": self.severity.label,
            "summary": self.summary,
            "windows": [w.to_dict() for w in self.windows],
            "evidence": [
                {
                    "statement": e.statement,
                    "metric": e.metric,
                    "entity": None if e.entity is None else str(e.entity),
                    "statistic": e.statistic,
                    "value": e.value,
                    "threshold": e.threshold,
                    "normal": e.normal,
                    "unit": e.unit,
                    "source": e.source,
                }
                for e in self.evidence
            ],
            "remedy": self.remedy,
            "score": round(self.score, 3),
            "guessed": list(self.guessed),
            "is_symptom": self.is_symptom,
            "caused_by": self.caused_by,
            "caused_by_entity": None if self.caused_by_entity is None else str(self.caused_by_entity),
        }


@dataclass(frozen=True, slots=True)
class Skipped:
    """A rule that could not look, and what it needs."""

    rule: str
    layer: Layer
    needs: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {"rule": self.rule, "layer": self.layer.value, "needs": list(self.needs)}


class LayerBecause(StrEnum):
    """Why a layer is in its state."""

    CAUSE = "cause"  # a finding accuses it
    WAIT = "wait"  # a finding says that something waits, and nothing says why
    SYMPTOMS_ONLY = "symptoms-only"
    UNFELT = "unfelt"
    FAINT = "faint"
    PARTS_UNSEEN = "parts-unseen"
    UNEXPLAINED = "unexplained"
    TOO_SHORT = "too-short"
    NOT_RECORDED = "not-recorded"
    NO_RULE = "no-rule"
    NOTHING_FOUND = "nothing-found"


@dataclass(frozen=True, slots=True)
class LayerReason:
    """Why a layer is in its state, with what a sentence about it needs.

    Attributes:
        finding: that accuses it, waits in it, or speaks against clearing it.
        power: of the rule that lacks most of the time it needs.
        seen: parts of the layer without a finding of medium severity or above.
        brief: parts that were not recorded for long enough.
        absent: parts that were not recorded.
        rule_count: rules that looked, or that wait for a recording.
    """

    because: LayerBecause
    finding: Finding | None = None
    power: Power | None = None
    seen: tuple[str, ...] = ()
    brief: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()
    rule_count: int = 0


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """What is said of one layer, and why.

    Attributes:
        judged: metrics of the recordings that a rule of this layer looked at; what else was read is not judged.
        examine: what to record for a layer that was not examined.
    """

    layer: Layer
    state: LayerState
    reason: LayerReason
    findings: tuple[Finding, ...] = ()
    rules_run: tuple[str, ...] = ()
    examine: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; findings are named by rule."""
        return {
            "layer": self.layer.value,
            "state": self.state.value,
            "because": self.reason.because.value,
            "findings": [f.rule for f in self.findings],
            "rules_run": list(self.rules_run),
            "judged": list(self.judged),
            "examine": list(self.examine),
        }


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything ``diagnose`` returns: an answer for each incident, a state for each layer, findings by weight.

    Attributes:
        answers: one per incident, the worst first; one for the recording where no incident was seen.
        layers: from the database down.
        unused: counters that were recorded where no rule looks at any that was.
    """

    answers: tuple[Answer, ...]
    layers: tuple[LayerVerdict, ...]
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    rules_run: tuple[str, ...] = ()
    profile: dict[str, Any] = field(default_factory=dict)
    powers: tuple[Power, ...] = ()
    feeling: Feeling | None = None
    unused: tuple[str, ...] = ()
    has_samples: bool = True

    @property
    def answer(self) -> Answer:
        """Of the worst incident."""
        return self.answers[0]

    @property
    def incidents(self) -> tuple[Incident, ...]:
        """The incidents, the worst first."""
        return tuple(answer.incident for answer in self.answers if answer.incident is not None)

    @property
    def account(self) -> Account | None:
        """Where the added time of the worst incident went."""
        return self.answer.account

    @property
    def top(self) -> Finding | None:
        """The first finding, or None."""
        return self.findings[0] if self.findings else None

    def layer(self, layer: Layer) -> LayerVerdict:
        """The state of one layer."""
        return next(verdict for verdict in self.layers if verdict.layer is layer)


def iso(time_ns: int) -> str:
    """ISO 8601 in UTC with a Z, to the second.

    >>> iso(1_700_000_000_000_000_000)
    '2023-11-14T22:13:20Z'
    """
    return datetime.fromtimestamp(time_ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
