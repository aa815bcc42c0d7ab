"""A database sends its log to replicas through the same network card as its clients' traffic.

Finds:
    VMs with a single connected network card in which a database with replicas runs.

Why:
    While a replica is built or catches up it takes all the bandwidth it can get, and clients wait behind it. The other
    way round, a large export delays the log: with synchronous replication every commit waits for it.

Do:
    Add a second vmxnet3 adapter on a network of its own and bind the replication to its address: the endpoint of the
    availability group, the replica's connection string, the mirror's address.

When it is wrong:
    With little change and a fast network one card is enough. The replicas count as known only where the inventory
    says so.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere: a network of its own for Always On traffic.
    Judgement: known of the field, not re-read at its source.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import vm_of
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="NET141",
    layer=Layer.NETWORK,
    severity=Severity.LOW,
    causes=("network-narrow",),
    needs=("database.replica_count",),
    thresholds={"cards": Threshold(1.0, "count", "Architecting Microsoft SQL Server on VMware vSphere")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database whose VM's cards are known."""
    inventory = context.inventory

    def judge(database: Entity, fact: Fact) -> tuple[str, Severity] | None:
        vm = vm_of(inventory, database)
        if vm is None or fact.value == 0:
            return None
        cards = [n for n in inventory.children(vm, EntityKind.NIC) if inventory.get(n, "connected") is not False]
        if not cards or len(cards) > context.limit("cards"):
            return None
        summary = f"{database.label()} replicates through {cards[0].label()}, the card of its clients"
        return summary, META.severity

    yield from by_setting(context, EntityKind.DATABASE, "replica_count", judge)
