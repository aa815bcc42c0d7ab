"""A VM's disk on vSAN has lost a part: reads come from what is left, and a rebuild may be under way.

Finds:
    Virtual disks whose vSAN object is not healthy, or with a component that is absent or degraded. Critical where the
    object is not accessible, high where it tolerates fewer failures than its policy asks for, medium where it only is
    being moved or does not comply.

Why:
    A copy that is missing takes no reads, so the other one takes all. While it is rebuilt, the same disks also copy
    everything to a new place. The next failure may stop the VM.

Do:
    See which host or device is missing: it stands in the evidence. Bring the host back before the repair delay is over
    (60 minutes), or let vSAN rebuild and do not load the cluster meanwhile. Where it says that there is no rebuild,
    there is no place for one: free space, or add a host.

When it is wrong:
    A host in maintenance mode makes its components absent on purpose, for as long as it takes.

Sources:
    VMware vSAN documentation, object health states and component states (absent, degraded).
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="DST191",
    layer=Layer.DATASTORE,
    severity=Severity.HIGH,
    needs=("virtual-disk.vsan_object_health",),
    uses=("virtual-disk.vsan_placement", "virtual-disk.vsan_absent_component_count"),
    clears=False,
)
_MINOR = ("datamove", "nonavailability")


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        health = str(fact.value).casefold()
        absent = context.inventory.get(disk, "vsan_absent_component_count") or 0
        if health == "healthy" and not absent:
            return None
        if "inaccessible" in health:
            return f"{disk.label()} is not accessible on vSAN", Severity.CRITICAL
        if health.startswith(_MINOR) and not absent:
            return f"{disk.label()} does not comply with its vSAN policy: {fact.value}", Severity.MEDIUM
        lost = f"{absent} of its components absent" if absent else str(fact.value)
        return f"{disk.label()} has less redundancy on vSAN than its policy asks for: {lost}", META.severity

    beside = ("vsan_placement",)
    yield from by_setting(context, EntityKind.VIRTUAL_DISK, "vsan_object_health", judge, beside)
