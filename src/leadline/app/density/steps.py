"""Which count of instances is measured next, and what the counts say together: how many fit."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from leadline.app.density.model import CountLevel, CountState
from leadline.core.model.errors import UsageError

COUNT_MAX = 4096  # Judgement: processes on one machine, beyond which it measures itself


@dataclass(frozen=True, slots=True)
class StepRule:
    """From ``start`` by ``growth`` (2: doubling; 1: by ``step``) until broken or ``most``, then bisect to ``step``."""

    start: int = 1
    step: int = 1
    growth: float = 2.0
    most: int = 64

    def check(self) -> None:
        """Refuse a rule that leads nowhere.

        Raises:
            UsageError: a count is below 1, the start above the most, or the growth below 1.
        """
        if not 1 <= self.start <= self.most <= COUNT_MAX or self.step < 1 or not 1.0 <= self.growth <= 16.0:
            raise UsageError(
                "--start, --step, --growth and --max",
                found=f"{self.start}, {self.step}, {self.growth:g} and {self.most}",
                expected=f"1 <= start <= max <= {COUNT_MAX}, a step of at least 1, a growth of 1 to 16",
                advice="For example --start 4 --max 64.",
            )


@dataclass(frozen=True, slots=True)
class Edges:
    """The counts that bound the answer.

    Attributes:
        last_held: the highest that surely held; 0 when none did.
        first_bad: the lowest above it that did not surely hold, or None.
        last_unsure: the highest of which it cannot be told, below ``broke``, or None.
        broke: the lowest above ``last_held`` that surely broke (or could not run), or None.
    """

    last_held: int
    first_bad: int | None
    last_unsure: int | None
    broke: int | None


def edges_of(states: Mapping[int, CountState]) -> Edges:
    """What the counts measured so far say."""
    last_held = max((count for count, state in states.items() if state is CountState.HELD), default=0)
    broken = (c for c, s in states.items() if s in (CountState.BROKE, CountState.FAILED) and c > last_held)
    broke = min(broken, default=None)
    unsure = [c for c, s in states.items() if s is CountState.UNSURE and c > last_held and (broke is None or c < broke)]
    first_bad = min([*unsure, *([] if broke is None else [broke])], default=None)
    return Edges(last_held, first_bad, max(unsure, default=None), broke)


def next_count(states: Mapping[int, CountState], rule: StepRule) -> int | None:
    """The count to measure next, or None when the answer is as close as the step allows.

    First upwards until one surely breaks; then the gap below the first that did not hold is halved, and the gap
    between the last of which it cannot be told and the first that broke.
    """
    if not states:
        return rule.start
    edges, top = edges_of(states), max(states)
    if edges.broke is None and top < rule.most:
        return min(rule.most, max(top + rule.step, math.ceil(top * rule.growth)))
    gaps = [(edges.last_held, edges.first_bad), (edges.last_unsure, edges.broke)]
    for low, high in gaps:
        if low is not None and high is not None and high - low > rule.step:
            return low + rule.step * max((high - low) // (2 * rule.step), 1)
    return None


def count_most(rule: StepRule) -> int:
    """The most counts that are measured when every one can be told: upwards, then by halves in the widest gap."""
    upwards = [0, rule.start]
    while upwards[-1] < rule.most:
        upwards.append(min(rule.most, max(upwards[-1] + rule.step, math.ceil(upwards[-1] * rule.growth))))
    widest = max(high - low for low, high in pairwise(upwards))
    return len(upwards) - 1 + math.ceil(math.log2(max(widest / rule.step, 1.0)))


@dataclass(frozen=True, slots=True)
class FitRange:
    """How many fit: at least ``last_held`` and, when one surely broke, fewer than ``broke``."""

    edges: Edges
    most: int
    sentence: str

    @property
    def last_held(self) -> int:
        """The last count that surely held."""
        return self.edges.last_held

    @property
    def bounds(self) -> tuple[int, float]:
        """The fewest and the most that may fit; infinite when none broke."""
        return self.last_held, math.inf if self.edges.broke is None else self.edges.broke - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        edges = self.edges
        return {
            "held": edges.last_held,
            "first_bad": edges.first_bad,
            "last_unsure": edges.last_unsure,
            "broke": edges.broke,
            "max": self.most,
            "sentence": self.sentence,
        }


def answer(levels: Sequence[CountLevel], rule: StepRule, *, whole: bool = True) -> FitRange:
    """The answer with its uncertainty; ``whole`` is False when the search was ended before its time."""
    states = {level.count: level.state for level in levels}
    edges = edges_of(states)
    sentence = _fit(edges, rule)
    by_count = {level.count: level for level in levels}
    if edges.last_unsure is not None:
        unsure = sorted(c for c, s in states.items() if s is CountState.UNSURE and c > edges.last_held)
        reasons = by_count[unsure[0]].reasons
        sentence += f" At {_listed(unsure)} the result is open{_because(reasons)}: measure longer."
    if edges.broke is not None:
        broken = by_count[edges.broke]
        verb = "could not run" if broken.state is CountState.FAILED else "it broke"
        sentence += f" At {edges.broke} {verb}{_because(broken.reasons)}."
        hidden = [part for part in broken.clauses if part.hidden_by_pooling and part.unit == "ms"]
        if hidden:
            part = hidden[0]
            sentence += f" The pooled {broken.latency_name} of {part.pooled:.4g} ms would have hidden it."
    if not whole:
        sentence += " The search was ended before its time."
    return FitRange(edges, rule.most, sentence)


def _fit(edges: Edges, rule: StepRule) -> str:
    count, broke = edges.last_held, edges.broke
    if broke is None and edges.first_bad is None:
        if count == 0:
            return "Nothing was measured."
        end = f", the most asked for; nothing broke up to {count}" if count >= rule.most else "; nothing broke so far"
        return f"At least {counted(count)} fit{'s' if count == 1 else ''}{end}."
    if broke is None:
        return f"At least {counted(count)} fit; none surely broke." if count else "It cannot be told how many fit."
    if broke == count + 1:
        if count == 0:
            return "Not even one instance fits."
        verb = "fits" if count == 1 else "fit"
        return f"{counted(count)} {verb}: every one had its service level at {count}, not at {broke}."
    return f"Between {count} and {broke - 1} instances fit: {count} surely held, {broke} surely broke."


def counted(count: int) -> str:
    """``1 instance``, ``2 instances``."""
    return f"{count} instance{'s' if count != 1 else ''}"


def _listed(counts: Sequence[int]) -> str:
    *first, last = map(str, counts)
    return f"{', '.join(first)} and {last}" if first else last


def _because(reasons: Sequence[str]) -> str:
    return f" ({'; '.join(reasons)})" if reasons else ""
