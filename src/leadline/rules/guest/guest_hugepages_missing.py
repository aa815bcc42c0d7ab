"""The database's shared memory does not fit into the reserved huge pages.

Finds:
    Databases with more than 8 GiB of shared memory in a Linux guest whose huge pages are fewer than that memory needs.

Why:
    In pages of 4 KiB every backend keeps its own page table of the whole shared memory: 64 GiB take 128 MiB of page
    table per backend, and the processor misses its translation cache on most accesses. On a virtual machine each miss
    walks two tables, so it costs more than on hardware.

Do:
    Reserve pages for the shared memory and a margin of 5 %: vm.nr_hugepages = ceil(shared memory x 1.05 / page size),
    early at boot before memory is fragmented. Then switch them on in the engine (PostgreSQL huge_pages = on, Oracle
    use_large_pages = only, IRIS memlock) and reserve the VM's memory.

When it is wrong:
    The share that is really used may be smaller than what is configured. PostgreSQL's shared_buffers, where its
    shared_memory_size is not known, is a few percent below the whole.

Sources:
    InterSystems community, Virtualizing large databases: VMware CPU capacity planning. PostgreSQL documentation, 18.4.5
    Linux Huge Pages. yaspe documentation, sp_check. Oracle Databases on VMware Best Practices Guide.
    Judgement: 8 GiB and the margin of 5 %.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import MIB_PER_GIB, huge_pages_mib, is_windows, shared_memory_mib

META = RuleMeta(
    code="GST137",
    layer=Layer.GUEST,
    severity=Severity.HIGH,
    catalogue=("cap-hugepages",),
    needs=("guest.huge_page_count|guest.sysctl", "database.shared_memory_mib|database.parameters"),
    thresholds={
        "large": Threshold(8.0, "gib", "Judgement: below it page tables stay small"),
        "margin": Threshold(1.05, "ratio", "Judgement: what engines ask for beside their caches"),
    },
    clears=False,
)
_KIB_PER_MIB = 1024.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per guest: what its large databases need together against what is reserved."""
    inventory = context.inventory
    large_mib = context.limit("large") * MIB_PER_GIB
    for guest in inventory.of_kind(EntityKind.GUEST):
        sizes = {one: shared_memory_mib(inventory, one) for one in inventory.children(guest, EntityKind.DATABASE)}
        large = {one: size for one, size in sizes.items() if size > large_mib}
        reserved = huge_pages_mib(inventory, guest)
        if large and reserved < sum(large.values()) and not is_windows(inventory, guest):
            yield _finding(context, guest, large, reserved)


def _finding(context: RuleContext, guest: Entity, large: dict[Entity, float], reserved_mib: float) -> Finding:
    needed_mib = sum(large.values())
    page_mib = float(context.inventory.get(guest, "huge_page_size_kib") or 2048.0) / _KIB_PER_MIB
    pages = ceil(needed_mib * context.limit("margin") / page_mib)
    evidence = [
        Evidence(f"shared memory of {one.label()}: {size:,.0f} MiB", entity=one, value=size, unit="mib")
        for one, size in large.items()
    ]
    evidence.append(
        Evidence(
            f"huge pages reserved in {guest.label()}: {reserved_mib:,.0f} MiB; vm.nr_hugepages = {pages} would do",
            entity=guest,
            value=reserved_mib,
            threshold=needed_mib,
            unit="mib",
        )
    )
    summary = (
        f"Huge pages of {guest.label()} hold {reserved_mib / MIB_PER_GIB:.3g} GiB "
        f"of {needed_mib / MIB_PER_GIB:.3g} GiB shared memory"
    )
    return context.finding(guest, summary, evidence, score=needed_mib / max(reserved_mib, needed_mib / 100.0))
