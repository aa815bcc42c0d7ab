"""A virtual disk uses vSphere Flash Read Cache, which newer releases do not have.

Finds:
    Virtual disks with a reservation of vSphere Flash Read Cache: medium on hosts of release 7.0 or later, low where the
    release is not known, informative on earlier ones.

Why:
    The feature lowered read latency with a flash disk in the host. It was deprecated during 6.x and removed in 7.0: a
    disk that still has it cannot be relied on to start or move, and its reads come without the cache that its latency
    was judged by.

Do:
    Remove the reservation in the VM's settings before or with the upgrade, and put the disk on flash, or its working
    set into the guest's memory. Measure read latency before and after.

When it is wrong:
    Before 7.0 it works and may be what keeps the latency low: plan its replacement, do not just remove it.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): Flash Read Cache lowers
    read latency, as of then. VMware Configuration Maximums and release notes of vSphere: deprecated, removed in
    7.0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.versions import release
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting, setting_evidence

META = RuleMeta(
    code="STO148",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    needs=("virtual-disk.read_cache_mib",),
    thresholds={"warn": Threshold(0.0, "mib", "any reservation")},
    clears=False,  # no cache says nothing about latency
)
_REMOVED_IN = (7,)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        if fact.value <= context.limit("warn"):
            return None
        host = disk.ancestor(EntityKind.HOST)
        version = release(None if host is None else context.inventory.get(host, "version"))
        severity = META.severity.lowered()
        if version:
            severity = META.severity if version >= _REMOVED_IN else Severity.INFO
        return f"{disk.label()} reserves {fact.value:g} MiB of vSphere Flash Read Cache", severity

    for finding in by_setting(context, EntityKind.VIRTUAL_DISK, "read_cache_mib", judge):
        host = finding.entity.ancestor(EntityKind.HOST)
        more = [] if host is None else setting_evidence(context, host, "version")
        yield replace(finding, evidence=(*finding.evidence, *more))
