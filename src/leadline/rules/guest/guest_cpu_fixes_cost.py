"""Fixes of the processor's vulnerabilities cost a guest throughput.

Finds:
    Guests with fixes on whose cost may reach 5 % by published figures (info), or is at least 5 % by them (low). Where
    context switches, interrupts and system calls were recorded, the range is computed from their 95th percentile.

Why:
    Isolated page tables (PTI, KVA shadow) make each entry into the kernel dearer: about 2 % of a CPU at 50,000 a
    second, up to seven times as much where much memory is hot. OLTP lost 8 to 19 % in 2018. All fixes together took
    25 % on processors without fixes in hardware in 2021, and 5 to 10 % on newer ones.

Do:
    Leave the fixes on where others' code runs. Enter the kernel less often: a connection pool, larger reads, huge
    pages, fewer round trips per transaction. Processors since 2019 need no isolated page tables: move the VM there and
    power it off and on, so that it sees the new processor; expect most of the cost to end. Keep the range in capacity
    plans: `leadline plan cpu` with fixes added.

When it is wrong:
    The figures are others' measurements on other processors; only a run with and one without the fixes tells yours.
    Without recorded system calls the lower end is too low. Fixes of the hypervisor, and those of flaws disclosed after
    January 2021, come on top.

Sources:
    B. Gregg, KPTI/KAISER Meltdown initial performance regressions, 2018: 2 % at 50,000 system calls a second and CPU,
    context switches add to the rate, 1 % becomes 7 % with more than 10 MB of hot data.
    Red Hat, article 3307751, January 2018: OLTP 8 to 19 %, analytics 3 to 7 %, CPU-bound 2 to 5 %.
    Phoronix, mitigation costs three years after Spectre, January 2021: 25 % (Core i7 7700K, 8700K), 5 % (10900K), 10 %
    (Ryzen 5950X). Vertica, May 2018: 25 % on Skylake. Virtuozzo 2018: 1 to 2 % with retpolines.
    Judgement: the cost grows in proportion to the rate; interrupts count as system calls do; below 5 % noise hides it.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.kernel_entries import ENTRY_METRICS, kernel_entries, recorded_fix_cost
from leadline.estate.knowledge.cpu_fixes import CpuFixes, FixCost, cpu_fixes

META = RuleMeta(
    code="GST191",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("guest.cpu_vulnerabilities",),
    uses=tuple(ENTRY_METRICS),
    thresholds={"cost": Threshold(5.0, "pct", "Judgement: less hides in the noise of a recording")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""
    limit = context.limit("cost")
    for guest in context.inventory.of_kind(EntityKind.GUEST):
        fixes = cpu_fixes(context.inventory, guest)
        cost = None if fixes is None else recorded_fix_cost(context, guest, fixes)
        if fixes is None or cost is None or cost.high_pct < limit:
            continue
        severity = META.severity if cost.low_pct >= limit else META.severity.lowered()
        summary = f"Fixes of the processor probably cost {guest.label()} {cost} of its throughput"
        yield context.finding(guest, summary, [*_evidence(context, guest, fixes, cost)], severity=severity)


def _evidence(context: RuleContext, guest: Entity, fixes: CpuFixes, cost: FixCost) -> Iterator[Evidence]:
    yield Evidence(
        cost.reason,
        entity=guest,
        value=cost.high_pct,
        threshold=context.limit("cost"),
        unit="pct",
        source="; ".join(cost.sources),
    )
    entries = kernel_entries(context, guest)
    for metric, rate in entries.rates.items() if entries is not None else ():
        words = f"{ENTRY_METRICS[metric]} of {guest.label()}: 95th percentile {rate:,.0f}/s"
        yield Evidence(words, metric=metric, entity=guest, statistic="p95", value=rate, unit="per_s")
    for name, words in sorted(fixes.on.items()):
        yield Evidence(f"{name} in {guest.label()}: {words}", entity=guest, source=fixes.source)
    if fixes.not_measured:
        names = ", ".join(fixes.not_measured)
        yield Evidence(f"no published figure covers the fixes of {names}", entity=guest)
