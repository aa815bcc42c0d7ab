"""A host keeps its log only to itself.

Finds:
    Hosts that send their log nowhere.

Why:
    The log of storage, network and memory errors is what explains a slow database afterwards. On the host it is
    overwritten within days, and it is gone with the host.

Do:
    Set Syslog.global.logHost to a log server (`esxcli system syslog config set --loghost=udp://HOST:514`, then
    `esxcli system syslog reload`) and open the firewall rule.

When it is wrong:
    Hosts whose log is fetched by other means.

Sources:
    vCheck for vSphere: syslog of hosts.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="HST113",
    layer=Layer.HOST,
    severity=Severity.LOW,
    needs=("host.syslog_target",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""

    def judge(host: Entity, fact: Fact) -> tuple[str, Severity] | None:
        return None if str(fact.value).strip() else (f"{host.label()} sends its log nowhere", META.severity)

    yield from by_setting(context, EntityKind.HOST, "syslog_target", judge)
