"""Incidents: when it was bad, what was felt, and what the rest of the recording, the normal, is compared with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.metrics import metric
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Better

WORSE_MAX = 1000.0  # a standstill has no ratio; this stands for it


class Basis(StrEnum):
    """How an incident came to be known."""

    FELT = "felt"  # users' throughput, latency or waiting sessions changed
    WAITED = "waited"  # nothing users feel was recorded; what waits changed
    TOLD = "told"  # its time was given


def _finite(value: float) -> float | None:
    return float(value) if math.isfinite(value) else None


@dataclass(frozen=True, slots=True)
class Change:
    """What one series did inside an incident and outside it.

    Attributes:
        normal: what it was outside, in the metric's unit: the mean of what is counted, the median of a level.
        during: what it was inside.
        noise: what single samples differ by outside, as a standard deviation (1.4826 x median absolute deviation).
        share: how much of the series' variance parting it at the incident's ends explains, 0 to 1, by ranks.
    """

    entity: Entity
    metric: str
    unit: str
    normal: float
    during: float
    noise: float
    share: float

    @property
    def ratio(self) -> float:
        """During by normal; inf where it was zero before, 1 where both are zero."""
        if self.normal == 0.0:
            return 1.0 if self.during == 0.0 else float("inf")
        return self.during / self.normal

    @property
    def worsening(self) -> float:
        """How many times worse it was inside than outside."""
        ratio = self.ratio
        if metric(self.metric).better is Better.HIGH:
            return 1.0 / ratio if ratio > 0 else float("inf")
        return ratio

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; a ratio to zero and what is not known are null."""
        return {
            "entity": str(self.entity),
            "metric": self.metric,
            "unit": self.unit,
            "normal": _finite(self.normal),
            "during": _finite(self.during),
            "noise": _finite(self.noise),
            "ratio": _finite(self.ratio),
            "share": round(self.share, 3),
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Change:
        """The change of which `to_dict` gave the plain data."""
        levels = {name: plain[name] for name in ("normal", "during", "noise", "share")}
        known = {name: float("nan") if level is None else float(level) for name, level in levels.items()}
        return cls(Entity.parse(plain["entity"]), plain["metric"], plain["unit"], **known)

    def __str__(self) -> str:
        return f"{show(self.normal, self.unit)} to {show(self.during, self.unit)}"


@dataclass(frozen=True, slots=True)
class Incident:
    """A span of time in which it was worse than in the rest of the recording.

    Attributes:
        window: from the first bad sample to the last.
        normal: what it is compared with; spans in which nobody asked for anything belong to neither.
        symptoms: what was felt, the clearest first.
    """

    window: Window
    normal: tuple[Window, ...]
    basis: Basis
    symptoms: tuple[Change, ...] = ()

    @property
    def badness(self) -> float:
        """What it cost users: its seconds, by how many times worse it was."""
        worse = max((symptom.worsening for symptom in self.symptoms), default=1.0)
        return self.window.duration_s * min(worse, WORSE_MAX)

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            **self.window.to_dict(),
            "normal": [window.to_dict() for window in self.normal],
            "basis": self.basis.value,
            "symptoms": [symptom.to_dict() for symptom in self.symptoms],
        }
