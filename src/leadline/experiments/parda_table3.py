"""A latency threshold for four hosts before one array.

Setup:
    Four hosts, one machine each with 32 random reads of 16 KB outstanding, equal β of 1, on one array. Uncontrolled
    780, 900, 890 and 790 IOPS at 37 ms; with PARDA and a threshold of 30 ms 730, 890, 930 and 800 at 31 ms.

Run:
    Hosts before an array with 15 slots, windows of at most 32; 1,200 s after 200 s. The array's capacity is calibrated:
    3,360 requests a second, the uncontrolled total. Latencies, the total under control and the window are predicted: by
    Little's law 128 by 3,360, and 30 ms + Σβ / throughput.

Limits:
    The array treats its hosts alike; the published hosts differ by 15 % with the same β. What keeps windows apart there
    is not in the model. The number of slots is judgement: any that the windows keep busy gives the same.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.contracts.scenario import Outcome
from leadline.core.model.picture import Curve, Picture

META = ExperimentMeta(
    claim=(
        "four hosts do 3,360 IOPS together at 37 ms uncontrolled, and 3,350 at 31 ms with PARDA and a threshold of "
        "30 ms"
    ),
    source="Gulati, Ahmad and Waldspurger, PARDA (FAST 2009), table 3",
    verified="read",
    kind="numeric",
    by=("simulation", "arithmetic"),
    tolerance=0.10,
    calibrated="the uncontrolled total: the array's capacity",
)
OUTSTANDING, BETA = 32, 1.0  # of each machine, of each host. Source: as META
THRESHOLD_MS = 30.0  # Source: as META
CAPACITY = 3360.0  # per second. Calibrated
SLOTS = 15  # Judgement
HOSTS = ("host1", "host2", "host3", "host4")
PUBLISHED = {"none": (780.0, 900.0, 890.0, 790.0), "parda": (730.0, 890.0, 930.0, 800.0)}  # IOPS. Source: as META


def scenario(control: str, threshold_ms: float = THRESHOLD_MS) -> dict[str, Any]:
    """The cluster, with or without control."""
    load = {"io": [{"block": "16k", "oio": OUTSTANDING}]}
    return {
        "system": "parda",
        "timing": {"warm_up_s": 200, "measure_s": 1200, "window_s": 4},
        "control": control,
        "law": {"threshold": threshold_ms / 1e3, "beta_per_1000_shares": BETA},
        "hosts": [{"name": name, "vms": [{"name": f"vm-{name}", "workload": load}]} for name in HOSTS],
        "array": {"slots": SLOTS, "service": {"kind": "exponential", "mean": SLOTS / CAPACITY}},
    }


def reproduce(simulated: Simulated) -> Findings:
    """Without control and with it."""
    free, controlled = (simulated(scenario(control)) for control in PUBLISHED)
    latency_free, latency_controlled = (
        outcome.measure("array", "array_ms_mean").value for outcome in (free, controlled)
    )
    window = sum(controlled.measure(name, "window_count_mean").value for name in HOSTS) / len(HOSTS)
    numbers = (1.0, 2.0, 3.0, 4.0)
    return Findings(
        (
            Published("IOPS of all, uncontrolled", 3360.0, sum(rates(free)), "per_s", is_calibrated=True),
            Published("latency, uncontrolled", 37.0, latency_free, "ms"),
            Published("IOPS of all, threshold 30 ms", 3350.0, sum(rates(controlled)), "per_s"),
            Published("latency, threshold 30 ms", 31.0, latency_controlled, "ms"),
        ),
        (
            Statement(
                "windows shrink below what the machines keep outstanding",
                window < OUTSTANDING,
                f"{window:.1f} of {OUTSTANDING}; 730 to 930 IOPS at 29 to 34 ms are 25 to 27 by Little's law",
            ),
        ),
        Picture(
            "host",
            "requests per second",
            (
                Curve("uncontrolled", numbers, rates(free)),
                Curve("threshold 30 ms", numbers, rates(controlled)),
                Curve("uncontrolled", numbers, PUBLISHED["none"], is_published=True),
                Curve("threshold 30 ms", numbers, PUBLISHED["parda"], is_published=True),
            ),
        ),
    )


def rates(outcome: Outcome) -> tuple[float, ...]:
    """IOPS of each host."""
    return tuple(outcome.measure(f"vm-{name}", "iops").value for name in HOSTS)
