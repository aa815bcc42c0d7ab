"""A VM's configuration lies on another datastore than all of its disks.

Finds:
    VMs whose configuration file is on a datastore that holds none of their disks. Informative only.

Why:
    The VM then depends on one datastore more than its data does: if that one is lost the VM cannot start, and its swap
    file and logs, which lie with the configuration, load a store nobody watches for this VM. It is usually left over
    from a move.

Do:
    Move the configuration to the datastore of the first disk with Storage vMotion (configure per disk), unless the
    layout was designed so.

When it is wrong:
    Databases whose disks are spread by role are often meant to be like this, with a small store for configurations.

Sources:
    vCheck-vSphere, plug-in on VMs on several datastores.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="VMC144",
    layer=Layer.VM,
    severity=Severity.INFO,
    needs=("vm.config_datastore", "virtual-disk.datastore"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM the datastores of whose disks are all known."""

    def judge(vm: Entity, fact: Fact) -> tuple[str, Severity] | None:
        disks = context.inventory.children(vm, EntityKind.VIRTUAL_DISK)
        stores = [context.inventory.get(disk, "datastore") for disk in disks]
        if not stores or None in stores or fact.value in stores:
            return None
        names = ", ".join(sorted({str(store) for store in stores}))
        return f"The configuration of {vm.label()} is on {fact.value}, its disks are on {names}", META.severity

    yield from by_setting(context, EntityKind.VM, "config_datastore", judge)
