"""PostgreSQL's planner takes flash for a rotating disk.

Finds:
    random_page_cost of 4 (the default) or more while the database's data lies on flash, as the inventory says of the
    disk or of the LUN or datastore below it. effective_io_concurrency of 0 or 1 is named beside it.

Why:
    At 4 an index scan looks four times dearer per page than reading in order. On flash it is not: the planner reads
    whole tables where an index would have touched a few pages, and the storage is blamed for the throughput.

Do:
    Set random_page_cost = 1.1 for tablespaces on flash (ALTER TABLESPACE ... SET, or for the server) and
    effective_io_concurrency to some tens or hundreds, then compare plans and times of the statements that matter.

When it is wrong:
    Where almost everything is in memory, or where plans were tuned with this cost, a change may make some of them
    worse. A network between host and flash makes random reads dearer than locally.

Sources:
    PostgreSQL documentation, random_page_cost and effective_io_concurrency.
    Judgement: the documentation says that storage with a low cost of random reads is better modelled by a value such as
    1.1; that 4 is wrong there is common experience.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import uses
from leadline.estate.knowledge.database_settings import (
    disks_of,
    finding_of_parameters,
    number_of,
    of_engine,
    parameter,
    shown,
)

META = RuleMeta(
    code="DBS114",
    layer=Layer.DATABASE,
    severity=Severity.LOW,
    needs=("database.parameters", "block-device.medium|device.medium|datastore.medium"),
    thresholds={"warn": Threshold(4.0, "ratio", "PostgreSQL documentation: the default, meant for rotating disks")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per PostgreSQL server with data on flash."""
    known = uses(context)
    for database in of_engine(context.inventory, "postgresql"):
        cost = parameter(context.inventory, database, "random_page_cost")
        flash = [
            disk
            for disk, use in disks_of(context.inventory, known, database, Role.DATA).items()
            if use.medium == "flash"
        ]
        if cost is None or not flash or not number_of(cost) >= context.limit("warn"):
            continue
        values = {"random_page_cost": cost}
        ahead = parameter(context.inventory, database, "effective_io_concurrency")
        if ahead is not None and number_of(ahead) <= 1:
            values["effective_io_concurrency"] = ahead
        summary = f"{database.label()} plans with random_page_cost {shown(cost)}, but {flash[0].name} is flash"
        yield finding_of_parameters(context, database, (summary, META.severity), values)
