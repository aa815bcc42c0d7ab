"""The kernel's limit for one shared memory segment is below the huge page pool.

Finds:
    kernel.shmmax below the size of the reserved huge pages, where Oracle, IRIS or an engine that is not known runs.

Why:
    These engines ask for shared memory as System V segments. One that is larger than shmmax is refused: the engine
    splits it, falls back to small pages, or does not start, and the huge pages lie idle.

Do:
    Leave kernel.shmmax at the kernel's default (practically no limit) by removing the line that sets it from
    /etc/sysctl.conf and /etc/sysctl.d, or set it above the pool; then restart the engine.

When it is wrong:
    PostgreSQL maps its shared memory anonymously and needs a few bytes of System V memory only; guests with nothing but
    PostgreSQL are left out.

Sources:
    yaspe documentation, sp_check: shmmax below the huge page pool. PostgreSQL documentation, 18.4.1 Shared Memory and
    Semaphores. Linux kernel documentation, admin-guide/sysctl/kernel: shmmax.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import databases, engine, entry_findings, huge_pages_mib

META = RuleMeta(
    code="GST136",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("guest.sysctl",),
    clears=False,
)
_BYTES_PER_MIB = 1024.0**2


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def judge(guest: Entity, value: float) -> tuple[str, Severity] | None:
        inventory = context.inventory
        engines = {engine(inventory, database) for database in databases(inventory, guest)}
        huge_mib = huge_pages_mib(inventory, guest)
        if engines == {"postgresql"} or not value < huge_mib * _BYTES_PER_MIB:
            return None
        return (
            f"kernel.shmmax of {guest.label()} is {value / _BYTES_PER_MIB:,.0f} MiB, "
            f"its huge pages take {huge_mib:,.0f} MiB",
            META.severity,
        )

    yield from entry_findings(context, (EntityKind.GUEST, "sysctl"), "kernel.shmmax", judge)
