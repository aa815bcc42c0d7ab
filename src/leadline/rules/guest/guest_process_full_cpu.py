"""A program computes as fast as one processor lets it.

Finds:
    A program that used 90 % of a CPU or more, and less than 110 %, for at least 10 s, where the use of all CPUs was not
    recorded.

Why:
    A thread runs on one CPU at a time. A program that does its work in one thread, as a query or a replication applier
    does, is as fast as that CPU and no faster, however idle the others are; it waits for no disk meanwhile.

Do:
    Find out what it computes: the statement with most CPU time, its plan, `perf top -p PID`. A faster CPU or fewer rows
    to look at help, more CPUs do not. Record `mpstat -P ALL 1` beside it to see whether the CPUs were full.

When it is wrong:
    Several threads that add up to one CPU look the same: `pidstat -t` tells. A batch that nobody waits for may compute.

Sources:
    pidstat(1): %CPU is of one CPU.
    Judgement: 90 to 110 % for 10 s is one thread that computes all the time.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.series import places_by_entity
from leadline.estate.language.templates import Over, over_threshold

_USED = "process_cpu_pct"

META = RuleMeta(
    code="GST169",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=(_USED,),
    uses=("guest_cpu_busy_pct",),
    thresholds={
        "warn": Threshold(90.0, "pct", "Judgement: one thread that computes all the time"),
        "most": Threshold(110.0, "pct", "Judgement: more is several threads"),
        "duration": Threshold(10.0, "s", "Judgement: more than a burst"),
    },
    clears=False,
    is_wait=True,
    judgement=True,
    examines="CPU",
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per program, where nothing tells of all CPUs."""
    if any(True for _ in context.of("guest_cpu_busy_pct")):
        return
    says = "{where} computed as fast as one CPU lets it: {value} of a CPU"
    spec = Over(_USED, "CPU use", (EntityKind.PROCESS,), says=says, keep=_of_one_thread)
    yield from over_threshold(context, spec)


def _of_one_thread(context: RuleContext, entity: Entity) -> bool:
    most = context.limit("most")
    places = context.table(places_by_entity, _USED).get(entity, ())
    return all(not (group.values[row] > most).any() for group, row in places)
