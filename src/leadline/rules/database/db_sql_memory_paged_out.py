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

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import several
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.episodes import joined_windows, sample_bounds

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
    for group in context.of(_METRIC, EntityKind.DATABASE):
        starts, ends = sample_bounds(group)
        for server, rates in zip(group.entities, group.values, strict=True):
            counts = np.nan_to_num(rates) * (ends - starts) / 1e9
            places = np.flatnonzero(counts > 0).tolist()
            if not places:
                continue
            times = round(float(counts.sum()))
            line = Evidence(
                f"{server.label()} logged it in {several(times, 'message')}",
                metric=_METRIC,
                entity=server,
                statistic="sum",
                value=float(times),
                unit="count",
                source=context.source_name(group),
            )
            windows = joined_windows([Window(int(starts[place]), int(ends[place])) for place in places], _GAP_S)
            summary = f"Much of the memory of {server.label()} was paged out by the operating system"
            yield context.finding(server, summary, [line], windows=windows)
