"""Events that a log tells of, each line one that was written down; a hypervisor's are counted within ten minutes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows, sample_bounds
from leadline.estate.language.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, SLOW_DEVICE, WAITS_FOR_DEVICE

if TYPE_CHECKING:
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity

OFTEN = Threshold(3.0, "count", "Judgement: fewer lines are a single event")
GAP = Threshold(600.0, "s", "Judgement: lines ten minutes apart are one trouble")


@dataclass(frozen=True, slots=True)
class Occurrences:
    """The events of an entity: how many each sample with any counts, and its window."""

    group: SeriesGroup
    entity: Entity
    counts: tuple[float, ...]
    windows: tuple[Window, ...]

    @property
    def total(self) -> int:
        """How many there are."""
        return round(sum(self.counts))

    def most_within(self, windows: tuple[Window, ...]) -> int:
        """How many there are in the one of some windows that has most."""
        pairs = list(zip(self.windows, self.counts, strict=True))
        return max(round(sum(c for w, c in pairs if one.start_ns <= w.start_ns < one.end_ns)) for one in windows)


def occurrences(context: RuleContext, metric: str, kind: EntityKind) -> Iterator[Occurrences]:
    """The events of each entity that has any, from their rate per second."""
    for group in context.of(metric, kind):
        starts, ends = sample_bounds(group)
        for entity, rates in zip(group.entities, group.values, strict=True):
            counts = np.nan_to_num(rates) * (ends - starts) / 1e9
            places = np.flatnonzero(counts > 0).tolist()
            if places:
                windows = tuple(Window(int(starts[place]), int(ends[place])) for place in places)
                yield Occurrences(group, entity, tuple(counts[places].tolist()), windows)


def logged_meta(code: str, metric: str, layer: Layer = Layer.STORAGE_PATH) -> RuleMeta:
    """META of a rule about lines of a host's log, each of which tells of commands that were not carried out."""
    return RuleMeta(
        code=code,
        layer=layer,
        severity=Severity.HIGH,
        causes=("disk-stalled",),
        needs=(metric,),
        thresholds={"often": OFTEN, "gap": GAP},
        explains=(*SLOW_DEVICE, *WAITS_FOR_DEVICE, *GUEST_AND_DATABASE_WAIT_FOR_DISK),
        clears=False,
        examines="disks",
    )


def logged(context: RuleContext, metric: str, kind: EntityKind, says: str) -> Iterator[Finding]:
    """A finding per entity; high where three lines or more came within ten minutes, else medium.

    Args:
        context: of the rule.
        metric: events per second.
        kind: whose.
        says: the summary, with {where} and {times}.
    """
    gap_s, often = context.stated_limit("gap"), context.stated_limit("often")
    for events in occurrences(context, metric, kind):
        windows = joined_windows(events.windows, gap_s)
        most, total, name = events.most_within(windows), events.total, events.entity.label()
        line = f"{name}: {several(total, 'event')} in the host's log, up to {most} within ten minutes"
        yield context.finding(
            events.entity,
            says.format(where=name, times="once" if total == 1 else f"{total} times"),
            [
                Evidence(
                    line,
                    metric=metric,
                    entity=events.entity,
                    statistic="sum",
                    value=float(total),
                    threshold=often,
                    unit="count",
                    source=context.source_name(events.group),
                )
            ],
            severity=Severity.HIGH if most >= often else Severity.MEDIUM,
            windows=windows,
            score=min(most / often, SCORE_MAX),
        )
