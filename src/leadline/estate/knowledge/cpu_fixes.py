"""Fixes of a processor's vulnerabilities: which are on in a guest, which are missing, and what the published cost is.

A state is in the words of Linux, whichever system it was read from: ``Not affected``, ``Mitigation: ...``,
``Vulnerable...``.

Source: Linux kernel documentation, ABI/testing/sysfs-devices-system-cpu and admin-guide/hw-vuln.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.model.entities import Entity, Inventory

GREGG = "B. Gregg, KPTI/KAISER Meltdown initial performance regressions, 2018"
RED_HAT = "Red Hat, article 3307751, January 2018"
PHORONIX = "Phoronix, mitigation costs three years after Spectre, January 2021"
VERTICA = "Vertica, test results with microcode patches, May 2018"
VIRTUOZZO = "Virtuozzo, VZ Storage performance after the Meltdown fixes, 2018"

# B. Gregg: about 2 % at 50,000 system calls a second and CPU, growing with the rate; context switches add to the rate.
ENTRIES_PER_S = 50_000.0
ENTRIES_PCT = 2.0
# B. Gregg: with more than 10 MB of hot data 1 % becomes 7 %, because each switch of page tables flushes the TLB.
HOT_DATA_FACTOR = 7.0
OLTP_PCT = (8.0, 19.0)  # Red Hat: TPC, sysbench, pgbench
ANALYTICS_PCT_MIN = 3.0  # Red Hat: 3 to 7 % for analytics, decision support and Java
CPU_BOUND_PCT_MIN = 2.0  # Red Hat: 2 to 5 % for work that stays in user space
OLD_PROCESSOR_PCT_MAX = 25.0  # Phoronix: geometric mean of Core i7 7700K and 8700K against mitigations=off
NEW_PROCESSOR_PCT = (1.0, 10.0)  # Virtuozzo with retpolines: 1 to 2; Phoronix: 5 (10900K), 10 (Ryzen 5950X)
IBRS_PCT_MAX = 25.0  # Vertica: mean on Skylake. Judgement: kernels used IBRS there
# Disclosed after those measurements: their fixes cost something that no figure here covers.
NOT_MEASURED = frozenset(
    """
    gather_data_sampling indirect_target_selection mmio_stale_data reg_file_data_sampling retbleed spec_rstack_overflow
    tsa vmscape
    """.split()
)
_PREFIX = "KVM: "  # itlb_multihit: what the kernel does as a hypervisor


@dataclass(frozen=True, slots=True)
class CpuFixes:
    """Vulnerabilities by what is done about them, each with the kernel's words; those not known are in neither."""

    on: Mapping[str, str]
    missing: Mapping[str, str]
    source: str

    @property
    def isolates_page_tables(self) -> bool:
        """Whether kernel and programs have page tables of their own (PTI, KVA shadow): the costliest fix."""
        return "meltdown" in self.on

    @property
    def uses_ibrs(self) -> bool:
        """Whether the kernel restricts branches by the first IBRS, not by retpolines or IBRS in hardware."""
        words = self.on.get("spectre_v2", "").removeprefix("Mitigation: ")
        return words.partition(";")[0].strip().startswith("IBRS")

    @property
    def not_measured(self) -> list[str]:
        """Fixes that are on and for which no figure is known."""
        return sorted(NOT_MEASURED & self.on.keys())


@dataclass(frozen=True, slots=True)
class FixCost:
    """Throughput that fixes cost, in percent, from the smallest to the largest published figure that applies."""

    low_pct: float
    high_pct: float
    reason: str
    sources: tuple[str, ...]

    def __str__(self) -> str:
        """The range as a person says it: ``8 to 19 %``."""
        low, high = f"{self.low_pct:.2g}", f"{self.high_pct:.2g}"
        return f"{low} %" if low == high else f"{low} to {high} %"


def cpu_fixes(inventory: Inventory, guest: Entity) -> CpuFixes | None:
    """Return the fixes of a guest; None where its kernel's words were not recorded."""
    fact = inventory.fact(guest, "cpu_vulnerabilities")
    if fact is None or not isinstance(fact.value, dict):
        return None
    words = {str(name): str(text).removeprefix(_PREFIX).strip() for name, text in fact.value.items()}
    return CpuFixes(
        {name: text for name, text in words.items() if text.startswith("Mitigation")},
        {name: text for name, text in words.items() if text.startswith("Vulnerable")},
        fact.source,
    )


def with_missing(fixes: CpuFixes) -> CpuFixes:
    """Return the fixes as they would be with the missing ones switched on."""
    return CpuFixes({**fixes.missing, **fixes.on}, {}, fixes.source)


def fix_cost(
    fixes: CpuFixes, *, database: bool, entries_per_s: float | None = None, has_calls: bool = False
) -> FixCost | None:
    """Return what fixes that are on cost; None where none of them has a published figure.

    The figures were measured with several fixes at once, so they are not added up.

    Args:
        fixes: what is on.
        database: the guest is known to run a database.
        entries_per_s: how often a second a CPU enters the kernel: context switches, interrupts and, where they were
            recorded, system calls; None where not recorded.
        has_calls: system calls are in ``entries_per_s``; without them the rate is only a lower limit.
    """
    if not fixes.isolates_page_tables:
        return _new_processor(fixes)
    if entries_per_s is None:
        low_pct = ANALYTICS_PCT_MIN if database else CPU_BOUND_PCT_MIN
        kind = "analytics" if database else "work that seldom enters the kernel"
        reason = f"page tables are isolated: from {low_pct:g} % for {kind} over {OLTP_PCT[0]:g} to {OLTP_PCT[1]:g} % "
        reason += f"for OLTP in 2018 to {OLD_PROCESSOR_PCT_MAX:g} % with all fixes of 2021"
        return FixCost(low_pct, OLD_PROCESSOR_PCT_MAX, reason, (RED_HAT, PHORONIX))
    low_pct = ENTRIES_PCT * entries_per_s / ENTRIES_PER_S
    rate = f"{entries_per_s:,.0f} entries into the kernel a second and CPU"
    formula = f"{ENTRIES_PCT:g} % for each {ENTRIES_PER_S:,.0f}"
    if has_calls and not fixes.uses_ibrs:
        high_pct = max(low_pct, min(HOT_DATA_FACTOR * low_pct, OLD_PROCESSOR_PCT_MAX))
        reason = f"page tables are isolated: {rate}, {formula}, up to {HOT_DATA_FACTOR:g} times that with much hot data"
        return FixCost(low_pct, high_pct, reason, (GREGG, PHORONIX))
    reason = f"page tables are isolated: at least {rate}, {formula}; system calls were not recorded"
    reason = reason if not has_calls else f"page tables are isolated and IBRS is on: {rate}, {formula}"
    return FixCost(low_pct, max(low_pct, OLD_PROCESSOR_PCT_MAX), reason, (GREGG, PHORONIX))


def _new_processor(fixes: CpuFixes) -> FixCost | None:
    """What fixes cost where the processor needs no isolated page tables."""
    if fixes.uses_ibrs:
        reason = "IBRS is on in the kernel"
        return FixCost(NEW_PROCESSOR_PCT[0], IBRS_PCT_MAX, reason, (VIRTUOZZO, VERTICA))
    if not fixes.on.keys() - NOT_MEASURED:
        return None
    reason = "the processor needs no isolated page tables: retpolines, barriers and cleared buffers"
    return FixCost(*NEW_PROCESSOR_PCT, reason, (VIRTUOZZO, PHORONIX))
