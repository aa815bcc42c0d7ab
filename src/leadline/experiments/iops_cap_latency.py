"""Latency under an IOPS limit, with the load unchanged.

Setup:
    A virtual disk with an IOPS limit of 200, then of 400; about 116 operations outstanding all the time; a device far
    faster than the limit.

Run:
    The storage path with 116 requests outstanding behind a limit that delays, measured for 300 s after 30 s. By
    Little's law latency is 116 by the limit.

Limits:
    116 outstanding come from the published setup, where they follow from 580 ms at 200 IOPS: what is predicted is the
    latency under the other limit, and that it is the limit, not the device, which takes the time.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.contracts.scenario import Outcome
from leadline.core.model.picture import Curve, Picture

META = ExperimentMeta(
    claim="a VM limited to 200 IOPS shows about 580 ms, limited to 400 about 230 to 290 ms, under the same load",
    source="vmgu.ru, on IOPS limits of vSAN objects",
    verified="read",
    kind="numeric",
    by=("simulation", "arithmetic"),
    tolerance=0.05,
)
OUTSTANDING = 116  # Source: the published setup
SERVICE = "200us"  # Judgement: an SSD; any device far faster than the limit gives the same
LIMITS = (100, 200, 300, 400, 800)


def scenario(limit: int) -> dict[str, Any]:
    """A VM behind that limit."""
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 30, "measure_s": 300, "window_s": 10},
        "vms": [
            {
                "name": "db01",
                "adapter_depth": 256,
                "iops_limit": limit,
                "workload": {"io": [{"block": "8k", "read_pct": 70, "oio": OUTSTANDING}]},
            }
        ],
        "hosts": [{"name": "esx01", "queue_depth": 256}],
        "devices": [{"name": "ssd", "parallelism": 8, "service": {"kind": "exponential", "mean": SERVICE}}],
    }


def reproduce(simulated: Simulated) -> Findings:
    """Latency at each limit."""
    outcomes = {limit: simulated(scenario(limit)) for limit in LIMITS}
    latency = {limit: outcome.measure("db01", "latency_ms_mean").value for limit, outcome in outcomes.items()}
    return Findings(
        (
            Published("mean latency at 200 IOPS", 580.0, latency[200], "ms"),
            Published("mean latency at 400 IOPS", (230.0, 290.0), latency[400], "ms"),
        ),
        (
            Statement(
                "the limit is what is waited for, not the device",
                all(_waiting(outcome, "limit") > 0.99 * OUTSTANDING for outcome in outcomes.values()),
                f"of {OUTSTANDING} outstanding {_waiting(outcomes[200], 'limit'):.1f} wait at a limit of 200",
            ),
        ),
        Picture(
            "IOPS limit",
            "mean latency, ms",
            (
                Curve("latency", tuple(map(float, LIMITS)), tuple(latency.values())),
                Curve("latency", (200.0, 400.0, 400.0), (580.0, 230.0, 290.0), is_published=True),
            ),
        ),
    )


def _waiting(outcome: Outcome, stage: str) -> float:
    """Mean number of requests that wait at a stage."""
    return outcome.measure("db01", f"{stage}_count_mean").value
