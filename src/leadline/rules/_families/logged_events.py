"""Events that a hypervisor's log tells of, counted within ten minutes: each line is one that was written down."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.episodes import joined_windows, sample_bounds
from leadline.estate.templates import SCORE_MAX
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK, SLOW_DEVICE, WAITS_FOR_DEVICE

OFTEN = Threshold(3.0, "count", "Judgement: fewer lines are a single event")
GAP = Threshold(600.0, "s", "Judgement: lines ten minutes apart are one trouble")


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
    for group in context.of(metric, kind):
        starts, ends = sample_bounds(group)
        lengths_s = (ends - starts) / 1e9
        for row, entity in enumerate(group.entities):
            counts = np.nan_to_num(group.values[row]) * lengths_s
            places = np.flatnonzero(counts > 0).tolist()
            if not places:
                continue
            windows = joined_windows([Window(int(starts[i]), int(ends[i])) for i in places], gap_s)
            sums = [float(counts[(ends > w.start_ns) & (ends <= w.end_ns)].sum()) for w in windows]
            most, total = round(max(sums)), round(sum(sums))
            events = f"{several(total, 'event')} in the host's log, up to {most} within ten minutes"
            yield context.finding(
                entity,
                says.format(where=entity.label(), times="once" if total == 1 else f"{total} times"),
                [
                    Evidence(
                        f"{entity.label()}: {events}",
                        metric=group.metric,
                        entity=entity,
                        statistic="sum",
                        value=float(total),
                        threshold=often,
                        unit="count",
                        source=context.source_name(group),
                    )
                ],
                severity=Severity.HIGH if most >= often else Severity.MEDIUM,
                windows=windows,
                score=min(most / often, SCORE_MAX),
            )
