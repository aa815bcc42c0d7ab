"""A disk has an IOPS limit and nobody wrote down why.

Finds:
    Virtual disks with an IOPS limit whose note in the inventory is empty, or that have no note while other limits in
    the inventory have one.

Why:
    A limit outlives its reason. Years later its latency is taken for slow storage, and hardware is bought against a
    number in a policy.

Do:
    Write the reason, the owner and the date into the VM's notes or a tag, or remove the limit.

When it is wrong:
    The reason may be kept elsewhere; put it into the inventory's `iops_limit_note`.

Sources:
    vmgu.ru articles on vSphere, vSAN and StarWind performance: set limits with care and document them.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST112",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    causes=("disk-capped",),
    needs=("virtual-disk.iops_limit", "virtual-disk.iops_limit_note"),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        note = context.inventory.get(disk, "iops_limit_note")
        if fact.value <= 0 or (note is not None and str(note).strip()):
            return None
        return f"{disk.label()} is limited to {fact.value:g} IOPS and no note says why", META.severity

    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "iops_limit", judge)
