"""The guest sorts requests for a virtual disk that the hypervisor sorts again.

Finds:
    Block devices of a virtual machine with the I/O scheduler bfq or cfq (medium), or one of the deadline family or
    kyber (low).

Why:
    The guest does not know what lies behind its virtual disk. Sorting and merging by sector order serves a single
    rotating disk; on shared or flash storage it holds requests back, takes a lock and costs CPU per request. cfq and
    bfq also idle on purpose, waiting for a neighbouring request.

Do:
    Use none (multi-queue kernels) or noop (older ones): a udev rule that sets ATTR{queue/scheduler}="none" for the
    database's disks, or a tuned profile.

When it is wrong:
    Where the guest shares one slow disk among several users, a scheduler is the only thing that gives each its share. A
    disk passed through to the guest is not scheduled below.

Sources:
    Oracle Databases on VMware Best Practices Guide: noop or none. dbcloudshifu.com: round robin and noop for all-flash.
    Linux kernel documentation, block/switching-sched.
    Judgement: low for mq-deadline and kyber, which do not idle.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.entities import Entity, Fact
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.knowledge.guest_settings import is_virtual
from leadline.estate.language.templates import by_setting

META = RuleMeta(
    code="GST140",
    layer=Layer.GUEST,
    severity=Severity.MEDIUM,
    needs=("block-device.scheduler",),
    clears=False,
)
_IDLING = frozenset({"cfq", "bfq"})
_SORTING = frozenset({"mq-deadline", "deadline", "kyber"})


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per block device of a guest that is known to be virtual."""

    def judge(disk: Entity, fact: Fact) -> tuple[str, Severity] | None:
        guest = disk.ancestor(EntityKind.GUEST)
        name = str(fact.value).casefold()
        if guest is None or name not in _IDLING | _SORTING or not is_virtual(context.inventory, guest):
            return None
        severity = META.severity if name in _IDLING else META.severity.lowered()
        return f"{disk.label()} is scheduled by {name} in the guest and again below", severity

    yield from by_setting(context, EntityKind.BLOCK_DEVICE, "scheduler", judge)
