"""Requests pile up before vSAN: more are under way than usual, and they wait.

Finds:
    Outstanding I/O of vSAN's clients above twice what is usual in the recording (its lower quartile, 16 at least) for
    at least 60 s while read or write latency is above 5 ms: medium. Low where latency was not recorded.

Why:
    By Little's law requests under way are rate times latency. More of them at the same latency is more load; more of
    them at a higher latency is a queue, and the time in it is what users feel.

Do:
    Look at what the latency findings of the same minutes say. If nothing is slow, look for who asks for so much: a
    backup, a scan, a checkpoint. Spread it over time or limit that job alone.

When it is wrong:
    A recording that holds only the busy hour has no usual value to compare with, and a steady backlog is not seen.
    A job that starts with a deep queue doubles the number by design.

Sources:
    VMware, Troubleshooting vSAN performance: outstanding I/O is read together with latency.
    Little's law: requests under way = rate x latency.
    Judgement: twice the lower quartile, at least 16 requests, and 5 ms.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.core.statistics.rows import row_quantile
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

META = RuleMeta(
    code="DST108",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-busy-with-others",),
    needs=("vsan_client_outstanding_count",),
    uses=("vsan_client_latency_us_read", "vsan_client_latency_us_write"),
    thresholds={
        "warn": Threshold(2.0, "ratio", "Judgement: twice what is usual"),
        "usual_min": Threshold(16.0, "count", "Judgement: twice of fewer is no backlog"),
        "latency_min": Threshold(5_000.0, "us", "Judgement: below it nobody waits long"),
        "duration": TWO_SAMPLES,
    },
    explains=GUEST_WAITS_FOR_DISK,
    clears=False,
    judgement=True,
)
_LATENCIES = ("vsan_client_latency_us_read", "vsan_client_latency_us_write")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster, host or disk group."""
    noun = "outstanding I/O against the usual"
    spec = Over("vsan_client_outstanding_count", noun, value=_against_usual, unit="ratio")
    slow = {
        entity for group in context.of(spec.metric) if _latency(context, group) is not None for entity in group.entities
    }
    for finding in over_threshold(context, spec):
        if finding.entity in slow:
            yield finding
        else:
            note = Evidence("latency meanwhile was not recorded", entity=finding.entity)
            yield replace(finding, severity=Severity.LOW, evidence=(*finding.evidence, note))


def _against_usual(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]]:
    """[k, n]: requests under way as a multiple of the usual; NaN where latency is known to be low."""
    values = np.asarray(group.values, dtype=np.float64)
    usual = row_quantile(values, 0.25)
    ratio: NDArray[np.floating[Any]] = values / np.maximum(usual, context.limit("usual_min"))[:, np.newaxis]
    latency = _latency(context, group)
    if latency is not None:
        with np.errstate(invalid="ignore"):
            ratio = np.where(latency <= context.limit("latency_min"), np.nan, ratio)
    return ratio


def _latency(context: RuleContext, group: SeriesGroup) -> NDArray[np.floating[Any]] | None:
    """The higher of read and write latency [k, n] in us; None when neither was recorded."""
    parts = [part for part in (context.aligned(group, metric) for metric in _LATENCIES) if part is not None]
    if not parts:
        return None
    higher: NDArray[np.floating[Any]] = np.fmax(parts[0], parts[-1])
    return higher
