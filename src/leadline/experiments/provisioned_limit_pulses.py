"""A disk limited to 1,000 IOPS, tested at the rate it was sold for and without bounds.

Setup:
    A disk with a provisioned limit of 1,000 IOPS. fio once with rates of 700 reads and 300 writes a second, once with
    256 outstanding and no rate.

Run:
    The storage path with even arrivals of 700 and 300 a second for 120 s, then the closed loop of 256, each with the
    limit; and the paced load once without it, for the disk's true latency.

Limits:
    The limit lets 100 operations go at once after an idle time, a tenth of a second's worth, as the block layer of QEMU
    does when no other burst is set (judgement for the source's cloud, whose throttle is not described). Without any
    burst two paced streams that together use the whole limit wait for each other by a millisecond.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement

META = ExperimentMeta(
    claim=(
        "fio at 700 reads and 300 writes a second on a disk limited to 1,000 IOPS shows the true latency; with 256 "
        "outstanding and no rate it shows many times as much, at 1,000 IOPS all the same"
    ),
    source="Cloud4Y, on diagnosing disk subsystems with iostat and fio",
    verified="read",
    kind="numeric",
    by=("simulation", "arithmetic"),
    tolerance=0.05,
)
LIMIT, READS, WRITES, DEPTH = 1000, 700, 300, 256  # Source: as META
BURST = 100  # operations. Source: QEMU, util/throttle.c: without a maximum of its own a bucket holds 100 ms
SERVICE_MS = 0.5  # Judgement: a network SSD
MANY = 10.0  # Judgement: what "many times" means at least


def scenario(io: dict[str, Any], limit: int | None) -> dict[str, Any]:
    """The disk under one of the loads."""
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 10, "measure_s": 120, "window_s": 1},
        "vms": [
            {
                "name": "db01",
                "adapter_depth": 512,
                "iops_limit": limit,
                "iops_burst": BURST,
                "workload": {"io": [{"block": "4k", **io}]},
            }
        ],
        "hosts": [{"name": "host01", "queue_depth": 512}],
        "devices": [
            {"name": "ssd", "parallelism": 32, "service": {"kind": "lognormal", "mean": f"{SERVICE_MS}ms", "cv": 0.3}}
        ],
    }


def reproduce(simulated: Simulated) -> Findings:
    """Rates and latencies of both loads."""
    paced = {"rate_iops": {"read": READS, "write": WRITES}, "arrivals": "even"}
    pulses = simulated(scenario(paced, LIMIT))
    flood = simulated(scenario({"oio": DEPTH, "read_pct": 70}, LIMIT))
    true_ms = simulated(scenario(paced, None)).measure("db01", "latency_ms_mean").value
    rates = {part.name: part.per_s for result in pulses.results for part in result.operations}
    pulses_ms, flood_ms = (outcome.measure("db01", "latency_ms_mean").value for outcome in (pulses, flood))
    return Findings(
        (
            Published("reads at a rate of 700", float(READS), rates.get("read", float("nan")), "per_s"),
            Published("writes at a rate of 300", float(WRITES), rates.get("write", float("nan")), "per_s"),
            Published("operations with 256 outstanding", float(LIMIT), flood.measure("db01", "iops").value, "per_s"),
        ),
        (
            Statement(
                "at the rate it was sold for, the limited disk shows its true latency",
                abs(pulses_ms / true_ms - 1.0) <= META.tolerance,
                f"{pulses_ms:.3g} ms with the limit, {true_ms:.3g} ms without",
            ),
            Statement(
                "without bounds, throttling makes latency many times higher",
                flood_ms >= MANY * pulses_ms,
                f"{flood_ms:.0f} ms, {flood_ms / pulses_ms:.0f} times; by Little's law 256 by 1,000 a second is 256 ms",
            ),
        ),
    )
