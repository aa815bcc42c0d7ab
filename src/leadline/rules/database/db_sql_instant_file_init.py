"""SQL Server writes zeros over every data file it creates or grows.

Finds:
    instant_file_initialization_enabled of sys.dm_server_services at N: the service account lacks the right "Perform
    volume maintenance tasks".

Why:
    A data file that grows by gigabytes is then written full of zeros first. The statement that needed the space waits,
    everyone else shares the disk with a stream of large writes, and thin disks are filled for nothing. A restore waits
    for it as well.

Do:
    Grant the service account "Perform volume maintenance tasks" in the local security policy (or by the setup's
    option) and restart the service. Pre-size data files all the same.

When it is wrong:
    Log files are always zeroed (but for growths of up to 64 MB from 2022 on), and encrypted databases always were
    until 2019. Where deleted data of other users of the disk must not be readable, it is off on purpose.

Sources:
    Architecting Microsoft SQL Server on VMware vSphere; vmgu.ru articles on vSphere, vSAN and StarWind performance.
    Microsoft SQL Server documentation, database instant file initialization and sys.dm_server_services.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.knowledge.database_settings import by_parameter, flag_of

META = RuleMeta(
    code="DBS120",
    layer=Layer.DATABASE,
    severity=Severity.MEDIUM,
    needs=("database.parameters",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per SQL Server instance."""

    def judge(database: Entity, value: str | float) -> tuple[str, Severity] | None:
        if flag_of(value) is not False:
            return None
        return f"{database.label()} zeroes its data files whenever they grow", META.severity

    yield from by_parameter(context, "sqlserver", "instant_file_initialization_enabled", judge)
