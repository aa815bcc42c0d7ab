"""vSAN has too little free space to rebuild in.

Finds:
    vSAN datastores used to more than 70 % (medium) or 80 % (high).

Why:
    vSAN needs free space to rebuild after a failed host, to change a policy and to balance its disks. From 80 % on a
    disk it starts moving components by itself, which competes with VMs; later, rebuilds cannot finish and redundancy
    stays lost.

Do:
    Keep 25 to 30 % free: add capacity devices or hosts, delete leftovers, move cold VMs away. Switch on the operations
    reserve and the host rebuild reserve, so that new VMs are refused before it is too late.

When it is wrong:
    From vSAN 7 U1 on the reserves are computed for the cluster and may be less than 25 % on large ones: see the
    capacity page of the cluster.

Sources:
    VMware blog, vSAN slack space: 25 to 30 % free.
    cormachogan.com, vSAN capacity management in 7.0U1: reactive rebalance at 80 % of a disk.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST114",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    causes=("disk-full",),
    needs=("datastore.type", "datastore.free_gib", "datastore.capacity_gib"),
    thresholds={
        "warn": Threshold(70.0, "pct", "VMware blog, vSAN slack space"),
        "crit": Threshold(80.0, "pct", "cormachogan.com, vSAN capacity management in 7.0U1"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per vSAN datastore."""
    spec = SettingLimit(EntityKind.DATASTORE, "free_gib", "used space", value=_used_pct, keep=_vsan)
    yield from setting_over(context, spec)


def _used_pct(context: RuleContext, datastore: Entity) -> float | None:
    capacity = context.inventory.get(datastore, "capacity_gib")
    free = float(context.inventory.get(datastore, "free_gib"))
    return 100.0 * (capacity - free) / capacity if capacity else None


def _vsan(context: RuleContext, datastore: Entity) -> bool:
    return str(context.inventory.get(datastore, "type")).casefold() == "vsan"
