"""More space is promised to VMs than a datastore has.

Finds:
    Datastores whose provisioned space exceeds their capacity by more than 50 % (low) or 100 % (medium).

Why:
    Thin disks are promises. If several databases load data in the same week, the promises fall due together and the
    datastore is full, however much free space it shows today.

Do:
    Watch how fast free space shrinks and set an alarm well before zero; move the disks that grow fastest, or make the
    disks of databases thick.

When it is wrong:
    Arrays with thin LUNs and deduplication are overallocated by design; templates and desktops never use what they are
    promised.

Sources:
    vCheck-vSphere: reports overallocation, provisioned space beyond capacity, from 50 %.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST115",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("datastore.provisioned_gib", "datastore.capacity_gib"),
    thresholds={
        "warn": Threshold(50.0, "pct", "vCheck-vSphere"),
        "crit": Threshold(100.0, "pct", "vCheck-vSphere"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""
    spec = SettingLimit(EntityKind.DATASTORE, "provisioned_gib", "overallocation", value=_beyond_capacity_pct)
    yield from setting_over(context, spec)


def _beyond_capacity_pct(context: RuleContext, datastore: Entity) -> float | None:
    capacity = context.inventory.get(datastore, "capacity_gib")
    provisioned = float(context.inventory.get(datastore, "provisioned_gib"))
    return 100.0 * (provisioned - capacity) / capacity if capacity else None
