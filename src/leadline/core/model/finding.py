"""Findings and verdicts: what rules say, and what is made of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import Layer, LayerState, Severity

if TYPE_CHECKING:
    from leadline.core.model.account import Account
    from leadline.core.model.incident import Incident
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


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found: on which entity of which layer, when, how bad, why we think so, what to do.

    Attributes:
        windows: when it held, in order of time; empty for a setting, which holds always.
        score: distance from the threshold (1.0 is at the threshold) used to order findings of one severity.
        guessed: what was guessed to get here (a device role, a vCPU count); shown to the user.
        caused_by: the rule whose finding explains this one.
        is_wait: it states that something is waited for, not why.
        advice: rule names or catalogue ids of method pages that help with it.
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


@dataclass(frozen=True, slots=True)
class LayerVerdict:
    """What is said of one layer, and why.

    Attributes:
        judged: metrics of the recordings that a rule of this layer looked at; what else was read is not judged.
        examine: what to record for a layer that was not examined.
    """

    layer: Layer
    state: LayerState
    reason: str
    findings: tuple[Finding, ...] = ()
    rules_run: tuple[str, ...] = ()
    examine: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; findings are named by rule."""
        return {
            "layer": self.layer.value,
            "state": self.state.value,
            "reason": self.reason,
            "findings": [f.rule for f in self.findings],
            "rules_run": list(self.rules_run),
            "judged": list(self.judged),
            "examine": list(self.examine),
        }


@dataclass(frozen=True, slots=True)
class Verdict:
    """The answer: a sentence, is it the disk, and a state per layer from the database down."""

    headline: str
    is_it_the_disk: str
    layers: tuple[LayerVerdict, ...]

    def layer(self, layer: Layer) -> LayerVerdict:
        """The verdict of one layer."""
        return next(v for v in self.layers if v.layer is layer)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Everything ``diagnose`` returns: verdict, findings by weight, skipped rules."""

    verdict: Verdict
    findings: tuple[Finding, ...]
    skipped: tuple[Skipped, ...]
    rules_run: tuple[str, ...] = ()
    profile: dict[str, Any] = field(default_factory=dict)
    incidents: tuple[Incident, ...] = ()
    account: Account | None = None
    powers: tuple[Power, ...] = ()

    @property
    def top(self) -> Finding | None:
        """The first finding, or None."""
        return self.findings[0] if self.findings else None


def iso(time_ns: int) -> str:
    """ISO 8601 in UTC with a Z, to the second.

    >>> iso(1_700_000_000_000_000_000)
    '2023-11-14T22:13:20Z'
    """
    return datetime.fromtimestamp(time_ns // 1_000_000_000, tz=UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
