"""A write-back cache would lose what it holds when power fails.

Finds:
    Adapters and devices in write-back mode of which it is known that neither battery, capacitor nor flash saves the
    cache.

Why:
    Such a cache confirms a write before it is on a medium that keeps it. A database relies on confirmed log writes;
    after a power failure transactions that were confirmed are gone, and pages may be torn or out of order, which no
    recovery repairs. The latency measured with it is not one that may be kept.

Do:
    Set the cache to write-through, or fit or replace the battery or capacitor module and check its state. Use SSDs with
    power-loss protection. Take latency for sizing only after that.

When it is wrong:
    Data that can be made again (temporary files, a test system) may live with it. A cache that is mirrored to a second
    node with power of its own is protected in another way; say so in the inventory.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: write-back risks data on power loss, hence
    log-structured write caches. Virtuozzo Hybrid Infrastructure, general requirements for disks.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO150",
    layer=Layer.STORAGE_PATH,
    severity=Severity.CRITICAL,
    needs=("adapter.write_cache|device.write_cache", "adapter.write_cache_protected|device.write_cache_protected"),
    clears=False,  # a safe cache says nothing about latency
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per adapter and device."""

    def judge(entity: Entity, fact: Fact) -> tuple[str, Severity] | None:
        mode = str(context.inventory.get(entity, "write_cache") or "").casefold()
        if fact.value is not False or mode != "write-back":
            return None
        return f"The write-back cache of {entity.label()} is not protected against loss of power", META.severity

    for kind in (EntityKind.ADAPTER, EntityKind.DEVICE):
        yield from by_setting(context, kind, "write_cache_protected", judge, ("write_cache",))
