"""vCenter keeps too few counters to see where latency arises.

Finds:
    Clusters whose shortest roll-up interval in vCenter has a statistics level below 2.

Why:
    At level 1 vCenter keeps sums per VM and host. Latency per device, queueing in the kernel, and what each virtual
    disk does are thrown away after the last hour, and yesterday's incident cannot be examined any more.

Do:
    Raise the level of the five-minute interval to 2 (3 for per-device counters) for the days you investigate, after a
    look at the free space of vCenter's database. Better: collect real-time samples into a store of your own.

When it is wrong:
    Where something else collects the counters in real time, vCenter's own history does not matter.

Sources:
    VMware vSphere performance counters: level of each counter. VMware vSphere Monitoring and Performance, data
    collection levels.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import duration
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

META = RuleMeta(
    code="HST174",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("cluster.statistics_levels",),
    thresholds={"warn": Threshold(2.0, "count", "VMware vSphere performance counters: level of latency counters")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    for cluster in context.inventory.of_kind(EntityKind.CLUSTER):
        fact = context.inventory.fact(cluster, "statistics_levels")
        levels = {} if fact is None else _numbers(fact.value)
        if fact is None or not levels:
            continue
        shortest = min(levels)
        level = levels[shortest]
        if level >= context.limit("warn"):
            continue
        statement = f"statistics level of the {duration(shortest)} interval is {level:g}"
        evidence = Evidence(
            statement, entity=cluster, value=level, threshold=context.limit("warn"), unit="count", source=fact.source
        )
        yield context.finding(cluster, f"{cluster.label()}: {statement}; device latency is not kept", [evidence])


def _numbers(levels: dict[str, object]) -> dict[float, float]:
    """Interval in seconds to level; entries that are no numbers are left out."""
    level_by_interval = {}
    for interval, level in levels.items():
        try:
            level_by_interval[float(interval)] = float(str(level))
        except ValueError:
            continue
    return level_by_interval
