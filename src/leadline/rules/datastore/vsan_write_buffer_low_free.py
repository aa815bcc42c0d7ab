"""The write buffer of a vSAN disk group runs full.

Finds:
    Free share of the write buffer below 25 % (low) or 10 % (medium) for at least 60 s.

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
    improve in which order.
    RVC vSAN Observer graphs.js: marks a fill above 75 %.
    Judgement: 10 % free as the critical limit is a starting point, hence medium.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.finding import Finding
from leadline.core.rule import RuleContext, RuleMeta, Threshold
from leadline.core.templates import Over, over_threshold
from leadline.core.vocabulary import Layer, Severity
from leadline.core.vsan import SYMPTOMS_ABOVE

META = RuleMeta(
    code="DST105",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    catalogue=("vsan-write-buffer-low-free",),
    needs=("vsan_write_buffer_free_pct",),
    thresholds={
        "warn": Threshold(25.0, "pct", "RVC vSAN Observer graphs.js: fill above 75 %"),
        "crit": Threshold(10.0, "pct", "Judgement: a starting point"),
        "duration": Threshold(60.0, "s", "Judgement: two samples of 30 s, or one of five minutes"),
    },
    explains=("vsan-congestion-high", "vsan-client-latency-high", "vsan-oio-high", *SYMPTOMS_ABOVE),
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per disk group or cache device."""
    yield from over_threshold(context, Over("vsan_write_buffer_free_pct", "free write buffer", below=True))
