"""The server logs that checkpoints follow each other too soon.

Finds:
    Lines "checkpoints are occurring too frequently" in the server's log: two or more (warning), high severity where
    half of them came within 10 s. The windows are the times between such a checkpoint and the one before.

Why:
    The log of transactions fills up before it is time for a checkpoint (max_wal_size), so that the server begins one at
    once. It writes its pages as fast as it can, and the first change of each page after it goes into the log as a whole
    page: checkpoints that come often multiply the log, which makes them come more often.

Do:
    Raise max_wal_size (checkpoint_segments before 9.5) until checkpoints come by time (checkpoint_timeout): some times
    what the server writes to its log in that time. Set checkpoint_completion_target = 0.9.

When it is wrong:
    A load of much data writes its log once: then the lines stop with it, and cost it some time only.

Sources:
    PostgreSQL documentation, "WAL Configuration", checkpoint_warning: the line is logged below 30 s.
    Judgement: every 10 s is a disk that does nothing else; one line alone is a moment.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding, Window
from leadline.core.model.units import several, show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.arithmetic.episodes import joined_windows
from leadline.rules._families.symptoms import GUEST_AND_DATABASE_WAIT_FOR_DISK

_APART = "db_checkpoint_apart_ms"
_NS_PER_MS, _MS_PER_S = 1e6, 1000.0

META = RuleMeta(
    code="DBS179",
    layer=Layer.DATABASE,
    severity=Severity.HIGH,
    needs=(_APART,),
    thresholds={
        "least": Threshold(2.0, "count", "Judgement: one line is a moment"),
        "crit": Threshold(10_000.0, "ms", "Judgement: a disk that does nothing else"),
    },
    explains=(*GUEST_AND_DATABASE_WAIT_FOR_DISK, "vm-iops-limit-hit", "db-pages-flushed", "db-checkpoints-requested"),
    clears=False,
    causes=("checkpoints",),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """A finding per database server."""
    for group in context.of(_APART, EntityKind.DATABASE):
        for row, entity in enumerate(group.entities):
            places = np.flatnonzero(np.isfinite(group.values[row]))
            if places.size < context.limit("least"):
                continue
            apart_ms = group.values[row][places].astype(np.float64)
            severity = Severity.HIGH if np.median(apart_ms) <= context.limit("crit") else Severity.MEDIUM
            low, high = (show(float(edge) / _MS_PER_S, "s") for edge in (apart_ms.min(), apart_ms.max()))
            span = low if low == high else f"{low} to {high}"
            times = group.times_ns[places].astype(np.int64)
            spans = zip((times - apart_ms * _NS_PER_MS).astype(np.int64).tolist(), times.tolist(), strict=True)
            yield context.finding(
                entity,
                f"Checkpoints came {span} apart: max_wal_size is too small for what is written",
                (
                    Evidence(
                        f"{several(int(places.size), 'line')} of the server's log say that checkpoints come too soon",
                        metric=_APART,
                        entity=entity,
                        statistic="min",
                        value=float(apart_ms.min()),
                        unit="ms",
                        source=context.source_name(group),
                    ),
                ),
                severity=severity,
                windows=joined_windows([Window(start, end) for start, end in spans]),
            )
