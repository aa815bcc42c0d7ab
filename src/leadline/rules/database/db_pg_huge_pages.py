"""PostgreSQL with a large buffer cache runs without huge pages.

Finds:
    shared_buffers of 8 GiB or more with huge_pages off; or with huge_pages at try while the kernel has reserved fewer
    huge pages than the server needs, or the server itself reports that it got none (huge_pages_status). With try and
    nothing known of the reservation there is no finding.

Why:
    Every backend maps the whole cache with page tables of its own. In pages of 4 KiB that is 2 MiB of page table per
    GiB and backend, and the processor's translation cache misses on almost every buffer; under a hypervisor each miss
    walks two tables.

Do:
    Ask the server what it needs (`postgres -C shared_memory_size_in_huge_pages`, from 15 on), set vm.nr_hugepages to
    that and a little more, set huge_pages = on, so that a start without them fails instead of going on quietly, and
    restart the server.

When it is wrong:
    A server with few, pooled connections loses little. Pages of 1 GiB beside those of the default size are not
    counted in vm.nr_hugepages.

Sources:
    PostgreSQL documentation, huge_pages, huge_pages_status and "Linux Huge Pages".
    Judgement: from 8 GiB on the page tables of some hundred backends are worth a restart.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import (
    finding_of_parameters,
    flag_of,
    number_of,
    of_engine,
    parameter,
    postgresql_bytes,
)

META = RuleMeta(
    code="DBS110",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    thresholds={
        "shared_buffers_min": Threshold(8.0, "gib", "Judgement: page tables of some hundred backends"),
    },
    clears=False,
    judgement=True,
)

_GIB = 1024.0**3
_PAGE_KIB = 2048.0  # of x86-64; what vm.nr_hugepages counts unless the default size was changed


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per PostgreSQL server."""
    inventory = context.inventory
    for database in of_engine(inventory, "postgresql"):
        asked = parameter(inventory, database, "huge_pages")
        buffers = parameter(inventory, database, "shared_buffers")
        size = postgresql_bytes("shared_buffers", buffers)
        if asked is None or buffers is None or not size >= context.limit("shared_buffers_min") * _GIB:
            continue
        missing = _missing(inventory, database, asked, size)
        if missing is not None:
            large = f"{database.label()} keeps {show(size / _GIB, 'gib')} of shared buffers without huge pages"
            values = {"huge_pages": asked, "shared_buffers": buffers}
            yield finding_of_parameters(context, database, (f"{large}: {missing}", META.severity), values)


def _missing(inventory: Inventory, database: Entity, asked: str | float, size: float) -> str | None:
    """Why the server has no huge pages; None when it has, or when that is not known."""
    status = flag_of(parameter(inventory, database, "huge_pages_status"))
    if flag_of(asked) is False:
        return "huge_pages is off"
    if status is False:
        return "it asked for them and got none"
    if status is True or flag_of(asked) is True:
        return None  # with "on" the server does not start without them
    reserved = _reserved(inventory, database)
    needed = number_of(parameter(inventory, database, "shared_memory_size_in_huge_pages"))
    if not needed > 0:  # not told, or -1: the system has none
        needed = size / _page_bytes(inventory, database)
    if reserved is None or reserved >= needed:
        return None
    return f"it tries, but {reserved:.0f} of the {needed:.0f} it needs are reserved"


def _page_bytes(inventory: Inventory, database: Entity) -> float:
    guest = database.ancestor(EntityKind.GUEST)
    size_kib = None if guest is None else inventory.get(guest, "huge_page_size_kib")
    return 1024.0 * (float(size_kib) if size_kib else _PAGE_KIB)


def _reserved(inventory: Inventory, database: Entity) -> float | None:
    """How many huge pages the guest's kernel has reserved; None when not known."""
    guest = database.ancestor(EntityKind.GUEST)
    if guest is None:
        return None
    counted = inventory.get(guest, "huge_page_count")
    if counted is None:
        counted = (inventory.get(guest, "sysctl") or {}).get("vm.nr_hugepages")
    known = number_of(counted)
    return known if known >= 0 else None
