"""What a rule finds for longer than a live window holds: a value that can be stored and taken up again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import Severity
from leadline.estate.arithmetic.episodes import joined_windows

if TYPE_CHECKING:
    from leadline.core.model.finding import Finding


@dataclass(frozen=True, slots=True)
class Ongoing:
    """The episodes of one rule on one entity, from the first on.

    Attributes:
        windows: when its condition held, in order of time, apart by more than the gap they were joined with.
        severity: the highest so far.
        score: of the worst moment so far, as `Finding.score`.
        summary: as the last finding says it.
    """

    rule: str
    entity: Entity
    windows: tuple[Window, ...]
    severity: Severity
    score: float
    summary: str

    @classmethod
    def of(cls, finding: Finding) -> Ongoing:
        """The state after the first finding."""
        return cls(finding.rule, finding.entity, finding.windows, finding.severity, finding.score, finding.summary)

    def taken_up(self, finding: Finding, gap_s: float) -> Ongoing:
        """The state after a further finding of the same rule and entity, whose window has moved on.

        Args:
            finding: its windows may repeat the end of those that are known.
            gap_s: windows that are as near to each other are one.
        """
        return replace(
            self,
            windows=joined_windows((*self.windows, *finding.windows), gap_s),
            severity=max(self.severity, finding.severity),
            score=max(self.score, finding.score),
            summary=finding.summary,
        )

    def is_over(self, time_ns: int, gap_s: float) -> bool:
        """Whether its condition has not held for longer than the gap; what has no window holds while it is found."""
        return bool(self.windows) and time_ns - self.windows[-1].end_ns > gap_s * 1e9

    def to_plain(self) -> dict[str, Any]:
        """Plain data that `from_plain` reads."""
        return {
            "rule": self.rule,
            "entity": str(self.entity),
            "windows": [[window.start_ns, window.end_ns] for window in self.windows],
            "severity": int(self.severity),
            "score": self.score,
            "summary": self.summary,
        }

    @classmethod
    def from_plain(cls, plain: Mapping[str, Any]) -> Ongoing:
        """The state that was stored.

        Raises:
            KeyError, ValueError: the data is not that of `to_plain`.
        """
        windows = tuple(Window(int(start), int(end)) for start, end in plain["windows"])
        entity, severity = Entity.parse(plain["entity"]), Severity(plain["severity"])
        return cls(plain["rule"], entity, windows, severity, float(plain["score"]), plain["summary"])
