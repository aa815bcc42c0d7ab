"""All database disks of a VM share one virtual storage controller.

Finds:
    VMs with two or more disks for data, WAL or temp files and fewer than two controllers under them. Where roles are
    not known, every disk but the first and those for backup counts as a database disk, and the finding is low.

Why:
    A virtual controller has one queue and one interrupt for all its disks. The WAL's small synchronous writes line up
    behind the data files' reads, in the guest already, where the hypervisor's counters do not see them.

Do:
    Spread the disks over up to four PVSCSI controllers: system, data, WAL or journal, temp and backup. Add the
    controller with the VM off, then move the disks to it.

When it is wrong:
    Where the load is small, one controller is enough. Disks that belong to no database make the count too high; name
    their roles in an inventory file.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): several LUNs on several
    PVSCSI adapters let the host issue more I/O. Dell, Oracle VM SCSI controller layout. Architecting Microsoft SQL
    Server on VMware vSphere.
    Judgement: the number two; no source tells from which load on a second controller pays.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.virtual_disks import DATABASE_ROLES, boot_disk, disks_by_adapter

META = RuleMeta(
    code="VMC103",
    layer=Layer.VM,
    severity=Severity.MEDIUM,
    needs=("virtual-disk.adapter",),
    thresholds={"warn": Threshold(2.0, "count", "Judgement: data and WAL should not share a queue")},
    judgement=True,
    examines="settings",
)
_DISK_COUNT_MIN = 2  # one disk cannot be spread


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM."""
    for vm in context.inventory.of_kind(EntityKind.VM):
        by_adapter = disks_by_adapter(context.inventory, vm)
        adapter_of = {disk: adapter for adapter, disks in by_adapter.items() for disk in disks}
        known = [disk for disk in adapter_of if _is_database(context, disk)]
        boot = boot_disk(context.inventory, vm)
        unknown = [disk for disk in adapter_of if context.role(disk) is None and disk != boot]
        disks = known if len(known) >= _DISK_COUNT_MIN else [*known, *unknown]
        adapters = dict.fromkeys(adapter_of[disk] for disk in disks)
        if len(disks) >= _DISK_COUNT_MIN and len(adapters) < context.limit("warn"):
            yield _finding(context, vm, disks, list(adapters), sure=disks is known)


def _is_database(context: RuleContext, disk: Entity) -> bool:
    role = context.role(disk)
    return role is not None and role[0] in DATABASE_ROLES


def _finding(context: RuleContext, vm: Entity, disks: list[Entity], adapters: list[Entity], *, sure: bool) -> Finding:
    roles = {disk: context.role(disk) for disk in disks}
    evidence = []
    guessed = []
    for disk in disks:
        role = roles[disk]
        fact = context.inventory.settings(disk)["adapter"]
        use = "role not known" if role is None else role[0].value
        evidence.append(Evidence(f"{disk.name} ({use}) is on {fact.value}", entity=disk, source=fact.source))
        if role is None or role[1]:
            guessed.append(f"role of {disk.label()}")
    count = len(adapters)
    names = ", ".join(adapter.name for adapter in adapters)
    return context.finding(
        vm,
        f"{len(disks)} {'database disks' if sure else 'disks beside the boot disk'} of {vm.label()} share "
        f"{count} controller{'s' if count != 1 else ''} ({names})",
        evidence,
        severity=META.severity if sure else Severity.LOW,
        guessed=guessed,
    )
