"""The kernel's memory promise does not suit the database.

Finds:
    vm.overcommit_memory other than 0 where IRIS runs (low); 1, promise everything, where PostgreSQL runs (low); 0
    where PostgreSQL runs (informative).

Why:
    IRIS expects the kernel's own estimate: with strict accounting its processes fail to start although memory is free.
    With PostgreSQL a kernel that promises more than it has ends in the out-of-memory killer, which takes a backend or
    the postmaster; with strict accounting a query gets an error and the server stays up.

Do:
    IRIS: vm.overcommit_memory = 0. PostgreSQL: consider vm.overcommit_memory = 2 with vm.overcommit_ratio so that the
    limit covers shared memory, backends and swap, and watch Committed_AS against CommitLimit first.

When it is wrong:
    It is a matter of the product; other software on the same machine may need the kernel's estimate. Huge pages do not
    count towards the limit.

Sources:
    yaspe documentation, sp_check: 0 for IRIS. PostgreSQL documentation, 18.4.4 Linux Memory Overcommit: 2.
    Linux kernel documentation, mm/overcommit-accounting.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import entry_findings, runs

META = RuleMeta(
    code="GST133",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("guest.sysctl", "database.engine"),
    clears=False,
)

_ESTIMATE, _ALWAYS = 0.0, 1.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest whose engine is known."""

    def judge(guest: Entity, value: float) -> tuple[str, Severity] | None:
        statement = f"vm.overcommit_memory is {value:g} in {guest.label()}"
        if runs(context.inventory, guest, "iris") and value != _ESTIMATE:
            return f"{statement}; IRIS needs 0", META.severity
        if runs(context.inventory, guest, "postgresql") and value == _ALWAYS:
            return f"{statement}: a shortage kills a PostgreSQL process", META.severity
        if runs(context.inventory, guest, "postgresql") and value == _ESTIMATE:
            return f"{statement}; 2 spares PostgreSQL the out-of-memory killer", Severity.INFO
        return None

    yield from entry_findings(context, (EntityKind.GUEST, "sysctl"), "vm.overcommit_memory", judge)
