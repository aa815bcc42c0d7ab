"""PostgreSQL does not make sure that what it committed is on stable storage.

Finds:
    fsync off, or full_page_writes off. synchronous_commit off is named beside them, and alone is low: it loses the
    last transactions of a crash, but no consistency.

Why:
    Without fsync the kernel writes pages in any order. After a crash of guest or host, log and data need not fit
    together, and the server may not start or may silently hold wrong rows. Without full page images a page torn in
    half by the crash cannot be repaired. Both also make every latency measured look better than it is.

Do:
    Set fsync = on and full_page_writes = on and reload, then find out why they were off: usually commits were slow, and
    that is a disk to be looked at. Where the last seconds may be lost, synchronous_commit = off gives most of the gain
    without the danger.

When it is wrong:
    A scratch copy or an initial load that can be repeated may run without. full_page_writes may be off on filesystems
    that never tear a page (ZFS with records of at least the page size).

Sources:
    PostgreSQL documentation, fsync, full_page_writes, synchronous_commit.
    Judgement: that a copy which may be lost is not told apart, hence medium only.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import finding_of_parameters, flag_of, of_engine, parameter

META = RuleMeta(
    code="DBS113",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    clears=False,
    judgement=True,
)

_DANGEROUS = ("fsync", "full_page_writes")
_LOSSY = "synchronous_commit"


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per server, naming all that is off."""
    for database in of_engine(context.inventory, "postgresql"):
        values = {name: parameter(context.inventory, database, name) for name in (*_DANGEROUS, _LOSSY)}
        off = {name: value for name, value in values.items() if value is not None and flag_of(value) is False}
        if off:
            dangerous = any(name in _DANGEROUS for name in off)
            risk = "a crash may destroy it" if dangerous else "a crash loses its last commits"
            summary = f"{database.label()} runs with {' and '.join(off)} off: {risk}"
            verdict = (summary, META.severity if dangerous else Severity.LOW)
            yield finding_of_parameters(context, database, verdict, off)
