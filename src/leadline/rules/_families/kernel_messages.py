"""What a Linux kernel logged, as findings: how often, when, and the messages themselves as evidence."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.events import events_of
from leadline.core.model.finding import Evidence, Finding, Window, iso
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.language.templates import SCORE_MAX

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

_GAP_S = 120.0  # Judgement: the kernel limits what it logs, and repeats what lasts every two minutes
_SHOWN_MAX = 4
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class Logged:
    """What was logged of an entity.

    Attributes:
        count: messages; of what is no rate, the highest value.
        seconds: how long it lasted in sum, by the samples in which it was.
        texts: the messages that were kept of it, in order of time.
    """

    entity: Entity
    count: float
    seconds: float
    texts: tuple[str, ...]


def logged(
    context: RuleContext,
    metric: str,
    events: Collection[str],
    says: Callable[[Logged], tuple[str, Severity]],
    noun: str,
) -> Iterator[Finding]:
    """Findings of each entity of which the kernel logged something.

    Args:
        context: of the rule, whose limit ``warn`` is what a sample must be above.
        metric: counts the messages, or says in which time something was so.
        events: kinds of the events that are shown.
        says: the summary, and how severe it is.
        noun: what is counted, for the evidence.
    """
    for group in context.of(metric):
        for row, entity in enumerate(group.entities):
            with np.errstate(invalid="ignore"):
                places = np.flatnonzero(group.values[row] > context.limit("warn")).tolist()
            if places:
                yield _finding(context, (group, row, entity), places, (events, says, noun))


def _finding(
    context: RuleContext,
    series: tuple[SeriesGroup, int, Entity],
    places: list[int],
    how: tuple[Collection[str], Callable[[Logged], tuple[str, Severity]], str],
) -> Finding:
    (group, row, entity), (events, says, noun) = series, how
    starts, ends = sample_bounds(group)
    values = group.values[row][places].astype(np.float64)
    lengths = (ends[places] - starts[places]) / _NS_PER_S
    count = float(np.sum(values * lengths)) if group.unit == "per_s" else float(np.max(values))
    windows = joined_windows([Window(int(starts[place]), int(ends[place])) for place in places], _GAP_S)
    kept = _texts(context, entity, events, windows)
    seconds = float(np.sum(lengths * np.minimum(values / 100.0, 1.0) if group.unit == "pct" else lengths))
    summary, severity = says(Logged(entity, count, seconds, tuple(text for _, text in kept)))
    first_at, last_at = iso(windows[0].start_ns), iso(windows[-1].end_ns)
    first = Evidence(
        f"{several(round(count), noun)} of {entity.label()} in the kernel's log, the first at {first_at}"
        if group.unit == "per_s"
        else f"{noun} of {entity.label()}: from {first_at} to {last_at}",
        metric=group.metric,
        entity=entity,
        statistic="sum" if group.unit == "per_s" else "max",
        value=count,
        threshold=context.limit("warn"),
        unit="count" if group.unit == "per_s" else group.unit,
        source=context.source_name(group),
    )
    shown = list(dict.fromkeys(text for _, text in kept))
    messages = [
        Evidence(f"{next(iso(when) for when, known in kept if known == text)}: {text}") for text in shown[:_SHOWN_MAX]
    ]
    more = [Evidence(f"and {several(len(shown) - _SHOWN_MAX, 'other message')}")] if len(shown) > _SHOWN_MAX else []
    return context.finding(
        entity,
        summary,
        [first, *messages, *more],
        severity=severity,
        windows=windows,
        score=min(max(count, 1.0), SCORE_MAX),
    )


def _texts(
    context: RuleContext, entity: Entity, kinds: Collection[str], windows: tuple[Window, ...]
) -> list[tuple[int, str]]:
    """The messages of a machine in some windows, or those of one of its disks, with their times."""
    guest = entity.ancestor(EntityKind.GUEST)
    known = [] if guest is None else events_of(context.inventory, guest, kinds)
    return [
        (event.time_ns, event.text)
        for event in known
        if (entity == guest or entity.name in event.text)
        and any(window.start_ns - _NS_PER_S <= event.time_ns <= window.end_ns + _NS_PER_S for window in windows)
    ]
