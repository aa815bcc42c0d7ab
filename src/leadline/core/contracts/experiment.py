"""Experiments: published figures beside what Leadline gets for them.

A unit of ``experiments/`` is one file named after the figure, with ``META`` and ``reproduce``:

``reproduce(simulated) -> Findings``
    Computes or simulates, and puts what came out beside what was published. ``simulated`` runs a scenario given as
    the data of its file and returns its `leadline.core.contracts.scenario.Outcome`. Deterministic, without the network.

The unit's docstring carries the headings *Setup, Run, Limits*. Parameters come from the published setup, from data
sheets, or from ``calibrated`` comparisons, which never count as reproduced: at least one other must. Values of several
figures of one system are the same constants, in one file.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite, nan
from typing import Any, Literal, Protocol

from leadline.core.contracts.scenario import Outcome
from leadline.core.model.picture import Picture

EXACT_TOLERANCE = 0.005  # rounding to three digits, as published numbers have
Kind = Literal["exact", "numeric", "ordering"]
Way = Literal["arithmetic", "simulation", "real"]
Simulated = Callable[[Mapping[str, Any]], Outcome]


class FigureVerdict(StrEnum):
    """What became of a published figure."""

    REPRODUCED = "reproduced"
    DIRECTION_ONLY = "direction only"
    NOT_REPRODUCED = "not reproduced"


@dataclass(frozen=True, slots=True)
class ExperimentMeta:
    """A published figure.

    Attributes:
        claim: what was published, in our words.
        source: where, for people to look it up.
        verified: how the figure was read: in the source itself, in another text that quotes it, or derived from it.
        kind: exact, numeric (within ``tolerance``) or ordering (what is larger, what grows).
        by: how this experiment gets its values.
        tolerance: relative.
        calibrated: on which published point parameters were set; empty for none.
        adjusted: what else was chosen after its own result had been seen; empty for nothing. Such a figure counts for
            its direction at most.
    """

    claim: str
    source: str
    verified: Literal["read", "second", "derived"]
    kind: Kind
    by: tuple[Way, ...]
    tolerance: float = EXACT_TOLERANCE
    calibrated: str = ""
    adjusted: str = ""


@dataclass(frozen=True, slots=True)
class Published:
    """A published value, or range of values, and what came out; ``is_calibrated`` where a parameter was set by it."""

    name: str
    published: float | tuple[float, float]
    found: float
    unit: str = ""
    is_calibrated: bool = False

    @property
    def error(self) -> float:
        """Relative distance of what came out from what was published, signed; of a range from its nearer bound."""
        low, high = self.published if isinstance(self.published, tuple) else (self.published, self.published)
        nearest = min(max(self.found, low), high) if isfinite(self.found) else nan
        if self.found == nearest:
            return 0.0
        return (self.found - nearest) / abs(nearest) if nearest else nan

    def is_within(self, tolerance: float) -> bool:
        """Whether it is near enough; what is not measured is not."""
        return abs(self.error) <= tolerance


@dataclass(frozen=True, slots=True)
class Statement:
    """A published direction or ordering as a statement, and whether it holds; ``evidence`` has the numbers."""

    statement: str
    holds: bool
    evidence: str


@dataclass(frozen=True, slots=True)
class Findings:
    """What came out. ``why`` tells in a sentence why something was not reproduced, or what the model leaves out."""

    comparisons: tuple[Published, ...] = ()
    checks: tuple[Statement, ...] = ()
    picture: Picture | None = None
    why: str = ""


class Experiment(Protocol):
    """The type of a unit of ``experiments/``."""

    META: ExperimentMeta

    def reproduce(self, simulated: Simulated) -> Findings:
        """Put what comes out beside what was published."""


VERIFIED = {
    "read": "read in the source",
    "second": "from a text that quotes the source",
    "derived": "follows from the source by arithmetic",
}


def told_of(name: str, meta: ExperimentMeta) -> dict[str, str]:
    """What is known of a figure before it is reproduced; the verdict is made anew each time."""
    near = "the ordering must hold" if meta.kind == "ordering" else f"within {100.0 * meta.tolerance:g} %"
    return {
        "claim": meta.claim,
        "source": f"{meta.source} ({VERIFIED[meta.verified]})",
        "counts as reproduced": f"{meta.kind}: {near}",
        "by": " and ".join(meta.by),
        "calibrated": meta.calibrated,
        "verdict": f"made anew by `leadline reproduce {name}`",
    }


def verdict(meta: ExperimentMeta, findings: Findings) -> FigureVerdict:
    """Whether the findings reproduce the claim of an experiment.

    Reproduced: every check holds, and every comparison that was not calibrated is within the tolerance; there is at
    least one of either, and nothing was adjusted. Direction only: numbers are off, every check holds, and there is one.

    >>> meta = ExperimentMeta("a limit of 200", "a blog", "read", "numeric", ("arithmetic",), tolerance=0.05)
    >>> verdict(meta, Findings((Published("latency", 580.0, 590.0, "ms"),)))
    <FigureVerdict.REPRODUCED: 'reproduced'>
    >>> verdict(meta, Findings((Published("latency", 580.0, 580.0, "ms", is_calibrated=True),)))
    <FigureVerdict.NOT_REPRODUCED: 'not reproduced'>
    """
    predicted = [comparison for comparison in findings.comparisons if not comparison.is_calibrated]
    all_hold = all(check.holds for check in findings.checks)
    near = all(comparison.is_within(meta.tolerance) for comparison in predicted)
    if all_hold and near and (predicted or findings.checks) and not meta.adjusted:
        return FigureVerdict.REPRODUCED
    if all_hold and findings.checks:
        return FigureVerdict.DIRECTION_ONLY
    return FigureVerdict.NOT_REPRODUCED
