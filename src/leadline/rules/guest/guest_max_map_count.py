"""An IRIS process may run out of memory mappings.

Finds:
    vm.max_map_count below 131060 in a guest in which IRIS runs.

Why:
    Each mapped file or anonymous area of a process takes one mapping. At the limit the next one fails, and the process
    stops with "out of memory" although memory is free.

Do:
    Set vm.max_map_count to 131060 or more in a file under /etc/sysctl.d; it takes no memory by itself.

When it is wrong:
    A small instance never comes near the limit.

Sources:
    yaspe documentation, sp_check: at least 131060.
    Linux kernel documentation, admin-guide/sysctl/vm: max_map_count, 65530 by default.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import entry_findings, runs

META = RuleMeta(
    code="GST135",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("guest.sysctl", "database.engine"),
    thresholds={"warn": Threshold(131_060.0, "count", "yaspe documentation, sp_check")},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest in which IRIS runs."""

    def judge(guest: Entity, value: float) -> tuple[str, Severity] | None:
        if value >= context.limit("warn") or not runs(context.inventory, guest, "iris"):
            return None
        return f"vm.max_map_count is {value:g} in {guest.label()} (at least {context.limit('warn'):g})", META.severity

    yield from entry_findings(context, (EntityKind.GUEST, "sysctl"), "vm.max_map_count", judge)
