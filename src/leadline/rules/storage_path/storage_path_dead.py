"""A device has dead paths, or fewer than two that work.

Finds:
    Devices that are not local with a dead path (medium), with a single working path (medium), or with none (high). A
    single path of a device that may be a local disk is low.

Why:
    The second path is what keeps the database running when a cable, a port or a controller fails. With one path dead
    its load is on the others, and the next fault is an outage. Paths often die long before anyone looks.

Do:
    Find which path is dead (`esxcli storage core path list`) and repair it from the host outwards: transceiver,
    cable, switch port, zoning, array port, masking; then rescan. Remove paths that were given up on purpose.

When it is wrong:
    Local disks have one path; where the inventory does not say that a disk is local, its single path looks like a
    fault. A device that hyperconverged software serves on one address has one path by design.

Sources:
    vCheck-vSphere, plug-in on dead paths.
    vSphere 7.0 Storage guide, multipathing and failover: two adapters, two paths.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.paths import is_local
from leadline.estate.language.templates import setting_evidence

META = RuleMeta(
    code="STO134",
    layer=Layer.STORAGE_PATH,
    severity=Severity.HIGH,
    causes=("disk-stalled",),
    needs=("device.path_active_count|device.path_dead_count",),
    thresholds={
        "warn": Threshold(2.0, "count", "vSphere Storage guide: two paths, so that one may fail"),
        "crit": Threshold(1.0, "count", "vCheck-vSphere: none left"),
        "dead": Threshold(0.0, "count", "vCheck-vSphere: any dead path"),
    },
    clears=False,  # two working paths say nothing about how quick they are
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""
    for device in context.inventory.of_kind(EntityKind.DEVICE):
        if not is_local(context.inventory, device):
            yield from _judged(context, device)


def _judged(context: RuleContext, device: Entity) -> Iterator[Finding]:
    active = context.inventory.get(device, "path_active_count")
    dead = context.inventory.get(device, "path_dead_count") or 0
    few = active is not None and active < context.limit("warn")
    if not few and dead <= context.limit("dead"):
        return
    parts = [f"{active} working path{'' if active == 1 else 's'}"] if active is not None else []
    parts += [f"{dead} dead"] if dead else []
    none_left = active is not None and active < context.limit("crit")
    # A local disk looks like this too, unless another path is known to be or have been there.
    guess = not none_left and dead <= context.limit("dead") and _may_be_local(context, device)
    severity = META.severity if none_left else META.severity.lowered()
    yield context.finding(
        device,
        f"{device.label()} has {', '.join(parts)}",
        setting_evidence(context, device, "path_active_count", "path_dead_count", "path_count"),
        severity=Severity.LOW if guess else severity,
        guessed=(f"that {device.label()} is not a local disk",) if guess else (),
    )


def _may_be_local(context: RuleContext, device: Entity) -> bool:
    inventory = context.inventory
    count = inventory.get(device, "path_count")
    remote = inventory.get(device, "local") is False or inventory.get(device, "transport") is not None
    return not remote and (count is None or count < context.limit("warn"))
