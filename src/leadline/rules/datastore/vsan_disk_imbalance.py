"""Some vSAN devices are much fuller than others.

Finds:
    Clusters (or hosts whose cluster is not known) in which the fullest and the emptiest capacity device differ by more
    than 30 percentage points (info) or 50 (low).

Why:
    The fullest devices serve most of the I/O, and at 80 % vSAN starts to move components off them in the middle of the
    day.

Do:
    Switch on automatic rebalance in the cluster's vSAN services; it works in the background and stops when the spread
    is below half of its threshold. After adding a host or device wait a few days before judging.

When it is wrong:
    Devices of different sizes and one very large object make a spread that no rebalance removes.

Sources:
    cormachogan.com, vSAN capacity management in 7.0U1: rebalance from a difference of 30 %, stop at 15 %.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import cluster_of

_SOURCE = "cormachogan.com, vSAN capacity management in 7.0U1"

META = RuleMeta(
    code="DST133",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    needs=("host.vsan_device_used_pct",),
    thresholds={"warn": Threshold(30.0, "pct", _SOURCE), "crit": Threshold(50.0, "pct", _SOURCE)},
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster."""
    inventory = context.inventory
    fullness: dict[Entity, list[tuple[float, Entity]]] = {}
    for host in inventory.of_kind(EntityKind.HOST):
        for used in inventory.get(host, "vsan_device_used_pct") or ():
            if isinstance(used, int | float):
                fullness.setdefault(cluster_of(inventory, host) or host, []).append((float(used), host))
    for owner, devices in fullness.items():
        (least, emptiest), (most, fullest) = min(devices, key=_used), max(devices, key=_used)
        spread = most - least
        if spread <= context.limit("warn"):
            continue
        severe = spread > context.limit("crit")
        statement = (
            f"fullest device {most:.0f} % on {fullest.label()}, emptiest {least:.0f} % on {emptiest.label()}, "
            f"of {len(devices)}"
        )
        yield context.finding(
            owner,
            f"vSAN devices of {owner.label()} differ by {spread:.0f} percentage points in fullness",
            [Evidence(statement, entity=owner, value=spread, threshold=context.limit("warn"), unit="pct")],
            severity=META.severity if severe else META.severity.lowered(),
            score=spread / context.limit("warn") if context.limit("warn") > 0 else 1.0,
        )


def _used(device: tuple[float, Entity]) -> float:
    return device[0]
