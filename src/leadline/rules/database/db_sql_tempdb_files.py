"""SQL Server's tempdb has too few data files, or files of different size.

Finds:
    Fewer data files of tempdb than vCPUs, up to 8; or data files of different size.

Why:
    Every temporary table and spill allocates pages from the same few allocation maps of each file. Sessions queue for
    them in memory (PAGELATCH waits), which looks like a slow disk and is none. The files are used in proportion to
    their free space: one that is larger takes most of the load.

Do:
    Give tempdb as many data files as there are cores, up to 8, of one size and with the same growth in MB, on fast
    storage of its own. More than 8 only where PAGELATCH waits on tempdb remain, four at a time.

When it is wrong:
    A load that hardly uses tempdb does not notice; from version 2019 on metadata of tempdb can be kept in memory,
    which takes away a part of the contention.

Sources:
    Microsoft SQL Server documentation, tempdb database.
    Judgement: medium at most, since contention was not measured.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import machine_fact
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DBS122",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.temp_file_sizes_mib",),
    thresholds={"files_enough": Threshold(8.0, "count", "Microsoft SQL Server documentation, tempdb database")},
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per instance."""

    def judge(database: Entity, fact: Fact) -> tuple[str, Severity] | None:
        sizes = list(fact.value.values())
        cpus = machine_fact(context.inventory, database, "cpu_count", "vcpu_count")
        if cpus is not None and len(sizes) < min(int(cpus.value), int(context.limit("files_enough"))):
            files = f"{len(sizes)} data file{'' if len(sizes) == 1 else 's'}"
            return f"tempdb of {database.label()} has {files} for {cpus.value} CPUs", META.severity
        if len(set(sizes)) > 1:
            return f"The {len(sizes)} data files of tempdb of {database.label()} differ in size", META.severity
        return None

    yield from by_setting(context, EntityKind.DATABASE, "temp_file_sizes_mib", judge)
