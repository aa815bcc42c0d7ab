"""A database's log is not backed up by the engine's own means.

Finds:
    Databases of which it is told that no log backup runs (medium), and PostgreSQL with archive_mode off or SQL Server
    in the simple recovery model where nothing is told (low).

Why:
    An image backup brings back the state of one moment, once a day. Without the log everything since is lost, and a
    quiesced snapshot has to stop the database to be consistent at all.

Do:
    PostgreSQL: archive the WAL (pgBackRest, barman, wal-g) or receive it with pg_receivewal. SQL Server: full recovery
    model and log backups every few minutes. Oracle: ARCHIVELOG mode and RMAN. Test the restore.

When it is wrong:
    A database that can be rebuilt from elsewhere needs none. A standby or pg_receivewal takes the WAL without
    archive_mode: tell it by log_backup_enabled in an inventory file.

Sources:
    PostgreSQL documentation, 26.3 Continuous Archiving and Point-in-Time Recovery. Microsoft SQL Server documentation,
    Recovery Models.
    Judgement: how much may be lost is for the owner of the data to say, hence medium at most.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.database_settings import flag_of, parameter_fact, shown
from leadline.estate.knowledge.guest_settings import engine

META = RuleMeta(
    code="DST183",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("database.log_backup_enabled|database.parameters",),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database."""
    for database in context.inventory.of_kind(EntityKind.DATABASE):
        log_backup = context.inventory.fact(database, "log_backup_enabled")
        if log_backup is None:
            yield from _by_parameters(context, database)
        elif not log_backup.value:
            evidence = Evidence(f"no log backup runs for {database.label()}", entity=database, source=log_backup.source)
            yield context.finding(database, f"Only images of {database.label()} are backed up", [evidence])


def _by_parameters(context: RuleContext, database: Entity) -> Iterator[Finding]:
    """A setting of the engine that rules a log backup out."""
    kind = engine(context.inventory, database)
    name = {"postgresql": "archive_mode", "sqlserver": "recovery_model"}.get(kind, "")
    fact = parameter_fact(context.inventory, database, name)
    if fact is None:
        return
    value = fact.value
    if flag_of(value) is False if kind == "postgresql" else str(value).casefold() == "simple":
        yield context.finding(
            database,
            f"{database.label()} cannot have a log backup: {name} is {shown(value)}",
            [Evidence(f"{name} of {database.label()} is {shown(value)}", entity=database, source=fact.source)],
            severity=META.severity.lowered(),
        )
