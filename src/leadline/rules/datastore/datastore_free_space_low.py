"""A datastore is almost full.

Finds:
    Datastores with less than 15 % (medium) or 10 % (high) free. vSAN datastores have a rule of their own.

Why:
    Thin disks and snapshots grow while nobody looks. At zero every VM that must grow a file is stopped by the
    hypervisor, databases in the middle of a transaction included.

Do:
    Move VMs off or extend the datastore. Look for forgotten snapshots, ISO images, swap files of VMs without
    reservation and disks of deleted VMs first.

When it is wrong:
    On a large datastore of thick disks without snapshots 10 % is plenty: nothing on it grows.

Sources:
    vCheck-vSphere: warns of datastores by free share, in these steps.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST113",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("disk-full",),
    needs=("datastore.free_gib", "datastore.capacity_gib"),
    thresholds={
        "warn": Threshold(15.0, "pct", "vCheck-vSphere"),
        "crit": Threshold(10.0, "pct", "vCheck-vSphere"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""
    spec = SettingLimit(EntityKind.DATASTORE, "free_gib", "free space", below=True, value=_free_pct, keep=_not_vsan)
    yield from setting_over(context, spec)


def _free_pct(context: RuleContext, datastore: Entity) -> float | None:
    capacity = context.inventory.get(datastore, "capacity_gib")
    return 100.0 * float(context.inventory.get(datastore, "free_gib")) / capacity if capacity else None


def _not_vsan(context: RuleContext, datastore: Entity) -> bool:
    return str(context.inventory.get(datastore, "type")).casefold() != "vsan"
