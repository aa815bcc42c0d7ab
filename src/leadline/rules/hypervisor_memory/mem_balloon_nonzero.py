"""The balloon driver takes memory from a guest and gives it to the host.

Finds:
    Balloon of a VM above 0 (medium) or 1 MiB (high) for at least 15 s. Where no VM of a host shows any, the host's
    sum is looked at.

Why:
    The balloon makes the guest give up pages: first its file cache, then it swaps. A database with a fixed buffer
    pool cannot shrink it, so the guest swaps just what the database holds dear. Ballooning tells that the host is
    short of memory, or that a limit is set on the VM.

Do:
    Reserve all memory of the database VM, and take a memory limit off it if there is one. Reduce the overcommitment
    of the host. Leave the balloon driver installed: without it the host swaps instead, which is worse.

    Where the host has memory free: find the limit of this VM, or of the resource pools above it, and set it to
    unlimited; a pool's limit also holds what its other VMs use. Moving VMs away or adding memory to the host changes
    nothing.

When it is wrong:
    A balloon that is being let go shows for minutes after the shortage is over. VMs that are idle give memory without
    harm; the finding matters where a database runs.

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): the balloon must be 0.
    Yellow-Bricks esxtop thresholds: 1.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.free_hosts import FREE_MIN, USES, limits_told
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="MEM102",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.HIGH,
    causes=("memory-short",),
    needs=("memory_balloon_mib|host_memory_balloon_mib",),
    uses=USES,
    thresholds={
        "free_min": FREE_MIN,
        "warn": Threshold(
            0.0, "mib", "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL"
        ),
        "crit": Threshold(1.0, "mib", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    explains=("guest-swap-activity", "mem-compression-active"),
)

_OF_VM = Over("memory_balloon_mib", "balloon", kinds=(EntityKind.VM,))
_OF_HOST = Over("host_memory_balloon_mib", "balloon of all VMs", kinds=(EntityKind.HOST,))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM, with its memory limit if one is known; per host where no VM of it is found."""
    reported_hosts = set()
    for finding in limits_told(context, over_threshold(context, _OF_VM)):
        reported_hosts.add(finding.entity.ancestor(EntityKind.HOST))
        limit = context.inventory.fact(finding.entity, "memory_limit_mib")
        if limit is None or limit.value < 0:  # -1 is the API's "no limit"
            yield finding
            continue
        note = Evidence(
            f"the memory limit of {finding.entity.label()} is {show(limit.value, 'mib')}",
            entity=finding.entity,
            value=float(limit.value),
            unit="mib",
            source=limit.source,
        )
        yield replace(finding, evidence=(*finding.evidence, note))
    yield from (finding for finding in over_threshold(context, _OF_HOST) if finding.entity not in reported_hosts)
