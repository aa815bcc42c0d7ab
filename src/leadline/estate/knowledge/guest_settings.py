"""What a guest's own settings say: kernel settings, the engines inside, their shared memory and its huge pages."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf, isnan
from typing import TYPE_CHECKING

from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Severity
from leadline.estate.knowledge.database_settings import number_of, parameter, postgresql_bytes

if TYPE_CHECKING:
    from leadline.core.contracts.rule import RuleContext

MIB_PER_GIB = 1024.0
KIB_PER_MIB = 1024.0
BYTES_PER_MIB = 1024.0**2
# Oracle prints them in bytes; 0 is not set.
_SGA = ("sga_max_size", "sga_target")


def number_entry(inventory: Inventory, entity: Entity, setting: str, key: str) -> float:
    """An entry of a map as a number; NaN when it is not known or not one."""
    entries = inventory.get(entity, setting)
    return number_of(entries.get(key) if isinstance(entries, dict) else None)


def entry_findings(
    context: RuleContext,
    entity: tuple[EntityKind, str],
    key: str,
    judge: Callable[[Entity, float], tuple[str, Severity] | None],
) -> Iterator[Finding]:
    """Findings of entities of which a number in a map is judged bad: ``judge`` returns summary and severity, or None.

    Args:
        context: of the rule.
        entity: its kind and the setting that is the map: ``(EntityKind.GUEST, "sysctl")``.
        key: the entry; entities where it is not known or not a number are not judged.
        judge: called with the entity and the number.
    """
    kind, setting = entity
    for one in context.inventory.of_kind(kind):
        value = number_entry(context.inventory, one, setting, key)
        verdict = None if isnan(value) else judge(one, value)
        if verdict is None:
            continue
        summary, severity = verdict
        source = context.inventory.settings(one)[setting].source
        evidence = Evidence(f"{key} of {one.label()} is {value:,.15g}", entity=one, value=value, source=source)
        yield context.finding(one, summary, [evidence], severity=severity)


def databases(inventory: Inventory, guest: Entity) -> list[Entity]:
    """The databases known to run inside a guest."""
    return inventory.children(guest, EntityKind.DATABASE)


def engine(inventory: Inventory, database: Entity) -> str:
    """The engine's name in lower case; empty when it is not known."""
    return str(inventory.get(database, "engine") or "").casefold()


def runs(inventory: Inventory, guest: Entity, *engines: str) -> bool:
    """Whether a database of one of these engines is known to run inside a guest."""
    return any(engine(inventory, database) in engines for database in databases(inventory, guest))


def is_windows(inventory: Inventory, guest: Entity) -> bool:
    """Whether a guest, or the VM it runs in, is known to run Windows."""
    vm = inventory.vm_of(guest)
    names = (inventory.get(guest, "guest_os"), None if vm is None else inventory.get(vm, "guest_os"))
    return any("windows" in str(name).casefold() for name in names if name is not None)


def is_virtual(inventory: Inventory, guest: Entity) -> bool:
    """Whether a guest is known to run on a hypervisor: it says so itself, or its VM is known."""
    hypervisor = inventory.get(guest, "virtualisation")
    return inventory.vm_of(guest) is not None or (hypervisor is not None and str(hypervisor).casefold() != "none")


def shared_memory_mib(inventory: Inventory, database: Entity) -> float:
    """Shared memory an engine allocates, MiB: as recorded, else from its own settings; NaN when it is not known.

    Source: PostgreSQL documentation, 20.4 (shared_memory_size in MB, shared_buffers in 8 kB); Oracle Database
    Reference, SGA_MAX_SIZE and SGA_TARGET (bytes; 0 is not set).
    """
    reported_mib = inventory.get(database, "shared_memory_mib")
    if reported_mib is not None:
        return float(reported_mib) if float(reported_mib) < inf else float("nan")
    sizes: list[float] = []
    if engine(inventory, database) == "oracle":
        sizes = [number_of(parameter(inventory, database, name)) for name in _SGA]
    elif engine(inventory, database) == "postgresql":
        whole = parameter(inventory, database, "shared_memory_size")
        buffers = postgresql_bytes("shared_buffers", parameter(inventory, database, "shared_buffers"))
        sizes = [postgresql_bytes("shared_memory_size", whole), number_of(whole) * BYTES_PER_MIB, buffers]
    return next((size / BYTES_PER_MIB for size in sizes if 0.0 < size < inf), float("nan"))


def huge_pages_mib(inventory: Inventory, guest: Entity) -> float:
    """Memory reserved as huge pages, MiB; NaN when not known. 2 MiB per page where their size is not known."""
    page_count = inventory.get(guest, "huge_page_count")
    count = number_entry(inventory, guest, "sysctl", "vm.nr_hugepages") if page_count is None else float(page_count)
    size_kib = inventory.get(guest, "huge_page_size_kib")
    return count * (2048.0 if size_kib is None else float(size_kib)) / KIB_PER_MIB
