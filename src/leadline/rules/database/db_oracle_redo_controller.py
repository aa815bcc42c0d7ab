"""Oracle's data files and redo logs hang on one virtual controller.

Finds:
    A VM with an Oracle database whose disks for data and for redo (role WAL) share a virtual SCSI or NVMe controller.

Why:
    A controller has one queue for all its disks. A checkpoint or a scan on the data disks fills it, and the log
    writer's small write, for which commits wait, stands behind.

Do:
    Spread the disks over four PVSCSI controllers: system; DATA; REDO; FRA and TEMP. For a warehouse spread DATA over
    three. ASM adds the new disks and drops the old ones while the database runs.

When it is wrong:
    Controllers of a deep queue (PVSCSI with its ring pages raised, NVMe) and few outstanding requests leave nothing to
    wait for. Redo on a disk that also holds data cannot be told apart here.

Sources:
    Dell infohub, Oracle VM SCSI controller layout.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.knowledge.database_settings import of_engine, vm_of
from leadline.estate.knowledge.virtual_disks import disks_by_adapter

META = RuleMeta(
    code="DBS130",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.engine", "virtual-disk.adapter", "virtual-disk.role"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """One finding per VM and controller, on the database."""
    reported: set[Entity] = set()
    for database in of_engine(context.inventory, "oracle"):
        vm = vm_of(context.inventory, database)
        if vm is None or vm in reported:
            continue
        reported.add(vm)
        for adapter, disks in disks_by_adapter(context.inventory, vm).items():
            roles = {disk: context.role(disk) for disk in disks}
            data = [disk for disk, role in roles.items() if role is not None and role[0] is Role.DATA]
            redo = [disk for disk, role in roles.items() if role is not None and role[0] is Role.WAL]
            if data and redo:
                guesses = [disk for disk in (*data, *redo) if (role := roles[disk]) is not None and role[1]]
                yield _finding(context, database, adapter, (data, redo, guesses))


def _finding(
    context: RuleContext,
    database: Entity,
    adapter: Entity,
    disks_by_use: tuple[list[Entity], list[Entity], list[Entity]],
) -> Finding:
    data, redo, guesses = disks_by_use
    evidence = [
        Evidence(f"on {adapter.label()}: {disk.name} ({word})", entity=disk)
        for disks, word in ((data, "data"), (redo, "redo"))
        for disk in disks
    ]
    return context.finding(
        database,
        f"Data and redo of {database.label()} share the controller {adapter.label()}",
        evidence,
        severity=META.severity.lowered() if guesses else META.severity,
        guessed=[f"role of {disk.label()}" for disk in guesses],
    )
