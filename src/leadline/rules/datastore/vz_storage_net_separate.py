"""Virtuozzo Storage traffic shares its network with VMs, or the network is slow.

Finds:
    Nodes of a Virtuozzo Storage cluster whose network card for storage also carries VM traffic, shares a subnet with a
    card that does, or runs below 10 Gbit/s.

Why:
    Each write goes to two or three nodes. On a network shared with VMs a copy job of one guest delays the writes of
    all, and replication takes the bandwidth the guests were sized for.

Do:
    Give storage two bonded 10 Gbit/s links and a subnet of its own.

When it is wrong:
    Fast links with quality of service can carry both. A small cluster without load does not notice.

Sources:
    Virtuozzo Storage performance tests: 2 x 10 Gbit/s, separate subnets for storage and the test's traffic.
    Judgement: 10 Gbit/s as the least is a starting point.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.networks import is_up, traffic
from leadline.estate.knowledge.vsan import cluster_of

META = RuleMeta(
    code="DST146",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("cluster.vstorage_replicas|cluster.vstorage_mds_count|host.vstorage_hdd_count", "nic.traffic"),
    thresholds={"warn": Threshold(10_000.0, "mbit_per_s", "Judgement: a starting point")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per node."""
    for host in context.inventory.of_kind(EntityKind.HOST):
        cards = context.inventory.children(host, EntityKind.NIC) if _serves(context, host) else []
        evidence = [complaint for nic in cards for complaint in _complaints(context, nic, cards)]
        if evidence:
            yield context.finding(host, f"Storage network of {host.label()}: {evidence[0].statement}", evidence)


def _serves(context: RuleContext, host: Entity) -> bool:
    cluster = cluster_of(context.inventory, host)
    of_cluster = () if cluster is None else context.inventory.settings(cluster)
    return any(name.startswith("vstorage_") for name in (*context.inventory.settings(host), *of_cluster))


def _complaints(context: RuleContext, nic: Entity, cards: list[Entity]) -> Iterator[Evidence]:
    inventory = context.inventory
    if "storage" not in traffic(inventory, nic):
        return
    if "vm" in traffic(inventory, nic):
        yield Evidence(f"{nic.name} carries storage and VMs", entity=nic)
    subnets = _subnets(context, nic)
    for other in cards:
        shared = subnets & _subnets(context, other) if other != nic and "vm" in traffic(inventory, other) else set()
        if shared:
            yield Evidence(f"{nic.name} and {other.name}, which carries VMs, share {', '.join(sorted(shared))}")
    speed = inventory.get(nic, "speed_mbit_per_s")
    limit = context.limit("warn")
    if speed is not None and is_up(inventory, nic) and speed < limit:
        statement = f"{nic.name} runs at {show(float(speed), 'mbit_per_s')} (limit {show(limit, 'mbit_per_s')})"
        yield Evidence(statement, entity=nic, value=float(speed), threshold=limit, unit="mbit_per_s")


def _subnets(context: RuleContext, nic: Entity) -> set[str]:
    return {str(subnet) for subnet in context.inventory.get(nic, "subnets") or ()}
