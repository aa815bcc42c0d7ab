"""How many CPUs a VM asked for: from series of its vCPUs, its own, or its guest's; and how many vCPUs carry that."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import ceil, isnan
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.vocabulary import EntityKind
from leadline.core.statistics.rows import row_quantile
from leadline.estate.arithmetic.episodes import sample_bounds
from leadline.estate.arithmetic.timeline import whole_of_parts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity

QUANTILE = 0.95
WAITING = ("cpu_ready_pct", "cpu_costop_pct")


@dataclass(frozen=True, slots=True)
class Demand:
    """What a recording says of a VM.

    Attributes:
        vm: whose demand it is.
        peak_pct: 95th percentile of CPU used, ready and co-stop together, in percent of all its vCPUs.
        length_s: how long it was measured, in seconds.
        group: the series it was taken from; ``seen`` is the entity of the row, the VM or its guest.
    """

    vm: Entity
    peak_pct: float
    length_s: float
    group: SeriesGroup
    seen: Entity


def demands(capture: Capture) -> Iterator[Demand]:
    """Demand of every VM in every recording of it; guests count only for VMs not recorded themselves."""
    for group, owners in _series(capture):
        known = np.isfinite(group.values)
        starts, ends = sample_bounds(group)
        lengths = known @ ((ends - starts) / 1e9)
        peaks = row_quantile(np.where(known, group.values, np.nan), QUANTILE)
        for row, (vm, peak) in enumerate(zip(owners, peaks.tolist(), strict=True)):
            if not isnan(peak):
                yield Demand(vm, peak, float(lengths[row]), group, group.entities[row])


def vcpus_for(cores: float, target_pct: float) -> int:
    """The even number of vCPUs, at least 2, that carries a demand of so many cores at the target.

    >>> vcpus_for(9.0, 80.0), vcpus_for(18.24, 80.0)
    (12, 24)
    """
    return max(2 * ceil(100.0 * cores / target_pct / 2.0 - 1e-9), 2)


def _series(capture: Capture) -> Iterator[tuple[SeriesGroup, list[Entity]]]:
    """Demand in percent of all vCPUs, with the VM of each row."""
    recorded: set[Entity] = set()
    for kind in (EntityKind.VM, EntityKind.VCPU):
        for group in capture.of("cpu_used_pct", kind):
            rows = [i for i, e in enumerate(group.entities) if kind is EntityKind.VM or e.parent not in recorded]
            if rows:
                whole = whole_of_parts(_with_waiting(capture, group.take(rows)), EntityKind.VM, "mean")
                yield whole, list(whole.entities)
        recorded |= {
            vm for g in capture.of("cpu_used_pct", kind) for e in g.entities if (vm := e.ancestor(EntityKind.VM))
        }
    for group in capture.of("guest_cpu_busy_pct", EntityKind.GUEST):
        owners = {i: vm for i, e in enumerate(group.entities) if (vm := capture.inventory.vm_of(e)) is not None}
        rows = [i for i, vm in owners.items() if vm not in recorded]
        if rows:
            yield group.take(rows), [owners[i] for i in rows]


def _with_waiting(capture: Capture, group: SeriesGroup) -> SeriesGroup:
    values: NDArray[np.floating[Any]] = group.values
    for metric in WAITING:
        other = capture.aligned(group, metric)
        if other is not None:
            values = values + np.nan_to_num(other, nan=0.0)
    return replace(group, values=values)
