"""The certificate of a host expires soon.

Finds:
    Hosts whose certificate is valid for less than 60 days (low) or less than 14 days (medium), or not any more.

Why:
    When it has expired vCenter loses the host: no vMotion, no balancing, no HA state, no performance data. vSAN and
    vSphere replication over TLS can fail with it.

Do:
    Renew it from the host's certificate page in the vSphere client, or replace it if it comes from your own authority.
    Check those of vCenter itself at the same time.

When it is wrong:
    It makes no database slow before the day. The days are those of the export they were read from.

Sources:
    vCheck for vSphere (expiring host certificates): 60 days.
    Judgement: 14 days as the last moment to plan it.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

_S_PER_DAY = 86_400.0

META = RuleMeta(
    code="HST178",
    layer=Layer.HOST,
    severity=Severity.MEDIUM,
    needs=("host.certificate_days_left",),
    thresholds={
        "warn": Threshold(60.0 * _S_PER_DAY, "s", "vCheck for vSphere: 60 days"),
        "crit": Threshold(14.0 * _S_PER_DAY, "s", "Judgement: the last moment to plan it"),
    },
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def judge(host: Entity, fact: Fact) -> tuple[str, Severity] | None:
        left_s = float(fact.value) * _S_PER_DAY
        if left_s >= context.limit("warn"):
            return None
        when = f"expires in {fact.value:g} days" if left_s >= 0 else f"expired {-fact.value:g} days ago"
        near = left_s < context.limit("crit")
        return f"The certificate of {host.label()} {when}", META.severity if near else META.severity.lowered()

    yield from by_setting(context, EntityKind.HOST, "certificate_days_left", judge)
