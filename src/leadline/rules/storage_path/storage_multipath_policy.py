"""A flash array is used over one path at a time.

Finds:
    Devices on flash whose path policy is Fixed or Most Recently Used. Local devices, devices with one path and those
    claimed for active-passive arrays are left out; where the medium is not known the finding is low.

Why:
    With these policies all commands of a host go over one adapter and one array port. An active-active flash array
    answers on all its ports; its latency under load is then that of one port's queue.

Do:
    Set Round Robin for the array as its maker says, with a claim rule so that new devices get it too:
    `esxcli storage nmp device set --device DEVICE --psp VMW_PSP_RR`; then let it change paths by latency or after
    each command.

When it is wrong:
    Some arrays want Fixed with a preferred path, and disks shared by a Windows cluster needed it on old releases. The
    maker's word counts.

Sources:
    vCheck-vSphere, plug-in on path policies. vSphere 7.0 Storage guide, path selection plug-ins; Broadcom KB 371368.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.paths import FIXED, MOST_RECENTLY_USED, is_local, path_policy
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO135",
    layer=Layer.STORAGE_PATH,
    severity=Severity.MEDIUM,
    needs=("device.path_policy",),
    clears=False,  # a good policy says nothing about how quick the paths are
)
# Arrays of which one controller serves a LUN at a time.
_ACTIVE_PASSIVE = frozenset({"vmw_satp_default_ap", "vmw_satp_cx", "vmw_satp_lsi", "vmw_satp_msa"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""

    def judge(device: Entity, fact: Fact) -> tuple[str, Severity] | None:
        inventory = context.inventory
        plugin = str(inventory.get(device, "array_plugin") or "").casefold()
        medium = inventory.get(device, "medium")
        if path_policy(inventory, device) not in (FIXED, MOST_RECENTLY_USED) or medium == "hdd":
            return None
        if is_local(inventory, device) or plugin in _ACTIVE_PASSIVE or inventory.get(device, "path_count") == 1:
            return None
        known = medium == "flash"
        kind = "on flash" if known else "on a medium that is not known"
        return f"{device.label()}, {kind}, uses the path policy {fact.value}", META.severity if known else Severity.LOW

    yield from by_setting(context, EntityKind.DEVICE, "path_policy", judge, ("medium", "array_plugin", "path_count"))
