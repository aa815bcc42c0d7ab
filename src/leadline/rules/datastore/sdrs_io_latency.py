"""Storage DRS may move a database's disks, or waits too long before it acts.

Finds:
    Datastores with disks of a database in a datastore cluster with I/O balancing on, where Storage DRS moves by itself,
    or its latency limit is above 10 ms. Severity is low.

Why:
    Moving a log or data disk copies all of it while the database writes: hours of extra load, started by a latency
    average. A limit above what a database can bear acts when users have long noticed.

Do:
    Use manual mode for datastore clusters of databases, keep log and data apart by anti-affinity rules of virtual
    disks, and set the latency limit to what the data needs (5 ms is the least it takes).

When it is wrong:
    I/O balancing is deprecated from vSphere 8.0 U3 on: there switch it off rather than tune it.

Sources:
    vSphere API 8.0U3, StorageDrsIoLoadBalanceConfig: 5 to 100 ms, 15 ms unless set; deprecated.
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): 10 ms for data.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.datastores import DatastoreUse
from leadline.estate.knowledge.vsan import roles_guessed
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="DST138",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    needs=("datastore.sdrs_io_balance", "virtual-disk.datastore"),
    thresholds={
        "warn": Threshold(
            10.0, "ms", "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): data"
        )
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""
    inventory = context.inventory
    stores = DatastoreUse(inventory)
    for datastore in inventory.of_kind(EntityKind.DATASTORE):
        disks = stores.database_disks(datastore) if inventory.get(datastore, "sdrs_io_balance") else []
        moves = "auto" in str(inventory.get(datastore, "sdrs_automation") or "").casefold()
        limit_ms = inventory.get(datastore, "sdrs_latency_threshold_ms")
        late = limit_ms is not None and limit_ms > context.limit("warn")
        if not disks or not (moves or late):
            continue
        phrases = ["moves disks of databases by itself"] if moves else []
        if limit_ms is not None and late:
            phrases.append(f"waits for {show(float(limit_ms), 'ms')} (limit {show(context.limit('warn'), 'ms')})")
        settings = ("sdrs_io_balance", "sdrs_automation", "sdrs_latency_threshold_ms")
        yield context.finding(
            datastore,
            f"Storage DRS of {datastore.label()} {' and '.join(phrases)}",
            [*setting_evidence(context, datastore, *settings), Evidence(f"{disks[0].label()} lies on it")],
            guessed=roles_guessed(inventory, disks),
        )
