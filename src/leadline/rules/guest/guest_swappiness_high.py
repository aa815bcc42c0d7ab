"""The kernel of a database server is told to swap early.

Finds:
    vm.swappiness above 5 in a guest with 64 GiB of memory or more, above 10 in a smaller one.

Why:
    The value weighs how readily memory of processes is swapped out to keep more of the page cache. A large sequential
    read, such as a backup, can then push out the memory of idle backends, and their next query waits for the disk.

Do:
    Set vm.swappiness to 1 (64 GiB and more) or 5 in a file under /etc/sysctl.d and load it with `sysctl --system`.

When it is wrong:
    Memory in huge pages is never swapped, so a server whose shared memory is all there loses little. A machine without
    swap space ignores the value.

Sources:
    yaspe documentation, sp_check: at most 5 from 64 GB on (set 1), at most 10 below (set 5).
    Linux kernel documentation, admin-guide/sysctl/vm: swappiness.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import MIB_PER_GIB, entry_findings

META = RuleMeta(
    code="GST132",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("guest.sysctl", "guest.memory_mib"),
    thresholds={
        "large": Threshold(64.0, "gib", "yaspe documentation, sp_check"),
        "large_max": Threshold(5.0, "count", "yaspe documentation, sp_check"),
        "small_max": Threshold(10.0, "count", "yaspe documentation, sp_check"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest."""

    def judge(guest: Entity, value: float) -> tuple[str, Severity] | None:
        memory_mib = context.inventory.get(guest, "memory_mib")
        if memory_mib is None:
            return None
        large = memory_mib >= context.limit("large") * MIB_PER_GIB
        limit = context.limit("large_max" if large else "small_max")
        if value <= limit:
            return None
        size = f"{memory_mib / MIB_PER_GIB:.3g} GiB"
        return f"vm.swappiness is {value:g} in {guest.label()} with {size} (at most {limit:g})", META.severity

    yield from entry_findings(context, (EntityKind.GUEST, "sysctl"), "vm.swappiness", judge)
