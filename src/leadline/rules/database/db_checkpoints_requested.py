"""Checkpoints follow each other too soon, because the log fills up or somebody asks for them.

Finds:
    At least two requested checkpoints, more often than one every 30 s on average (high from one every 10 s), in the
    incident or in all of the recording, and at least twice as often as in the normal time.

Why:
    A requested checkpoint writes its pages as fast as it can. The first change of each page after it goes into the log
    as a whole page, so that checkpoints that come often also multiply the log.

Do:
    Raise max_wal_size until checkpoints come by time (checkpoint_timeout); find out who issues CHECKPOINT: backup
    tools, CREATE DATABASE, scripts. Set checkpoint_completion_target = 0.9.

When it is wrong:
    The start of a base backup asks for one; one or two of them are no trouble.

Sources:
    PostgreSQL documentation, "WAL Configuration"; checkpoint_warning: 30 s.
    Judgement: every 10 s is a disk that does nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.rules._families.changes import changed, throughput
from leadline.rules._families.levels import is_more, level, looked_at
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

META = RuleMeta(
    code="DBS165",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=("db_checkpoints_requested_per_s",),
    uses=("db_checkpoint_pages_per_s", "db_log_bytes_per_s", "db_tps", "db_qps"),
    thresholds={
        "warn": Threshold(30.0, "s", "PostgreSQL documentation, checkpoint_warning"),
        "crit": Threshold(10.0, "s", "Judgement: a disk that does nothing else"),
        "least": Threshold(2.0, "count", "Judgement: one is the start of a backup"),
        "more": Threshold(2.0, "ratio", "Judgement: beyond what the same load varies"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "vm-iops-limit-hit", "db-pages-flushed"),
    clears=False,
    causes=("checkpoints",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding, on the database."""
    asked = level(context, "db_checkpoints_requested_per_s")
    if asked is None or not asked.during or not is_more(asked, context.limit("more")):
        return
    every_s = 1.0 / asked.during
    count = asked.during * sum(window.duration_s for window in looked_at(context))
    if every_s > context.limit("warn") or round(count) < context.limit("least"):
        return
    severity = Severity.HIGH if every_s <= context.limit("crit") else Severity.MEDIUM
    pages, log = level(context, "db_checkpoint_pages_per_s"), level(context, "db_log_bytes_per_s")
    summary = f"Checkpoints are asked for every {every_s:.2g} s"
    yield changed(context, asked.entity, summary, (asked, pages, log, throughput(context)), severity=severity)
