"""A host uses so much of its memory that it cannot take over VMs of a failed one.

Finds:
    Memory in use above 85 % (low) or 95 % (medium) of a host's memory for at least 5 minutes.

Why:
    When a host fails its VMs start on the others. A host that is almost full takes them in by ballooning and
    swapping, at the worst possible moment. Databases that reserve their memory are not even started.

Do:
    Add memory or hosts until one host of the cluster can fail at peak, or move VMs. Turn on admission control so that
    the reserve is kept.

When it is wrong:
    Memory in use is what guests have ever touched; their file caches count. It is not a shortage as long as the
    host's free-memory state is high. One host that is not part of a cluster takes nobody over. A capture of minutes
    does not show the peak of the month.

Sources:
    vCheck for vSphere: memory usage of hosts. Performance Best Practices for VMware vSphere: leave room for failover.
    Judgement: 85 % and 95 %, and 5 minutes so that a VM that is just moving does not count.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.capture import SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_groups

META = RuleMeta(
    code="MEM138",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.MEDIUM,
    needs=("host_memory_used_pct|host_memory_free_mib",),
    uses=("host_memory_machine_mib",),
    thresholds={
        "warn": Threshold(85.0, "pct", "Judgement: room for the VMs of a failed host"),
        "crit": Threshold(95.0, "pct", "Judgement: next to nothing left"),
        "duration": Threshold(300.0, "s", "Judgement: longer than a VM takes to move"),
    },
    clears=False,
    judgement=True,
)

_SPEC = Over("host_memory_used_pct", "memory in use", kinds=(EntityKind.HOST,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from over_groups(context, _used(context), _SPEC)


def _used(context: RuleContext) -> Iterator[SeriesGroup]:
    """Memory in use of hosts, per cent [k, n]: as reported, else from free and installed memory."""
    reported: set[Entity] = set()
    for group in context.of("host_memory_used_pct", EntityKind.HOST):
        reported.update(group.entities)
        yield group
    for group in context.of("host_memory_free_mib", EntityKind.HOST):
        rows = [row for row, host in enumerate(group.entities) if host not in reported]
        if not rows:
            continue
        free = group.take(rows)
        facts = [context.inventory.get(host, "memory_mib") for host in free.entities]
        machine = np.array([np.nan if fact is None else float(fact) for fact in facts])[:, np.newaxis]
        measured = context.aligned(free, "host_memory_machine_mib")
        if measured is not None:
            machine = np.where(np.isfinite(measured), measured, machine)
        used = 100.0 * (1.0 - free.values / np.where(machine > 0.0, machine, np.nan))
        yield replace(free, metric="host_memory_used_pct", values=used)
