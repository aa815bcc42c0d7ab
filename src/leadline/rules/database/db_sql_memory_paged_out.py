"""The operating system paged out much of SQL Server's memory.

Finds:
    Message 17890 of SQL Server in its error log ("A significant part of sql server process memory has been paged out").

Why:
    What was in memory must be read back from the page file before it serves again, page by page. Queries take many
    times as long, and the disk of the page file is busy.

Do:
    Set max server memory so that Windows and other programs keep 10 % of the machine, at least 4 GB. Give the service
    account the right Lock pages in memory. In a VM look for ballooning and swapping on the host: reserve the memory of
    the VM. Look at what else was started then (backup, copy of large files, virus scan).

When it is wrong:
    It is logged once after a restart on small machines without harm.

Sources:
    Microsoft SQL Server documentation, MSSQLSERVER_17890; "Server memory configuration options".
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.rules._families.logged_events import occurrences

_METRIC = "db_memory_paged_out_per_s"
_GAP_S = 600.0  # Judgement: messages ten minutes apart are one trouble

META = RuleMeta(
    code="DBS192",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("swapping",),
    needs=(_METRIC,),
    explains=("db-component-response-time", "db-data-read-latency"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per server."""
    for events in occurrences(context, _METRIC, EntityKind.DATABASE):
        server = events.entity
        line = Evidence(
            f"{server.label()} logged it in {several(events.total, 'message')}",
            metric=_METRIC,
            entity=server,
            statistic="sum",
            value=float(events.total),
            unit="count",
            source=context.source_name(events.group),
        )
        summary = f"Much of the memory of {server.label()} was paged out by the operating system"
        yield context.finding(server, summary, [line], windows=joined_windows(events.windows, _GAP_S))
