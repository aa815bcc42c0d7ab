"""Oracle does not use direct and asynchronous I/O on files.

Finds:
    filesystemio_options other than SETALL where data files lie on a filesystem; disk_asynch_io at FALSE anywhere.

Why:
    Without direct I/O every block is kept twice, in the buffer cache and in the page cache, and copied between them.
    Without asynchronous I/O a database writer waits for each write before it issues the next, so that checkpoints
    drag on while the storage is nearly idle.

Do:
    ALTER SYSTEM SET filesystemio_options = SETALL SCOPE = SPFILE, leave disk_asynch_io at TRUE, and restart. Give the
    memory the page cache no longer needs to the SGA.

When it is wrong:
    On ASM the parameter has no effect: it is not judged where the data disk carries ASM or db_create_file_dest names a
    disk group. On NFS with Direct NFS the client does both by itself.

Sources:
    Oracle Database documentation, FILESYSTEMIO_OPTIONS and DISK_ASYNCH_IO.
    Judgement: medium, since what it costs depends on the load.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Role, Severity
from leadline.estate.derived.disks import Use, uses
from leadline.estate.knowledge.database_settings import disks_of, finding_of_parameters, flag_of, of_engine, parameter

META = RuleMeta(
    code="DBS131",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    clears=False,
    judgement=True,
)

_ASM = ("asm", "oracleasm")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per Oracle database."""
    known = uses(context)
    for database in of_engine(context.inventory, "oracle"):
        options = parameter(context.inventory, database, "filesystemio_options")
        asynchronous = parameter(context.inventory, database, "disk_asynch_io")
        bad: dict[str, str | float] = {}
        if options is not None and str(options).casefold() != "setall" and not _on_asm(context, known, database):
            bad["filesystemio_options"] = options
        if asynchronous is not None and flag_of(asynchronous) is False:
            bad["disk_asynch_io"] = asynchronous
        if bad:
            summary = f"{database.label()} does not use direct and asynchronous I/O in full: {', '.join(bad)}"
            yield finding_of_parameters(context, database, (summary, META.severity), bad)


def _on_asm(context: RuleContext, known: Mapping[Entity, Use], database: Entity) -> bool:
    target = parameter(context.inventory, database, "db_create_file_dest")
    if target is not None and str(target).startswith("+"):
        return True
    disks = disks_of(context.inventory, known, database, Role.DATA)
    return any(str(context.inventory.get(disk, "filesystem")).casefold() in _ASM for disk in disks)
