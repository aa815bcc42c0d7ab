"""Storage I/O Control is off on a datastore that a database shares with other VMs.

Finds:
    VMFS and NFS datastores with Storage I/O Control off that hold disks of a database and of other VMs, on hosts older
    than vSphere 8.0 U3.

Why:
    Without it the VM with the most requests under way takes the queue of the LUN, be it a backup or a test machine.
    With it shares decide as soon as the latency of the datastore passes a limit (30 ms unless set).

Do:
    Switch it on for that datastore, or give the database a datastore of its own. Storage policies with limits per
    disk do the same at any latency and work beside it.

When it is wrong:
    VMware deprecated it in vSphere 8.0 U3 without a successor: do not plan with it there. On arrays that move blocks
    between tiers its latency limit misleads. Where the version is not known the finding says so.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): use it. vmgu.ru articles
    on vSphere, vSAN and StarWind performance: it acts per datastore, by shares, under congestion only.
    vSphere API 8.0U3, StorageIOAllocationInfo: deprecated.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.datastores import DatastoreUse
from leadline.estate.knowledge.vsan import roles_guessed
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="DST136",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    needs=("datastore.sioc_enabled", "virtual-disk.datastore"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""
    inventory = context.inventory
    stores = DatastoreUse(inventory)
    for datastore in inventory.of_kind(EntityKind.DATASTORE):
        kind = str(inventory.get(datastore, "type") or "vmfs").casefold()
        if inventory.get(datastore, "sioc_enabled") is not False or kind not in ("vmfs", "nfs"):
            continue
        disks = stores.database_disks(datastore)
        owners = {disk.parent for disk in disks}
        others = {disk.parent for disk in stores.disks(datastore)} - owners
        applies = stores.io_control_applies(datastore)
        if not owners or not others or applies is False:
            continue
        guessed = list(roles_guessed(inventory, disks))
        if applies is None:
            guessed.append("vSphere is older than 8.0 U3")
        count = f"{len(others)} other VM{'s' if len(others) > 1 else ''}"
        yield context.finding(
            datastore,
            f"Storage I/O Control of {datastore.label()} is off; a database shares it with {count}",
            [*setting_evidence(context, datastore, "sioc_enabled"), Evidence(f"{disks[0].label()} lies on it")],
            guessed=guessed,
        )
