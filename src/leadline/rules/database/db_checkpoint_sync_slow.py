"""The syncs of checkpoints take seconds.

Finds:
    Checkpoints whose sync took longer than 1 s (warning) or 5 s (critical), by the server's log (log_checkpoints). The
    windows are the seconds in which it synced.

Why:
    A checkpoint writes its pages to the operating system over minutes, then asks for each file that all of them are on
    stable storage (fsync). Where the disk has not kept up, a flood of writes goes to it at once: commits, reads and
    whoever needs a free buffer wait behind it, and statements stall together.

Do:
    Look at the disk under the data during these seconds: flushes, await, queue, and a limit of IOPS or bandwidth on
    the virtual disk. Let the kernel write sooner: checkpoint_flush_after (256 kB), lower vm.dirty_background_bytes and
    vm.dirty_bytes. Spread the writes: checkpoint_completion_target = 0.9, a longer checkpoint_timeout, a larger
    max_wal_size. Put the log of transactions on a disk of its own.

When it is wrong:
    A checkpoint with hundreds of files takes a second although each sync is fast: the slowest file tells. At night, or
    with a shutdown, nobody waits for it.

Sources:
    PostgreSQL documentation, "WAL Configuration", log_checkpoints, checkpoint_flush_after; ``src/backend/access/
    transam/xlog.c``, LogCheckpointEnd. Judgement: 1 s of stalled statements is noticed, 5 s is complained about.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.series import places_by_entity
from leadline.estate.language.templates import Over, over_threshold

_SYNC, _LONGEST = "db_checkpoint_sync_ms", "db_checkpoint_sync_longest_ms"

META = RuleMeta(
    code="DBS175",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    causes=("flush-slow", "disk-slow"),
    needs=(_SYNC,),
    uses=(_LONGEST,),
    thresholds={
        "warn": Threshold(1000.0, "ms", "Judgement: statements that stall for a second are noticed"),
        "crit": Threshold(5000.0, "ms", "Judgement: what a user calls a standstill"),
        "duration": Threshold(1.0, "s", "A sync beyond the limit lasts as long"),
    },
    explains=("db-component-response-time",),
    clears=False,
    is_wait=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """A finding per database server."""
    says = "{noun} took {value} on {where} (limit {limit})"
    for finding in over_threshold(context, Over(_SYNC, "the sync of a checkpoint", (EntityKind.DATABASE,), says=says)):
        yield replace(finding, evidence=(*finding.evidence, *_slowest_file(context, finding)))


def _slowest_file(context: RuleContext, finding: Finding) -> Iterator[Evidence]:
    for group, row in context.table(places_by_entity, _LONGEST).get(finding.entity, ()):
        highest = float(np.nanmax(group.values[row], initial=0.0))
        if highest:
            statement = f"its slowest file took up to {show(highest, 'ms')}"
            yield Evidence(statement, metric=_LONGEST, entity=finding.entity, statistic="max", value=highest, unit="ms")
