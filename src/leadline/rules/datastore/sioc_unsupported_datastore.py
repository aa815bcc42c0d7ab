"""Storage I/O Control is on where it does not work.

Finds:
    Datastores with Storage I/O Control on that are vSAN, vVol or NFS 4.1, or a VMFS of several extents.

Why:
    There it is not supported: it measures latency that is not the datastore's and throttles hosts for nothing, or does
    nothing while somebody relies on it.

Do:
    Switch it off for that datastore and use limits in storage policies, which vSAN and vVol know.

When it is wrong:
    Statistics collection without congestion control is harmless and may be reported as on by some tools. Raw device
    mappings are not looked at: they bypass it.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: VMFS and NFS only, not vVol, raw devices or vSAN.
    vSphere API 8.0U3, StorageIOAllocationInfo.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST137",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("datastore.sioc_enabled", "datastore.type|datastore.extent_count"),
    thresholds={"warn": Threshold(1.0, "count", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)
_UNSUPPORTED = {"vsan": "vSAN", "vvol": "vVol", "nfs41": "NFS 4.1"}


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""

    def judge(datastore: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if not fact.value:
            return None
        kind = _UNSUPPORTED.get(str(context.inventory.get(datastore, "type")).casefold())
        extents = context.inventory.get(datastore, "extent_count")
        if kind is None and (extents is None or extents <= context.limit("warn")):
            return None
        description = kind or f"VMFS of {extents} extents"
        return f"Storage I/O Control is on for {datastore.label()}, a {description} datastore", META.severity

    yield from by_setting(context, EntityKind.DATASTORE, "sioc_enabled", judge)
