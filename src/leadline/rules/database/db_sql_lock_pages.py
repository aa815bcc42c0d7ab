"""SQL Server does not lock its pages although the VM's memory is reserved in full.

Finds:
    sql_memory_model_desc of sys.dm_os_sys_info at CONVENTIONAL in a VM whose memory reservation covers its memory.

Why:
    The reservation keeps the hypervisor from taking memory, but Windows may still trim the buffer pool when another
    process asks for a lot at once (a file copy, a backup agent); the pages are read back from disk.

Do:
    Grant the service account "Lock pages in memory", set max server memory so that Windows has its share, and restart
    the service. Keep the reservation: locked pages cannot be given back to a balloon.

When it is wrong:
    Without other processes of any size in the guest there is nothing to trim for. In a VM whose memory is not reserved
    in full, locking pages makes things worse; such VMs are not looked at.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere.
    Judgement: low, since trimming was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, vm_of

META = RuleMeta(
    code="DBS124",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    needs=("database.parameters", "vm.memory_reservation_mib"),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per SQL Server instance in a VM with its memory reserved."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        if str(value).casefold() != "conventional" or not _is_reserved(
            context.inventory, vm_of(context.inventory, database)
        ):
            return None
        return f"{database.label()} does not lock its pages; the memory of its VM is reserved in full", META.severity

    yield from by_parameter(context, "sqlserver", "sql_memory_model_desc", judge)


def _is_reserved(inventory: Inventory, vm: Entity | None) -> bool:
    if vm is None:
        return False
    memory, reserved = inventory.get(vm, "memory_mib"), inventory.get(vm, "memory_reservation_mib")
    return memory is not None and reserved is not None and reserved >= memory
