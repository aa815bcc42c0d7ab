"""Power: what a rule that found nothing could have seen in a recording."""

from __future__ import annotations

from dataclasses import dataclass
from math import isfinite
from typing import Any

from leadline.core.model.vocabulary import Layer

SLACK = 0.95  # Judgement: of a duration; samples of a second are often a few milliseconds shorter


@dataclass(frozen=True, slots=True)
class Power:
    """What a rule could see.

    Attributes:
        rule: its name.
        layer: what it looks at.
        part: the part of the layer, as `RuleMeta.examines`.
        recorded_s: seconds over which what it needs was measured; inf where it needs settings only.
        needed_s: seconds for which its condition must hold; 0 where any sample will do.
        can_clear: finding nothing in a recording that is long enough means that there is nothing.
        is_since_boot: there is one report of what it needs, and it may be an average since boot.
    """

    rule: str
    layer: Layer
    part: str
    recorded_s: float
    needed_s: float
    can_clear: bool
    is_since_boot: bool = False

    @property
    def is_alone(self) -> bool:
        """Whether there is one sample only, of an interval that is not known."""
        return self.is_since_boot or self.recorded_s == 0.0

    @property
    def is_short(self) -> bool:
        """Whether the recording is shorter than what the rule needs."""
        return self.is_alone or self.recorded_s < SLACK * self.needed_s

    @property
    def clears(self) -> bool:
        """Whether finding nothing clears what it looks at."""
        return self.can_clear and not self.is_short

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``; a length without an end is null."""
        return {
            "rule": self.rule,
            "recorded_s": round(self.recorded_s, 3) if isfinite(self.recorded_s) else None,
            "needed_s": self.needed_s,
            "clears": self.clears,
        }
