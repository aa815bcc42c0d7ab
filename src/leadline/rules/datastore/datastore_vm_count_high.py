"""Very many VMs share one VMFS datastore.

Finds:
    VMFS datastores (and those whose type is not known) with more than 25 VMs (info) or more than 50 (low).

Why:
    All VMs of a LUN share its queue on every host. Many of them make short bursts collide, and each power-on, snapshot
    and thin growth updates the same metadata.

Do:
    Give I/O-intensive databases LUNs of their own and spread the rest over several datastores.

When it is wrong:
    With hardware-assisted locking and deep queues a hundred idle VMs do no harm: I/O counts, not VMs. NFS, vVols and
    vSAN have no queue per datastore and are left out.

Sources:
    vCheck-vSphere: reports VMs per datastore; its default of 5 is arbitrary.
    Judgement: 25 and 50 are starting points from the time of small LUN queues.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import SettingLimit, setting_over

META = RuleMeta(
    code="DST116",
    layer=Layer.DATASTORE,
    severity=Severity.LOW,
    causes=("disk-busy-with-others",),
    needs=("datastore.vm_count",),
    thresholds={
        "warn": Threshold(25.0, "count", "Judgement: a starting point"),
        "crit": Threshold(50.0, "count", "Judgement: a starting point"),
    },
    clears=False,
    judgement=True,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per datastore."""

    def has_one_queue(_: RuleContext, datastore: Entity) -> bool:
        return context.inventory.get(datastore, "type") in (None, "vmfs")

    spec = SettingLimit(EntityKind.DATASTORE, "vm_count", "number of VMs", keep=has_one_queue)
    yield from setting_over(context, spec)
