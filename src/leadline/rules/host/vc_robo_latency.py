"""The network between vCenter and a host is slow to answer.

Finds:
    Hosts with a round trip to vCenter above 100 ms (informative) or 250 ms (low).

Why:
    Every task of vCenter is many small exchanges with the host, one after the other. Their number times the round trip
    is how long powering on, snapshots and vMotion take; bandwidth hardly matters.

Do:
    Put vCenter near the hosts it manages, or one at the site; start tasks in batches; keep snapshots and backups of
    remote hosts under the control of something at the site.

When it is wrong:
    It does not slow databases: the VMs run without vCenter. It matters for operations only.

Sources:
    VMware, Performance of vCenter Server 6.7 in remote offices (2019), through vmgu.ru: latency outweighs bandwidth.
    Judgement: 100 ms and 250 ms; the study shows tasks getting slower with the round trip, without a limit.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="HST172",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("host.vcenter_rtt_ms",),
    thresholds={
        "warn": Threshold(100.0, "ms", "Judgement: tasks get noticeably slower"),
        "crit": Threshold(250.0, "ms", "Judgement: tasks run into minutes"),
    },
    clears=False,
    judgement=True,
)

_SPEC = SettingLimit(EntityKind.HOST, "vcenter_rtt_ms", "round trip to vCenter")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    yield from setting_over(context, _SPEC)
