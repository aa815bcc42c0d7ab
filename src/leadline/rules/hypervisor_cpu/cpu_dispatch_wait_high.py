"""vCPUs of a VM on Hyper-V wait long for a physical CPU each time they are to run.

Finds:
    CPU wait time per dispatch of a vCPU above 60 µs (low) or 100 µs (medium) for at least 15 s, while the VM uses at
    least 5 % of its vCPUs.

Why:
    Hyper-V puts a vCPU that has work onto a physical CPU thousands of times a second. This counter is the average
    wait of one such time; what VMware calls ready time. It grows when more vCPUs want to run than there are physical
    CPUs. A database pays it again with every request that blocks and wakes, above all with commits.

Do:
    Compare with the host: where its logical processors are above 70 % busy, move VMs away or take vCPUs off VMs that
    do not use theirs. Where they are not, look for a cap or a low relative weight: Get-VMProcessor NAME | fl Maximum,
    RelativeWeight. Expect the wait to fall below 60 µs.

When it is wrong:
    The counter is an average per dispatch, not a share of time: a VM that is dispatched rarely loses little even when
    each wait is long; the least CPU use leaves idle VMs out. It says nothing of how often a vCPU is dispatched, so it
    cannot be turned into a percentage.

Sources:
    Microsoft's explanation of the counter: the average time, in nanoseconds, spent waiting for a virtual processor to
    be dispatched onto a logical processor.
    Quest Spotlight on SQL Server, Virtualization Overhead: alarms above 60,000 ns and 100,000 ns.
    Judgement: 5 % CPU use tells a working VM from an idle one.
"""

from __future__ import annotations

from collections.abc import Iterator

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="CPU199",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    causes=("cpu-taken",),
    needs=("cpu_dispatch_wait_us",),
    uses=("cpu_run_pct",),
    thresholds={
        "warn": Threshold(60.0, "us", "Quest Spotlight, Virtualization Overhead: alarm above 60,000 ns"),
        "crit": Threshold(100.0, "us", "Quest Spotlight, Virtualization Overhead: high alarm above 100,000 ns"),
        "load_min": Threshold(5.0, "pct", "Judgement: a VM below this use of its vCPUs is idle"),
        "duration": THREE_SAMPLES,
    },
    explains=("guest-run-queue-high", "guest-load-average-per-core"),
    examines="CPU wait time per dispatch",
)

_SPEC = Over(
    metric="cpu_dispatch_wait_us",
    noun="CPU wait time per dispatch",
    kinds=(EntityKind.VCPU, EntityKind.VM),
    load=("cpu_run_pct",),
    roll_up=EntityKind.VM,
)


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM; the worst vCPUs are the evidence."""
    yield from over_threshold(context, _SPEC)
