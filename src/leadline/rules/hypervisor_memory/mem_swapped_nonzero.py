"""Part of a VM's memory lies in the hypervisor's swap file since an earlier shortage.

Finds:
    At least 1 MiB of a VM's memory swapped out by the hypervisor, for at least 15 s. Where no VM of a host shows any,
    the host's sum is looked at.

Why:
    The pages were taken while the host was short of memory, which may be over. They come back one by one, each at the
    speed of a disk and only when something touches them: a report that runs once a week, a checkpoint, a backup. Until
    then nothing in the guest shows that part of what it calls RAM is a file.

Do:
    Find out when the host was short (balloon, swap rates, a host in maintenance) and take the cause away. Bring the
    pages back while nobody waits for them: move the VM to a host with free memory, or restart it in a maintenance
    window. Reserve all memory of a database VM, then it cannot be swapped.

When it is wrong:
    A VM that is being swapped right now is mem-swap-rate-nonzero's. Pages that are never touched again harm nobody.

Sources:
    Yellow-Bricks esxtop thresholds: SWCUR 1. EsxtopDrill c_map.csv. vCheck for vSphere: VMs ballooning or swapping.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="MEM130",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.MEDIUM,
    causes=("memory-short",),
    needs=("memory_swapped_mib|host_memory_swapped_mib",),
    thresholds={
        "warn": Threshold(1.0, "mib", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    clears=False,  # nothing swapped says nothing of a shortage that balloons
)

_OF_VM = Over("memory_swapped_mib", "memory swapped out", kinds=(EntityKind.VM,), inclusive=True)
_OF_HOST = Over("host_memory_swapped_mib", "memory of all VMs swapped out", kinds=(EntityKind.HOST,), inclusive=True)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; per host where no VM of it is found."""
    of_vms = list(over_threshold(context, _OF_VM))
    yield from of_vms
    reported_hosts = {finding.entity.ancestor(EntityKind.HOST) for finding in of_vms}
    yield from (finding for finding in over_threshold(context, _OF_HOST) if finding.entity not in reported_hosts)
