"""A vSAN policy creates disks even where it cannot be kept.

Finds:
    Virtual disks whose vSAN policy forces provisioning.

Why:
    With it vSAN stores a disk without redundancy when hosts or space are missing, and says nothing at that moment. The
    copies are made later, if ever, and cost I/O in busy hours.

Do:
    Switch force provisioning off in the policy and apply it; check that all objects comply.

When it is wrong:
    Bringing up the first host of a cluster needs it for a while.

Sources:
    vSAN Design and Sizing guide: force provisioning is for exceptions only.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import flag_is

META = RuleMeta(
    code="DST121",
    layer=Layer.DATASTORE,
    severity=Severity.MEDIUM,
    needs=("virtual-disk.vsan_force_provisioning",),
    clears=False,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per virtual disk."""
    setting = (EntityKind.VIRTUAL_DISK, "vsan_force_provisioning")
    yield from flag_is(context, setting, True, "The policy of {name} forces provisioning")
