"""Transparent huge pages are always on.

Finds:
    Guests in which the kernel makes huge pages for every process on its own ("always"), medium where a database is
    known to run inside and low elsewhere.

Why:
    The kernel then searches for and moves memory to build pages of 2 MiB just when a process touches new memory. A
    backend waits for it; the pauses come and go with fragmentation and are seen as system time or latency spikes.

Do:
    Set madvise (PostgreSQL) or never (Oracle, IRIS) in a tuned profile or with transparent_hugepage=madvise on the
    kernel's command line, and reserve static huge pages for the shared memory instead.

When it is wrong:
    Recent kernels defer the work ("defrag" set to defer or madvise) and hardly pause. Some engines ask for it.

Sources:
    Oracle Databases on VMware Best Practices Guide and yaspe documentation: switch them off.
    Linux kernel documentation, admin-guide/mm/transhuge.
    Judgement: the cost depends on kernel and fragmentation; neither source gives a number.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import databases
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST131",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("guest.transparent_huge_pages",),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def judge(guest: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if str(fact.value).casefold() != "always":
            return None
        known = bool(databases(context.inventory, guest))
        severity = META.severity if known else META.severity.lowered()
        return f"Transparent huge pages are always on in {guest.label()}", severity

    yield from by_setting(context, EntityKind.GUEST, "transparent_huge_pages", judge)
