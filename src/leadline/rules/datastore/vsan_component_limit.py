"""A vSAN host holds almost as many components as it can.

Finds:
    Hosts with more than 80 % (low) or 95 % (medium) of the components a host may hold: 9,000, or 27,000 with the
    Express Storage Architecture.

Why:
    At the limit no disk, snapshot or copy can be created on that host. Rebuilds after a failure need free components
    on the others.

Do:
    Add hosts, delete snapshots and leftovers, use fewer stripes, and prefer a few large virtual disks to many small
    ones.

When it is wrong:
    The limits changed with versions; older ones had 3,000. Where the architecture is not known the original one is
    assumed.

Sources:
    VMware Configuration Maximums: components per host.
    Judgement: 80 and 95 % are starting points.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.vsan import is_esa
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST132",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("host.vsan_component_count",),
    thresholds={
        "warn": Threshold(80.0, "pct", "Judgement: a starting point"),
        "crit": Threshold(95.0, "pct", "Judgement: a starting point"),
        "components_max": Threshold(9_000.0, "count", "VMware Configuration Maximums"),
        "components_max_esa": Threshold(27_000.0, "count", "VMware Configuration Maximums"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per host."""
    noun = "share of the vSAN component limit"
    yield from setting_over(context, SettingLimit(EntityKind.HOST, "vsan_component_count", noun, value=_share_pct))


def _share_pct(context: RuleContext, host: Entity) -> float | None:
    name = "components_max_esa" if is_esa(context.inventory, host) else "components_max"
    return 100.0 * float(context.inventory.get(host, "vsan_component_count")) / context.limit(name)
