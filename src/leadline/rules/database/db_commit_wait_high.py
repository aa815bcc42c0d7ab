"""Commits wait long, and not for the write of the log.

Finds:
    Mean wait of a commit (Oracle log file sync) above 5 ms (warning) or 20 ms (critical) for at least 15 s, where a
    write of the log takes less than a third of it. Where log writes were not timed, the wait alone.

Why:
    A commit waits until the log writer has written its record and has woken the session. What it waits beyond the
    write is the log writer's queue: for a processor, for a standby that must answer first, for a latch, or for the
    session's own turn on a processor.

Do:
    Look at the processors of the guest (run queue, steal, ready) and at the log writer's priority. With a synchronous
    standby, look at its network and its disk. Many commits of single rows: commit in batches. Where log writes were not
    timed: record them (Oracle: "Background Wait Events", log file parallel write) to tell the disk from the rest.

When it is wrong:
    A mean of few commits says little. In a cluster the log writer of another instance may be the one that is late.

Sources:
    Oracle Database Performance Tuning Guide, log file sync and log file parallel write. Microsoft
    SQL Server documentation, WRITELOG.
    Judgement: 5 ms is felt by whoever commits a row at a time, 20 ms by everyone; a third leaves room for the log
    writer's own work.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.disks import means_over
from leadline.estate.language.templates import Over, over_threshold

_WAIT, _WRITE = "db_commit_wait_ms", "db_log_write_latency_ms"

META = RuleMeta(
    code="DBS177",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("standby-late", "commit-delayed", "cpu-busy"),
    needs=(_WAIT,),
    uses=(_WRITE,),
    thresholds={
        "warn": Threshold(5.0, "ms", "Judgement: felt by whoever commits a row at a time"),
        "crit": Threshold(20.0, "ms", "Judgement: four times the warning"),
        "write_share": Threshold(0.33, "ratio", "Judgement: leaves room for the log writer's own work"),
        "duration": Threshold(15.0, "s", "Judgement: long enough to be more than a burst"),
    },
    explains=("db-component-response-time",),
    clears=False,
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per database."""
    for finding in over_threshold(context, Over(_WAIT, "commit wait", says="Commits wait {value} on {where}")):
        server = finding.entity
        write_ms = means_over(context.of(_WRITE), finding.windows, server).get(server)
        if write_ms is None:
            unknown = Evidence("log writes were not timed, so the log's disk cannot be told from the rest")
            yield replace(finding, evidence=(*finding.evidence, unknown))
            continue
        wait_ms = finding.evidence[0].value or 0.0
        if write_ms >= context.limit("write_share") * wait_ms:
            continue
        beyond = Evidence(
            f"a write of the log takes {show(write_ms, 'ms')}: the rest is not the log's disk",
            metric=_WRITE,
            entity=server,
            value=write_ms,
            unit="ms",
        )
        summary = f"{finding.summary}, and the log is written in {show(write_ms, 'ms')}"
        yield replace(finding, summary=summary, evidence=(*finding.evidence, beyond))
