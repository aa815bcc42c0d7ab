"""The write buffer of a vSAN disk group runs full.

Finds:
    Free share of the write buffer below 25 % (low) or 10 % (medium) for at least 60 s. The evidence says how long a
    burst the buffer takes, from the steepest fill recorded: 70 % of it over what comes in less what is moved on.

Why:
    Writes go to the buffer on the cache device and are moved to the capacity tier later. A small, quick cache takes a
    burst at full speed and then stops: from there on writes are as slow as the capacity tier, and vSAN pushes back.

Do:
    In this order: larger cache devices, more disk groups, a faster capacity tier, more capacity devices per group, a
    current version. Switch off deduplication where the load is write-heavy, spread the busiest VMs, and move bulk loads
    apart in time.

When it is wrong:
    A buffer that is mostly full but stable is being used as meant: what counts is whether latency or congestion rises
    with it. Express Storage Architecture has no buffer.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: watch the cache tier for the moment it chokes; what to
    improve in which order; time to fill = 0.7 x usable buffer / (ingest - destage).
    RVC vSAN Observer graphs.js: marks a fill above 75 %.
    Judgement: 10 % free as the critical limit is a starting point, hence medium.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.derived.series import places_by_entity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES
from leadline.rules._families.symptoms import GUEST_WAITS_FOR_DISK

_METRIC = "vsan_write_buffer_free_pct"

META = RuleMeta(
    code="DST105",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    catalogue=("vsan-burst-absorption-time",),
    needs=(_METRIC,),
    thresholds={
        "warn": Threshold(25.0, "pct", "RVC vSAN Observer graphs.js: fill above 75 %"),
        "crit": Threshold(10.0, "pct", "Judgement: a starting point"),
        "burst": Threshold(
            70.0, "pct", "vmgu.ru articles on vSphere, vSAN and StarWind performance: share for a burst"
        ),
        "duration": TWO_SAMPLES,
    },
    explains=("vsan-congestion-high", "vsan-client-latency-high", "vsan-oio-high", *GUEST_WAITS_FOR_DISK),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk group or cache device."""
    for finding in over_threshold(context, Over(_METRIC, "free write buffer", below=True)):
        yield replace(finding, evidence=(*finding.evidence, *_burst(context, finding)))


def _burst(context: RuleContext, finding: Finding) -> Iterator[Evidence]:
    """How long a burst an empty buffer takes at the steepest fill of the recording; nothing where it never filled."""
    steepest = 0.0  # per cent of the buffer in a second
    for group, row in context.table(places_by_entity, _METRIC).get(finding.entity, ()):
        free = group.values[row]
        known = np.isfinite(free)
        if np.count_nonzero(known) < 2:
            continue
        steps_s = np.diff(group.times_ns[known]) / 1e9
        fill = -np.diff(free[known])[steps_s > 0.0] / steps_s[steps_s > 0.0]
        steepest = max(steepest, float(fill.max(initial=0.0)))
    if steepest > 0.0:
        lasts_s = context.limit("burst") / steepest
        statement = (
            f"it filled by {show(60.0 * steepest, 'pct')} a minute at most: "
            f"a burst like that fits for {show(lasts_s / 60.0, 'ratio').strip()} minutes"
        )
        yield Evidence(
            statement, metric=_METRIC, entity=finding.entity, statistic="time to fill", value=lasts_s, unit="s"
        )
