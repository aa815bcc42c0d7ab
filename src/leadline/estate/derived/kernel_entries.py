"""How often programs of a guest enter its kernel: what fixes of the processor make dearer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.estate.derived.series import SeriesPlace, places_by_entity
from leadline.estate.knowledge.cpu_fixes import CpuFixes, FixCost, fix_cost
from leadline.estate.knowledge.guest_settings import databases

if TYPE_CHECKING:
    from leadline.core.model.derived import Recorded
    from leadline.core.model.entities import Entity, Inventory

SYSTEM_CALLS = "guest_system_calls_per_s"
ENTRY_METRICS = {
    SYSTEM_CALLS: "system calls",
    "guest_context_switches_per_s": "context switches",
    "guest_interrupts_per_s": "interrupts",
}
QUANTILE = 0.95


@dataclass(frozen=True, slots=True)
class KernelEntries:
    """Entries into the kernel of a guest.

    Attributes:
        rates: 95th percentile of each metric that was recorded, per second, of all CPUs together.
        cpu_count: CPUs of the guest.
    """

    rates: dict[str, float]
    cpu_count: int

    @property
    def per_cpu(self) -> float:
        """Entries a second and CPU."""
        return sum(self.rates.values()) / self.cpu_count

    @property
    def has_calls(self) -> bool:
        """Whether system calls were recorded; if not, the rate is only a lower limit."""
        return SYSTEM_CALLS in self.rates


def kernel_entries(context: Recorded, guest: Entity) -> KernelEntries | None:
    """Return how often a guest enters its kernel; None where neither rates nor CPUs are known."""
    rates: dict[str, float] = {}
    for metric in ENTRY_METRICS:
        peaks = [_peak(place) for place in context.table(places_by_entity, metric).get(guest, ())]
        known = [peak for peak in peaks if peak is not None]
        if known:
            rates[metric] = max(known)
    cpu_count = _cpu_count(context.inventory, guest)
    return KernelEntries(rates, cpu_count) if rates and cpu_count else None


def recorded_fix_cost(context: Recorded, guest: Entity, fixes: CpuFixes) -> FixCost | None:
    """Return what fixes cost a guest, by the rates at which it was recorded to enter its kernel."""
    entries = kernel_entries(context, guest)
    return fix_cost(
        fixes,
        database=bool(databases(context.inventory, guest)),
        entries_per_s=None if entries is None else entries.per_cpu,
        has_calls=entries is not None and entries.has_calls,
    )


def _peak(place: SeriesPlace) -> float | None:
    values = place.group.one(place.row)
    known = values[np.isfinite(values)]
    return float(np.quantile(known, QUANTILE)) if known.size else None


def _cpu_count(inventory: Inventory, guest: Entity) -> int:
    vm = inventory.vm_of(guest)
    count = inventory.get(guest, "cpu_count") or (None if vm is None else inventory.get(vm, "vcpu_count"))
    return int(count or 0)
