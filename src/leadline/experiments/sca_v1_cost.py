"""What the side-channel-aware schedulers cost: version 1 up to 30 % on a full host, version 2 gives most of it back.

Setup:
    Twelve VMs of 8 vCPUs, and six of 16, with database loads on the host of the other CPU figures: wanting twice
    what it can do, and three quarters of it.

Run:
    Throughput of all VMs under the default scheduler, version 1 (one thread of each core) and version 2 (the threads of
    a core only to one VM).

Limits:
    What version 1 loses on a full host is the gain of second threads, g / (1 + g): 23 % with Intel's 30 %, just within
    the tolerance of the published 30 %, itself an "up to". On a host that is wanted 1.3 times instead of twice it is
    22 %, just outside. The published exception, one VM of 192 vCPUs for which version 2 was less than 11 % better, is
    not simulated: in this model version 2 lets a single VM use every thread, so that it would gain most.
"""

from __future__ import annotations

from math import inf

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.experiments import _cpu_24_cores as setup

META = ExperimentMeta(
    claim=(
        "version 1 of the side-channel-aware scheduler costs up to 30 % on a full host and little at 75 % load; "
        "version 2 is at least 11 % better than version 1, but for one VM of 192 vCPUs"
    ),
    source="VMware, Performance of vSphere 6.7 scheduling options (2019), as vmgu.ru quotes it",
    verified="second",
    kind="numeric",
    by=("simulation",),
    tolerance=0.25,
    calibrated=f"{setup.CALIBRATED_THINK} (point of another figure)",
    adjusted="what a full host wants (1.3, then 2 times what it can do) and what its capacity leaves out",
)
# What is wanted, by what the host can do. Judgement: "fully utilised" is a host whose guests never have an idle vCPU.
FULL, THREE_QUARTERS = 2.0, 0.75
SIZES = ((12, 8), (6, 16))  # VMs and their vCPUs: twice as many vCPUs as threads
WHY = (
    "what version 1 loses is the gain of second threads, g / (1 + g): 23 % at most with the gain used here, the 30 % "
    "of the source would take a gain of 43 %; the exception of one VM of 192 vCPUs is not simulated"
)


def reproduce(simulated: Simulated) -> Findings:
    """Throughput under each scheduler, at both loads and both sizes."""
    # What the host can do for its guests, beside its own work for them.
    capacity = setup.CORES * (1.0 + setup.THREAD_GAIN_PCT / 100.0) / (1.0 + setup.OVERHEAD_PCT / 100.0)

    def rate(scheduler: str, wanted: float, count: int, vcpus: int) -> float:
        load = setup.load(wanted * capacity / count)
        vms = [
            {"name": f"vm{n}", "vcpus": vcpus, "overhead_pct": setup.OVERHEAD_PCT, "load": load} for n in range(count)
        ]
        outcome = simulated(setup.host(vms, scheduler=scheduler))
        return sum(setup.value(outcome, "transactions_per_s", f"vm{n}") for n in range(count))

    comparisons, losses = [], []
    for count, vcpus in SIZES:
        size = f"{count} VMs of {vcpus}"
        default, first, second = (rate(name, FULL, count, vcpus) for name in ("default", "sca-v1", "sca-v2"))
        part, part_first = (rate(name, THREE_QUARTERS, count, vcpus) for name in ("default", "sca-v1"))
        full_loss, part_loss = first / default - 1.0, part_first / part - 1.0
        comparisons += [
            Published(f"v1, full host, {size}", -0.30, full_loss),
            Published(f"v1 at 75 %, {size}", (-0.05, 0.05), part_loss),
            Published(f"v2 over v1, full host, {size}", (0.11, inf), second / first - 1.0),
        ]
        losses.append((full_loss, part_loss, size))
    return Findings(
        comparisons=tuple(comparisons),
        checks=(
            Statement(
                "version 1 costs far less at 75 % load than on a full host",
                all(part > 0.5 * full for full, part, _ in losses),
                "; ".join(f"{size}: {100 * part:+.1f} % and {100 * full:+.1f} %" for full, part, size in losses),
            ),
        ),
        why=WHY,
    )
