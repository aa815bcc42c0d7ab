"""vCPUs lose time to contention for the CPU in any of its forms: waiting, sharing a core, a core clocked down.

Finds:
    CPU latency per vCPU above 5 % (low) or 10 % (medium) for at least 15 s, while the VM uses at least 5 % of its
    vCPUs. Ready time and co-stop recorded at the same time are added to the evidence.

Why:
    The counter adds up everything that keeps a vCPU from the work a whole core at nominal speed would have done. It
    sees what ready time does not: two vCPUs on the threads of one core slow each other down, and so does a power
    policy that clocks the core down. To the database all of it is CPU time without progress.

Do:
    Split it first. Where ready time and co-stop account for it, follow those. Where they do not, vCPUs share cores or
    the cores are clocked down: set the host's power policy to high performance, in the firmware too, and take VMs or
    vCPUs off the host until busy vCPUs have cores of their own.

When it is wrong:
    Next to a nearly idle VM the counter is noisy; the least CPU use leaves such VMs out. On a hyper-threaded host some
    of it belongs to normal use of the second threads, and throughput of the whole host is still higher with them.

Sources:
    VMware, Interpreting esxtop statistics: %LAT_C is the share of time lost to contention, no number.
    Judgement: 5 % and 10 % are those of ready time, which is its largest part; 5 % CPU use tells a working VM from an
    idle one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from leadline.core.contracts.rule import RuleContext, RuleMeta, Threshold
from leadline.core.model.finding import Evidence, Finding
from leadline.core.model.units import show
from leadline.core.model.vocabulary import EntityKind, Layer, Severity
from leadline.estate.derived.series import mean_of
from leadline.estate.language.templates import Over, over_threshold
from leadline.rules._families.limits import THREE_SAMPLES

META = RuleMeta(
    code="CPU130",
    layer=Layer.HYPERVISOR_CPU,
    severity=Severity.MEDIUM,
    causes=("cpu-taken",),
    needs=("cpu_latency_pct",),
    uses=("cpu_used_pct", "cpu_ready_pct", "cpu_costop_pct"),
    thresholds={
        "warn": Threshold(5.0, "pct", "Judgement: the warning limit of ready time"),
        "crit": Threshold(10.0, "pct", "Judgement: the critical limit of ready time"),
        "load_min": Threshold(5.0, "pct", "Judgement: a VM below this use of its vCPUs is idle"),
        "duration": THREE_SAMPLES,
    },
    explains=("guest-run-queue-high", "guest-load-average-per-core"),
    clears=False,  # ready time and co-stop are what examines the layer
    judgement=True,
)

_SPEC = Over(
    metric="cpu_latency_pct",
    noun="CPU latency per vCPU",
    kinds=(EntityKind.VCPU, EntityKind.VM),
    load=("cpu_used_pct",),
    roll_up=EntityKind.VM,
)
_PARTS = (("cpu_ready_pct", "ready time"), ("cpu_costop_pct", "co-stop"))


def check(context: RuleContext) -> Iterator[Finding]:
    """Findings per VM, with what ready time and co-stop were meanwhile."""
    for finding in over_threshold(context, _SPEC):
        yield replace(finding, evidence=(*finding.evidence, *_split(context, finding)))


def _split(context: RuleContext, finding: Finding) -> Iterator[Evidence]:
    worst = finding.evidence[0].entity
    if worst is None:
        return
    for metric, noun in _PARTS:
        mean = mean_of(context, metric, worst, finding.windows)
        if mean is not None:
            yield Evidence(
                f"of it, {noun} of {worst.label()}: mean {show(mean, 'pct')}",
                metric=metric,
                entity=worst,
                statistic="mean",
                value=mean,
                unit="pct",
            )
