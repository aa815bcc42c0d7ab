"""VMs that two generations of a storage carry until latency is no longer acceptable.

Setup:
    Published: five storage nodes with 42 chunk servers; more than 100 Windows VMs on the newer storage, 60 on the
    older; throughput 30 % higher. Not published: the VMs' load, the disks, and what is acceptable. Assumed: three
    copies, disks of 15,000 rpm and 10 GbE as in the vendor's other tests, 4 to 64 KB with 40 % reads at random places,
    a 95th percentile of 30 ms as acceptable, and that the newer storage does everything on a disk in 1/1.3 of the
    time.

Run:
    Cluster storage, as many VMs as the 95th percentile allows, by bisection, on either generation; the same for 20 and
    50 ms.

Limits:
    The rate of a VM is set so that the older storage carries 60 at each bound: that number is no prediction. What the
    newer generation changed but throughput is not known, and nothing else is changed here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.model.picture import Curve, Picture
from leadline.experiments import _virtuozzo as lab

META = ExperimentMeta(
    claim=(
        "on five nodes with 42 chunk servers the newer storage carries more than 100 Windows VMs at acceptable "
        "performance, the older one 60; throughput is 30 % higher"
    ),
    source="Virtuozzo Storage tests",
    verified="read",
    kind="ordering",
    by=("simulation",),
    calibrated="60 VMs on the older storage, by the rate of a VM",
)
GAIN = 1.3  # published
OLD, NEW_MIN = 60, 100  # published
NODES = [{"name": "wide", "count": 2, "disks": 9}, {"name": "node", "count": 3, "disks": 8}]  # 42 disks in all
BOUND_MS = 30.0  # Judgement: vSphere's default threshold of congestion, made before the first run
# Operations per second of a VM at which the older storage carries 60 within each bound, ms: calibrated.
RATES: Mapping[float, float] = {20.0: 17.1, BOUND_MS: 28.6, 50.0: 38.3}
BLOCKS = {4096: 50.0, 16384: 30.0, 65536: 20.0}  # Judgement: Windows servers
READ_PCT = 40.0  # Judgement: as above
COUNT_MAX = 160  # VMs tried at most


def scenario(count: int, rate: float, speed: float) -> dict[str, Any]:
    """So many VMs of that rate on disks that are ``speed`` times as fast."""
    stream = {"block": BLOCKS, "read_pct": READ_PCT, "rate_iops": rate}
    vm = {"name": "windows", "count": count, "size": "2g", "workload": {"io": [stream]}}
    timing = {"warm_up_s": 5, "measure_s": 30, "window_s": 1}
    return {**lab.cluster("replicas-3", NODES, [vm], timing=timing), "disks": [lab.disk(speed)]}


def carried(simulated: Simulated, bound_ms: float, speed: float) -> int:
    """The most VMs whose requests' 95th percentile is within the bound."""
    low, high = OLD // 2, COUNT_MAX
    while high - low > 1:
        middle = (low + high) // 2
        outcome = simulated(scenario(middle, RATES[bound_ms], speed))
        is_within = outcome.measure("cluster", "latency_ms_p95").value <= bound_ms
        low, high = (middle, high) if is_within else (low, middle)
    return low


def reproduce(simulated: Simulated) -> Findings:
    """VMs on both generations for each bound."""
    vms_by_bound = {bound: [carried(simulated, bound, speed) for speed in (1.0, GAIN)] for bound in RATES}
    old, new = vms_by_bound[BOUND_MS]
    pairs_shown = ", ".join(f"{older} to {newer} at {bound:g} ms" for bound, (older, newer) in vms_by_bound.items())
    bounds = tuple(vms_by_bound)
    return Findings(
        comparisons=(
            Published("VMs on the older storage", float(OLD), float(old), "VMs", is_calibrated=True),
            Published("VMs on the newer storage, at least", (float(NEW_MIN), float(COUNT_MAX)), float(new), "VMs"),
        ),
        checks=(
            Statement(
                "the newer storage carries more VMs, whatever latency is acceptable",
                all(newer > older for older, newer in vms_by_bound.values()),
                pairs_shown,
            ),
            Statement(
                "it carries more than its throughput is higher, as published",
                all(newer > GAIN * older for older, newer in vms_by_bound.values()),
                f"{new / old:.2f} times at {BOUND_MS:g} ms with {GAIN} times the throughput; published more than "
                f"{NEW_MIN / OLD:.2f}",
            ),
        ),
        picture=Picture(
            "acceptable 95th percentile, ms",
            "VMs",
            (
                Curve("older", bounds, tuple(float(older) for older, _ in vms_by_bound.values())),
                Curve("newer", bounds, tuple(float(newer) for _, newer in vms_by_bound.values())),
            ),
        ),
        why=(
            f"the order holds; whether more than {NEW_MIN} VMs come out depends on the latency that is acceptable, "
            f"which is not published: {pairs_shown}"
        ),
    )
