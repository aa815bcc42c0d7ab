"""InnoDB's redo log is nearly full: writes wait until pages are flushed.

Finds:
    The log written since the last checkpoint is above 75 % (warning) or 90 % (critical) of what the server lets grow,
    at the median of the samples.

Why:
    The log is a ring. Near its end InnoDB must write dirty pages at once, as fast as the disk can, and statements
    that change rows wait meanwhile. The disk looks like the cause, but a larger log would spread the same writes.

Do:
    Raise innodb_redo_log_capacity (MySQL 8.0.30 and later, at once), or innodb_log_file_size (before, and MariaDB)
    until the log holds an hour of writes. Then check that innodb_io_capacity suits the disk, so that pages are
    flushed in time. Recovery after a crash takes longer in return.

When it is wrong:
    A bulk load may fill any log. Where the log is large already and full, the disk cannot write as much as is changed.

Sources:
    MySQL 8.4 reference manual, "Optimizing InnoDB Redo Logging" and "Configuring Buffer Pool Flushing" (the server
    flushes synchronously near the end). Percona, "innodb_log_file_size". Judgement: 75 % is where InnoDB begins to
    flush hard, 90 % where it makes statements wait.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity

_SHARE = "db_checkpoint_age_pct"

META = RuleMeta(
    code="DBS181",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("checkpoints",),
    needs=(_SHARE,),
    thresholds={
        "warn": Threshold(75.0, "pct", "Judgement: InnoDB begins to flush hard"),
        "crit": Threshold(90.0, "pct", "Judgement: InnoDB makes statements wait"),
    },
    explains=("db-innodb-io-pending", "db-pages-flushed"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """At most one finding per server."""
    for group in context.of(_SHARE):
        for server, values in zip(group.entities, group.values, strict=True):
            share = float(np.nanmedian(values)) if np.isfinite(values).any() else 0.0
            if share <= context.limit("warn"):
                continue
            limit = context.stated_limit("warn")
            evidence = Evidence(
                f"{show(share, 'pct')} of the log that may be written since the last checkpoint",
                metric=_SHARE,
                entity=server,
                statistic="median",
                value=share,
                threshold=limit,
                unit="pct",
                source=context.source_name(group),
            )
            summary = (
                f"The redo log of {server.label()} is {show(share, 'pct')} full: InnoDB must flush before it writes"
            )
            severity = Severity.HIGH if share > context.limit("crit") else Severity.MEDIUM
            yield context.finding(server, summary, [evidence], severity=severity, score=share / limit)
