"""vSAN starts to rebuild absent copies earlier than it should.

Finds:
    Hosts whose repair delay (VSAN.ClomRepairDelay) is below 60 minutes. Severity is info.

Why:
    A host that restarts for a patch is back within the hour. If vSAN does not wait for it, it copies everything the
    host held, in working hours, for nothing. A device that reports itself as lost is rebuilt at once in any case.

Do:
    Set the delay back to 60 minutes on all hosts of the cluster, or write down why it is shorter.

When it is wrong:
    Small clusters with little data and much spare bandwidth may prefer redundancy soon. Zero on stretched clusters can
    be a temporary measure.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: 60 minutes for absent components; permanent loss is
    rebuilt at once.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST148",
    layer=Layer.DATASTORE,
    severity=Severity.INFO,
    needs=("host.advanced_options",),
    thresholds={"warn": Threshold(3600.0, "s", "vmgu.ru articles on vSphere, vSAN and StarWind performance")},
    clears=False,
)
_OPTION = "vsan.clomrepairdelay"
_S_PER_MINUTE = 60.0


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    spec = SettingLimit(EntityKind.HOST, "advanced_options", "vSAN repair delay", below=True, value=_delay_s)
    yield from setting_over(context, spec)


def _delay_s(context: RuleContext, host: Entity) -> float | None:
    options = context.inventory.get(host, "advanced_options") or {}
    minutes = next((value for name, value in options.items() if str(name).casefold() == _OPTION), None)
    try:
        return None if minutes is None else float(minutes) * _S_PER_MINUTE
    except ValueError:
        return None
