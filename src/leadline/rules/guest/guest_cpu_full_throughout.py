"""A guest's CPUs were in use in all of a recording that is too short to call it lasting.

Finds:
    More than 90 % of a guest's CPUs in use (user and system, stolen time not counted) in each sample of a recording of
    4 to 30 s.

Why:
    People paste a report or two of a tool while it is slow. When the CPUs are full in all of them, work queues for
    them, whatever the disks do.

Do:
    Record a few minutes (vmstat -w -t 1 300), which tells a burst from a lasting state, and what uses the CPU: pidstat
    1, or the statements by total time.

When it is wrong:
    A few seconds may be a burst, or the moment when somebody ran a command.

Sources:
    vmstat(8), iostat(1): the reports' CPU line is of the interval before it.
    Judgement: 90 % of each sample is full; 30 s or more are for the rule of CPU usage, which asks for less.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.series import places_by_entity
from leadline.estate.language.templates import Minus, Over, over_threshold

_BUSY = "guest_cpu_busy_pct"
_NS_PER_S = 1e9

META = RuleMeta(
    code="GST188",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=(_BUSY,),
    uses=("guest_cpu_steal_pct",),
    thresholds={
        "warn": Threshold(90.0, "pct", "Judgement: full"),
        "duration": Threshold(4.0, "s", "Judgement: a report of a few seconds, as people paste them"),
        "short": Threshold(30.0, "s", "Judgement: from there on the rule of CPU usage judges"),
    },
    clears=False,
    judgement=True,
    examines="CPU",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest whose recording is short."""
    says = "{noun} {value} on {where} in all of a short recording (limit {limit})"
    kinds = (EntityKind.GUEST,)
    value = Minus(("guest_cpu_steal_pct",))
    spec = Over(_BUSY, "CPU usage", kinds, value=value, keep=_is_full_throughout, says=says)
    yield from over_threshold(context, spec)


def _is_full_throughout(context: RuleContext, entity: Entity) -> bool:
    """Whether all samples of a guest are beyond the limit, and cover less than the rule of CPU usage asks for."""
    for group, row in context.table(places_by_entity, _BUSY).get(entity, ()):
        values = group.values[row]
        span_s = float(group.times_ns[-1] - group.times_ns[0]) / _NS_PER_S + group.interval_s
        measured = values[~np.isnan(values)]
        if span_s >= context.limit("short") or not (measured > context.limit("warn")).all():
            return False
    return True
