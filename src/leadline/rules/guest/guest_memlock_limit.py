"""A database may not lock as much memory as its shared memory takes.

Finds:
    Databases (Oracle, IRIS, or an engine that is not known) that may lock less memory than their shared memory takes.

Why:
    Huge pages of System V shared memory count as locked memory. When the limit is lower than the segment the engine
    gets small pages, or does not start, although the huge pages are reserved.

Do:
    Raise memlock for the engine's user (soft and hard) to the shared memory or unlimited in
    /etc/security/limits.d, or LimitMEMLOCK in its systemd unit, and restart the engine.

When it is wrong:
    A member of the group in vm.hugetlb_shm_group may use huge pages without the limit. PostgreSQL maps huge pages
    anonymously, to which the limit does not apply; it is left out.

Sources:
    Oracle Databases on VMware Best Practices Guide; yaspe documentation, sp_check: memlock at least the shared memory.
    Linux kernel documentation, admin-guide/sysctl/vm: hugetlb_shm_group.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import engine, shared_memory_mib
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST138",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    needs=("database.memlock_limit_mib", "database.shared_memory_mib|database.parameters"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database."""

    def judge(database: Entity, fact: Fact) -> tuple[str, Severity] | None:
        shared_mib = shared_memory_mib(context.inventory, database)
        if engine(context.inventory, database) == "postgresql" or not float(fact.value) < shared_mib:
            return None
        return (
            f"{database.label()} may lock {float(fact.value):,.0f} MiB, its shared memory takes {shared_mib:,.0f} MiB",
            META.severity,
        )

    yield from by_setting(context, EntityKind.DATABASE, "memlock_limit_mib", judge)
