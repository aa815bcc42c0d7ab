"""The hypervisor swaps a VM's memory to or from disk.

Finds:
    Host-level swap-in or swap-out of a VM above 0 (high) or 1 MiB/s (critical) for at least 15 s. Where no VM of a
    host shows any, the host's own swap rates are looked at.

Why:
    Swapping is the hypervisor's last resort when memory is short: it takes pages without knowing what is in them.
    The database sees memory it believes to be RAM answer at the speed of a disk, and nothing inside the guest
    explains it.

Do:
    Reserve all memory of the database VM and take memory limits off it. Reduce the overcommitment of the host: move
    VMs away, shrink those with memory to spare, or add memory.

    Where the host has memory free: find the limit of this VM, or of the resource pools above it, and set it to
    unlimited; a pool's limit also holds what its other VMs use. Moving VMs away or adding memory to the host changes
    nothing.

When it is wrong:
    Swap-in may be the late echo of a shortage that is over. The rates are of the hypervisor's swap file; swapping
    inside the guest is another rule's (guest-swap-activity).

Sources:
    Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides): both rates must be 0.
    Yellow-Bricks esxtop thresholds: 1.
    Judgement: 15 s is three samples of esxtop's default 5 s.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_any
from leadline.rules._families.free_hosts import FREE_MIN, USES, limits_told
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="MEM101",
    layer=Layer.HYPERVISOR_MEMORY,
    severity=Severity.CRITICAL,
    causes=("memory-short", "swapping"),
    needs=(
        "memory_swap_read_mib_per_s|memory_swap_write_mib_per_s"
        "|host_memory_swap_read_mib_per_s|host_memory_swap_write_mib_per_s",
    ),
    uses=(*USES, "memory_balloon_mib"),
    thresholds={
        "free_min": FREE_MIN,
        "warn": Threshold(
            0.0, "mib_per_s", "Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL"
        ),
        "crit": Threshold(1.0, "mib_per_s", "Yellow-Bricks esxtop thresholds"),
        "duration": THREE_SAMPLES,
    },
    explains=(
        "cpu-swpwt-high",
        "mem-compression-active",
        "mem-swapped-nonzero",
        "mem-latency-high",
        "guest-run-queue-high",
        "guest-load-average-per-core",
        "guest-steal-time",
    ),
)

_OF_VM = (
    Over("memory_swap_read_mib_per_s", "hypervisor swap-in", kinds=(EntityKind.VM,)),
    Over("memory_swap_write_mib_per_s", "hypervisor swap-out", kinds=(EntityKind.VM,)),
)
_OF_HOST = (
    Over("host_memory_swap_read_mib_per_s", "swap-in of the host", kinds=(EntityKind.HOST,)),
    Over("host_memory_swap_write_mib_per_s", "swap-out of the host", kinds=(EntityKind.HOST,)),
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; per host where none of its VMs is found to swap."""
    of_vms = list(limits_told(context, over_any(context, _OF_VM)))
    yield from of_vms
    reported_hosts = {finding.entity.ancestor(EntityKind.HOST) for finding in of_vms}
    yield from (finding for finding in over_any(context, _OF_HOST) if finding.entity not in reported_hosts)
