"""Latency of vSAN jumps: some requests are far slower than the average.

Finds:
    Standard deviation of the latency as vSAN's clients see it above 30 ms for at least 60 s, where 50 or more
    operations per second are done.

Why:
    An average of 3 ms with a deviation of 30 ms means that a few requests took hundreds of milliseconds. A database
    notices those: one late log write holds up every commit behind it.

Do:
    Look for the one slow device or host: compare the device latency of all disk groups and the latency of all hosts
    over the same minutes. Check that host's controller, firmware and uplinks.

When it is wrong:
    A mix of small requests and large backup reads has a wide spread without anything being slow. Right after a vMotion
    or a resync the spread is wide for a while.

Sources:
    RVC vSAN Observer graphs.js: draws the deviation beside the average, with this limit.
    Judgement: 30 ms is a starting point; what is normal depends on the mix of request sizes.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import TWO_SAMPLES

META = RuleMeta(
    code="DST103",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    causes=("disk-slow",),
    needs=("vsan_client_latency_us_stddev",),
    uses=("vsan_client_iops",),
    thresholds={
        "warn": Threshold(30_000.0, "us", "Judgement: RVC vSAN Observer graphs.js, a starting point"),
        "load_min": Threshold(50.0, "per_s", "Judgement: an average of few operations says nothing"),
        "duration": TWO_SAMPLES,
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per cluster and host."""
    noun = "standard deviation of vSAN latency"
    yield from over_threshold(context, Over("vsan_client_latency_us_stddev", noun, load=("vsan_client_iops",)))
