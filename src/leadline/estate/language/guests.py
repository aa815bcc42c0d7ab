"""What a guest's own numbers are compared with: its CPUs, and how quick its disks were at the time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.finding import Evidence
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.estate.derived.disks import Busy
from leadline.estate.derived.latencies import awaits_by_guest
from leadline.estate.derived.series import SeriesPlace, mean_of, means_at

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.rule import RuleContext
    from leadline.core.model.capture import SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Finding, Window

# Metrics `quick_disks` reads; rules that call it declare them.
DISK_METRICS = (
    "guest_disk_await_ms",
    "guest_disk_await_ms_read",
    "guest_disk_await_ms_write",
    "disk_iops",
    "disk_reads_per_s",
    "disk_writes_per_s",
)
_SERVED_BY_THREADS = ("loop", "nbd", "rbd", "drbd")


def cpu_count(context: RuleContext, guest: Entity) -> float:
    """How many CPUs a guest has: as it says itself, else as its VM is configured; NaN when not known."""
    count = context.inventory.get(guest, "cpu_count")
    if count is None:
        vm = context.inventory.vm_of(guest)
        count = None if vm is None else context.inventory.get(vm, "vcpu_count")
    return float("nan") if count is None else float(count)


def per_cpu(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """A value function for `Over`: values of guests [k, n] divided by their CPUs; NaN where those are not known."""
    counts = np.array([cpu_count(context, entity) for entity in group.entities])
    quotient: NDArray[np.floating[Any]] = group.values / counts[:, np.newaxis]
    return quotient


def tasks_per_cpu(context: RuleContext, metric: str, guest: Entity, windows: Iterable[Window]) -> float:
    """Mean of a count of tasks of a guest over windows, divided by its CPUs; NaN when either is not known."""
    tasks = mean_of(context, metric, guest, windows)
    return float("nan") if tasks is None else tasks / cpu_count(context, guest)


def starved_by_cpu(context: RuleContext, finding: Finding) -> Finding:
    """The finding of a slow disk, of low severity where it is slow because tasks queue for the guest's own CPUs.

    That is so for disks that threads of the same machine serve. Needs the limit ``starved`` in tasks per CPU.
    """
    guest = finding.entity.ancestor(EntityKind.GUEST)
    if guest is None or not finding.entity.name.startswith(_SERVED_BY_THREADS):
        return finding
    queue = tasks_per_cpu(context, "guest_run_queue_count", guest, finding.windows)
    if not queue > context.limit("starved"):
        return finding
    starved = Evidence(
        f"but threads of the same machine serve {finding.entity.name}, and {queue:.3g} tasks per CPU were runnable",
        metric="guest_run_queue_count",
        entity=guest,
        statistic="mean",
        value=queue,
        threshold=context.limit("starved"),
        unit="ratio",
    )
    return replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, starved))


def quick_disks(context: RuleContext, finding: Finding) -> Evidence | None:
    """Evidence that a guest's loaded disks were quick while it showed a symptom of slow ones; None when not so.

    Needs the limits ``quick`` in ms and ``load_min`` in operations per second, as `Busy` does; disks without load and
    guests whose disks were not recorded prove nothing.
    """
    means = means_at(_loaded(context, context.table(awaits_by_guest).get(finding.entity, ())), finding.windows)
    if not means or max(means.values()) > context.limit("quick"):
        return None
    slowest = max(means, key=lambda disk: means[disk])
    return Evidence(
        f"but the slowest loaded disk, {slowest.label()}, answered in {show(means[slowest], 'ms')} on average",
        metric="guest_disk_await_ms",
        entity=slowest,
        statistic="mean",
        value=means[slowest],
        threshold=context.limit("quick"),
        unit="ms",
    )


def _loaded(context: RuleContext, places: Iterable[SeriesPlace]) -> Iterator[SeriesPlace]:
    """The latencies of some disks, without samples of too little I/O."""
    busy = Busy()
    for place in places:
        part = place.alone()
        yield SeriesPlace(replace(part, values=busy(context, part)), 0)
