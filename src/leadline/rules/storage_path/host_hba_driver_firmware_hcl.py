"""A storage adapter's driver and firmware are not listed together for the hypervisor.

Finds:
    Adapters of hosts whose combination of driver and firmware is known not to be on the compatibility list.

Why:
    Driver and firmware are tested as a pair. Other pairs are where resets, lost commands and poor queueing come from,
    and the hypervisor's maker does not help with them.

Do:
    Look the adapter up by its vendor and device identifiers in the compatibility guide for the release in use, and
    update driver and firmware as the pair named there, host by host in maintenance mode.

When it is wrong:
    The list changes: check the date of the look-up. The server's maker may support a newer pair.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): hardware on the
    compatibility list, current firmware. vSAN Design and Sizing guide.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO146",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    needs=("adapter.hcl_listed",),
    clears=False,  # a listed pair says nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter."""

    def judge(adapter: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value is not False:
            return None
        return f"Driver and firmware of {adapter.label()} are not on the compatibility list together", META.severity

    beside = ("model", "type", "driver_version", "firmware")
    yield from by_setting(context, EntityKind.ADAPTER, "hcl_listed", judge, beside)
