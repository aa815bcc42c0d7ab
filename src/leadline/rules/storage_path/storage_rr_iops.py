"""Round Robin stays on a path for a thousand commands.

Finds:
    Devices with Round Robin that change the path after 1000 commands or more. The latency-based mode, a limit in bytes
    and devices on rotating disks are left out.

Why:
    For the time of a thousand commands one path has all the work and the others rest: its queue is as deep as with a
    fixed path, and a slow or lossy path is noticed late.

Do:
    Follow the array's maker: most flash arrays want a change after every command (`--type=iops --iops=1`) or the
    latency-based mode, which samples 16 commands per path every 3 minutes. Set it in a claim rule, so that new
    devices get it: `esxcli storage nmp psp roundrobin deviceconfig set`.

When it is wrong:
    It depends on the array; some ask for the default. With little load it makes no difference.

Sources:
    Pure Storage and vmanalyst.com, Round Robin with one I/O per path. vSphere 7.0 Storage guide, latency mechanism of
    Round Robin (16 samples, 180 s); Broadcom KB 371368: 1000 is the default.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.paths import ROUND_ROBIN, path_policy
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="STO136",
    layer=Layer.STORAGE_PATH,
    severity=Severity.LOW,
    needs=("device.rr_switch_count",),
    thresholds={"warn": Threshold(1000.0, "count", "Broadcom KB 371368: the default, inclusive")},
    clears=False,  # how paths take turns says nothing about how quick they are
)
_OTHER_MODES = frozenset({"latency", "bytes"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per device."""

    def judge(device: Entity, fact: Fact) -> tuple[str, Severity] | None:
        inventory = context.inventory
        mode = str(inventory.get(device, "rr_mode") or "").casefold()
        if mode in _OTHER_MODES or inventory.get(device, "medium") == "hdd":
            return None
        if path_policy(inventory, device) not in (None, ROUND_ROBIN) or fact.value < context.limit("warn"):
            return None
        return f"Round Robin of {device.label()} changes the path after {fact.value} commands only", META.severity

    yield from by_setting(context, EntityKind.DEVICE, "rr_switch_count", judge, ("rr_mode", "path_policy"))
