"""A database VM has far more memory than its database is configured to use.

Finds:
    VMs whose databases keep their own cache (SQL Server, Oracle, IRIS) and whose caches, 4 GiB for the operating
    system and a quarter on top come to less than 60 % of the VM's memory.

Why:
    Memory the database is not configured to use is paid for and reserved, keeps other VMs out of the host and makes a
    move of the VM longer. Or, the other way round, somebody gave the VM memory and forgot to tell the database.

Do:
    Decide which of the two it is. If the database would gain from a larger cache, raise it (max server memory,
    SGA_TARGET, globals). If not, shrink the VM to cache plus operating system plus a quarter. Never size a database
    VM by the hypervisor's "active memory": pages of a cache that were not touched in the last minutes do not count
    as active.

When it is wrong:
    PostgreSQL and other engines that leave caching to the operating system are not looked at: their unused memory is
    their cache. Something else on the machine, an application server or a backup agent, may need the rest.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: size by the database's own cache, active memory understates.
    Judgement: 4 GiB for the operating system; 60 % and the quarter on top are rules of thumb.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isnan

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import number_of, of_engine, parameter, vm_of
from leadline.estate.knowledge.guest_settings import shared_memory_mib

META = RuleMeta(
    code="MEM137",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.LOW,
    needs=("database.parameters|database.shared_memory_mib", "vm.memory_mib"),
    thresholds={
        "warn": Threshold(0.6, "ratio", "Judgement: rule of thumb"),
        "system": Threshold(4096.0, "mib", "Judgement: operating system and agents"),
        "spare": Threshold(0.25, "ratio", "Judgement: rule of thumb"),
    },
    clears=False,
    judgement=True,
)
_OWN_CACHE = ("sqlserver", "oracle", "iris")
_UNLIMITED_MIB = 2147483647.0  # SQL Server's "no limit"


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM whose databases' caches are all known."""
    inventory = context.inventory
    caches: dict[Entity, list[tuple[Entity, float]]] = {}
    caching = set(of_engine(inventory, *_OWN_CACHE))
    for database in inventory.of_kind(EntityKind.DATABASE):
        vm = vm_of(inventory, database)
        if vm is not None:
            cache_mib = _cache_mib(context, database) if database in caching else float("nan")
            caches.setdefault(vm, []).append((database, cache_mib))
    for vm, parts in caches.items():
        memory = inventory.fact(vm, "memory_mib")
        cache_mib = sum(size for _, size in parts)
        if memory is None or isnan(cache_mib):
            continue
        needed_mib = (cache_mib + context.limit("system")) * (1.0 + context.limit("spare"))
        if needed_mib >= context.limit("warn") * float(memory.value):
            continue
        evidence = [
            Evidence(f"cache of {d.label()} is {show(size, 'mib')}", entity=d, value=size, unit="mib")
            for d, size in parts
        ]
        evidence.append(
            Evidence(
                f"memory of {vm.label()} is {show(float(memory.value), 'mib')}, "
                f"of which {show(needed_mib, 'mib')} are accounted for",
                entity=vm,
                value=float(memory.value),
                unit="mib",
                source=memory.source,
            )
        )
        summary = (
            f"{vm.label()} has {show(float(memory.value), 'mib')}, its database needs about {show(needed_mib, 'mib')}"
        )
        yield context.finding(vm, summary, evidence)


def _cache_mib(context: RuleContext, database: Entity) -> float:
    """What an engine is configured to cache, MiB; NaN when not known or without a limit."""
    shared_mib = shared_memory_mib(context.inventory, database)
    if not isnan(shared_mib):
        return shared_mib
    size = number_of(parameter(context.inventory, database, "max server memory (MB)"))
    return float("nan") if size >= _UNLIMITED_MIB else size
