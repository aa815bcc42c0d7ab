"""InnoDB waits for reads or flushes that its disk does not finish.

Finds:
    Requests that are pending although few are done each second: at least one flush (fsync) or four reads that have not
    ended, of which each takes longer than 20 ms (warning) or 100 ms (critical). The time of one is what is pending,
    divided by what ends each second (Little's law).

Why:
    A commit waits for the flush of the log, a statement that misses the buffer pool for its read. Requests that are
    pending while hundreds end each second are a busy disk; few that end are a slow one.

Do:
    Follow the disk under the data and the log through the layers: record iostat -x in the guest, and the latencies on
    the host, while it is slow. Look for a limit of IOPS, a write cache that is off, and others on the same disk. Only
    then trade safety for speed (innodb_flush_log_at_trx_commit, sync_binlog).

When it is wrong:
    A single status shows one moment: take it again ten seconds later, twice or more. The flushes of a checkpoint come
    in bursts.

Sources:
    MySQL 8.4 reference manual, "InnoDB Standard Monitor and Lock Monitor Output": FILE I/O. J. D. C. Little, "A Proof
    for the Queuing Formula L = lambda W". Judgement: 20 ms is twice what a data disk should take, 100 ms a standstill.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity

_KINDS = (
    ("flush", "flushes", "db_pending_fsyncs_count", "db_fsyncs_per_s", "fsyncs_min"),
    ("read", "reads", "db_pending_reads_count", "db_file_reads_per_s", "reads_min"),
)

META = RuleMeta(
    code="DBS180",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("disk-slow",),
    needs=("db_pending_fsyncs_count|db_pending_reads_count", "db_fsyncs_per_s|db_file_reads_per_s"),
    uses=("db_pending_fsyncs_count", "db_pending_reads_count", "db_fsyncs_per_s", "db_file_reads_per_s"),
    thresholds={
        "warn": Threshold(20.0, "ms", "Judgement: twice what a data disk should take"),
        "crit": Threshold(100.0, "ms", "Judgement: ten times what a data disk should take"),
        "fsyncs_min": Threshold(1.0, "count", "Judgement: a log has one flush at a time"),
        "reads_min": Threshold(4.0, "count", "Judgement: fewer are there by chance"),
    },
    explains=("db-component-response-time",),
    clears=False,
    examines="disks",
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server: of the requests that take longest."""
    worst: dict[str, tuple[float, Finding]] = {}
    for one, many, pending, ended, least in _KINDS:
        for group in context.of(pending):
            rates = context.aligned(group, ended)
            if rates is None:
                continue
            for row, server in enumerate(group.entities):
                known = np.isfinite(group.values[row]) & np.isfinite(rates[row])
                waiting = float(group.values[row][known].mean()) if known.any() else 0.0
                rate = float(rates[row][known].mean()) if known.any() else 0.0
                # What does not end at all takes at least as long as its rates are means over.
                span_s = group.interval_s if np.isfinite(group.interval_s) else 1.0
                took_ms = 1000.0 * waiting / max(rate, 1.0 / max(span_s, 1.0))
                if waiting < context.limit(least) or took_ms <= context.limit("warn"):
                    continue
                is_critical = took_ms > context.limit("crit")
                evidence = Evidence(
                    f"{show(waiting, 'count')} {many} pending, {show(rate, 'per_s')} end: {show(took_ms, 'ms')} each",
                    metric=pending,
                    entity=server,
                    statistic="mean",
                    value=took_ms,
                    threshold=context.stated_limit("warn"),
                    unit="ms",
                    source=context.source_name(group),
                )
                summary = f"InnoDB of {server.label()} waits for its disk: a {one} takes about {show(took_ms, 'ms')}"
                severity = Severity.HIGH if is_critical else Severity.MEDIUM
                score = took_ms / context.stated_limit("warn")
                finding = context.finding(server, summary, [evidence], severity=severity, score=score)
                if took_ms > worst.get(str(server), (0.0, finding))[0]:
                    worst[str(server)] = (took_ms, finding)
    yield from (finding for _, finding in worst.values())
