"""A log file of SQL Server grows by a share of its size.

Finds:
    Log files whose growth step is in percent (is_percent_growth of sys.master_files).

Why:
    A log is zeroed while it grows, and every commit waits meanwhile. A step in percent gets longer with the file: ten
    percent of a log of 100 GB stops the database for as long as the disk needs to write 10 GB. While the file is small
    the steps are many and leave hundreds of virtual log files, which slow recovery.

Do:
    Size the log for the longest transaction and the time between log backups, and set growth to a fixed step: ALTER
    DATABASE ... MODIFY FILE (NAME = ..., FILEGROWTH = 1024 MB); 8 GB at most.

When it is wrong:
    A log that was sized once and never grows does not care.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: pre-allocate the log, grow it in GB rather than percent.
    Microsoft SQL Server documentation, transaction log architecture and sys.master_files.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DBS121",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.log_file_growths",),
    clears=False,
)

_NAMED_COUNT_MAX = 5  # files named in the summary; the rest are counted


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database."""

    def judge(database: Entity, fact: Fact) -> tuple[str, Severity] | None:
        files = [f"{name} by {step}" for name, step in fact.value.items() if str(step).strip().endswith("%")]
        if not files:
            return None
        more = f" and {len(files) - _NAMED_COUNT_MAX} more" if len(files) > _NAMED_COUNT_MAX else ""
        named = ", ".join(files[:_NAMED_COUNT_MAX])
        return f"Log files of {database.label()} grow in percent: {named}{more}", META.severity

    yield from by_setting(context, EntityKind.DATABASE, "log_file_growths", judge)
