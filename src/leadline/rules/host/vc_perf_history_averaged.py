"""A host is known by averages over five minutes or more only.

Finds:
    Hosts (VMs where the host is not known) whose every recorded counter of CPU, disk and memory stands for 300 s or
    more per sample.

Why:
    What hurts a database lasts seconds. A minute at 100 ms of disk latency within an hour at 1 ms is an average of
    under 3 ms: nothing exceeds any limit, and a rule that finds nothing has examined nothing.

Do:
    Record again while it is slow: esxtop in batch mode (`esxtop -b -a -d 5 -n 120`), or collect vCenter's real-time
    samples of 20 s into a store of your own before they are rolled up to 300, 1800, 7200 and 86400 s.

When it is wrong:
    For capacity over weeks averages are the right thing. It is about the recording, not the host: what was found in
    averages is all the more certain.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): tools that keep data
    without averaging. VMware vSphere performance counters: intervals of the roll-ups.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import duration
from leadline.core.model.vocabulary import EntityKind, Layer, Severity

_METRICS = (
    "cpu_ready_pct",
    "cpu_used_pct",
    "cpu_costop_pct",
    "host_cpu_util_pct",
    "host_cpu_core_util_pct",
    "host_memory_free_mib",
    "memory_consumed_mib",
    "disk_device_latency_ms",
    "disk_guest_latency_ms",
    "virtual_disk_latency_ms_read",
    "virtual_disk_latency_ms_write",
    "datastore_latency_ms",
)

META = RuleMeta(
    code="HST173",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("|".join(_METRICS),),
    thresholds={"warn": Threshold(300.0, "s", "VMware vSphere performance counters: the first roll-up")},
    clears=False,  # a fine recording says nothing of the host
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host; one fine recording of it is enough to stay quiet."""
    finest: dict[Entity, SeriesGroup] = {}
    groups = [group for metric in _METRICS for group in context.of(metric)]
    if any(group.interval_s >= context.limit("warn") for group in groups):
        for group in groups:
            for owner in {_owner(entity) for entity in group.entities if not isnan(group.interval_s)}:
                if owner is not None and (owner not in finest or group.interval_s < finest[owner].interval_s):
                    finest[owner] = group
    for owner, group in finest.items():
        if group.interval_s >= context.limit("warn"):
            evidence = Evidence(
                f"the shortest interval recorded of {owner.label()} is {duration(group.interval_s)}",
                metric=group.metric,
                entity=owner,
                value=group.interval_s,
                threshold=context.limit("warn"),
                unit="s",
                source=context.source_name(group),
            )
            summary = f"{owner.label()} was recorded in averages over {duration(group.interval_s)} only"
            yield context.finding(owner, summary, [evidence])


def _owner(entity: Entity) -> Entity | None:
    return entity.ancestor(EntityKind.HOST) or entity.ancestor(EntityKind.VM)
