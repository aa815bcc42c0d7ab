"""A disk's read-ahead does not suit what the database does.

Finds:
    Read-ahead above 256 KiB on disks with data or temp files of a transaction database, or below 4 MiB on those of a
    warehouse. The database's workload must be told.

Why:
    The kernel reads ahead once accesses look sequential. Much of it beside short index reads takes bandwidth and page
    cache for blocks nobody asked for; little of it leaves a scan waiting for one small request after another.

Do:
    Set read_ahead_kb by a udev rule or `blockdev --setra` (in sectors of 512 bytes): 128 to 256 KiB for transactions,
    4096 KiB and more for scans; measure with the real queries.

When it is wrong:
    Engines that read by direct I/O or do their own prefetch (Oracle, IRIS, PostgreSQL's effective_io_concurrency) do
    not go through the kernel's read-ahead.

Sources:
    PostgreSQL documentation, 19.4.5 effective_io_concurrency. blockdev(8).
    Judgement: 256 KiB and 4 MiB are starting points of the trade, not measured limits.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Role, Severity
from leadline.estate.knowledge.guest_settings import databases
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST144",
    layer=Layer.GUEST,
    severity=Severity.LOW,
    needs=("block-device.read_ahead_kib", "database.workload"),
    thresholds={
        "oltp_max": Threshold(256.0, "kib", "Judgement: a starting point for short reads"),
        "warehouse_min": Threshold(4096.0, "kib", "Judgement: a starting point for scans"),
    },
    clears=False,
    judgement=True,
)
_READ = frozenset({Role.DATA, Role.TEMP})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk; one that databases of both kinds share is not judged."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        role = context.role(disk)
        workloads = _workloads(context, disk)
        if role is None or role[0] not in _READ:
            return None
        size = float(fact.value)
        if workloads == {"oltp"} and size > context.limit("oltp_max"):
            return f"{disk.label()} reads {show(size, 'kib')} ahead under short transactions", META.severity
        if workloads == {"warehouse"} and size < context.limit("warehouse_min"):
            return f"{disk.label()} reads only {show(size, 'kib')} ahead under long scans", META.severity
        return None

    yield from by_setting(context, EntityKind.BLOCK_DEVICE, "read_ahead_kib", judge)


def _workloads(context: RuleContext, disk: Entity) -> set[str]:
    guest = disk.ancestor(EntityKind.GUEST)
    guest_databases = [] if guest is None else databases(context.inventory, guest)
    return {
        str(name) for name in (context.inventory.get(one, "workload") for one in guest_databases) if name is not None
    }
