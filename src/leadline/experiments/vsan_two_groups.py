"""Six capacity devices in one disk group or in two: what a failed cache device takes away, and when it is rebuilt.

Setup:
    Four hosts with six capacity devices each that hold 1 TB each, behind one cache device or behind two, two copies
    of everything, a small load of writes. One cache device fails: as known to be lost (PDL) or only as absent (APD).

Run:
    The system cache-tiers: the devices behind the failed one are gone; what they held is written again to the groups
    that are left, at 500 MB/s of the cluster, at once or after the delay of the failure's kind.

Limits:
    Data is spread evenly. The rebuild has the same bandwidth in both cases; where it is bound by what each group
    takes, two groups a host have more of them left and are rebuilt in less than half the time. The delays are the
    product's settings, which the model has as defaults: the simulation shows that rebuilds keep them.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated, Statement
from leadline.core.contracts.scenario import Outcome
from leadline.experiments._vsan import group, tiers

META = ExperimentMeta(
    claim=(
        "six capacity devices in two groups instead of one halve what one cache failure takes away and halve the "
        "rebuild; a lost device is rebuilt at once, an absent one after 60 minutes"
    ),
    source="VMware vSAN disk groups, as told on vmgu.ru",
    verified="read",
    kind="exact",
    by=("simulation",),
)
DEVICES = 6
USED_GB = 1000
FAILED_AT_S = 600.0
SECONDS_PER_MINUTE = 60.0
REBUILD = "rebuild-1"


def reproduce(simulated: Simulated) -> Findings:
    """Losses and rebuilds of one group against two; delays by kind of failure."""
    one, two = (simulated(_scenario(groups, "degraded")) for groups in (1, 2))
    absent = simulated(_scenario(2, "absent"))
    lost, rebuilt = ([_value(outcome, name) for outcome in (one, two)] for name in ("lost_gib", "rebuild_s"))
    return Findings(
        comparisons=(
            Published("data lost, two groups by one", 0.5, lost[1] / lost[0]),
            Published("time of the rebuild, two groups by one", 0.5, rebuilt[1] / rebuilt[0]),
            Published(
                "absent: minutes until the rebuild", 60.0, _value(absent, "waited_s") / SECONDS_PER_MINUTE, "min"
            ),
            Published("lost: minutes until the rebuild", 0.0, _value(two, "waited_s") / SECONDS_PER_MINUTE, "min"),
        ),
        checks=(
            Statement(
                "guests write as before while there is a rebuild",
                _is_steady(one) and _is_steady(two),
                f"lost {lost[0]:,.0f} and {lost[1]:,.0f} GiB, rebuilt in {rebuilt[0]:,.0f} and {rebuilt[1]:,.0f} s",
            ),
        ),
    )


def _scenario(groups: int, kind: str) -> dict[str, Any]:
    disk_groups = group(400, DEVICES // groups, count=groups, device={"used_gb": USED_GB})
    name = "h1-g" if groups == 1 else "h1-g-1"
    return tiers(
        disk_groups,
        measure_s=20_000,
        window_s=20,
        hosts=4,
        workload={"io": [{"block": "16k", "read_pct": 0, "rate_iops": 5000}]},
        failures=[{"at": FAILED_AT_S, "group": name, "part": "cache", "kind": kind}],
        rebuild_mb_per_s=500,
    )


def _value(outcome: Outcome, name: str) -> float:
    return outcome.measure(REBUILD, name).value


def _is_steady(outcome: Outcome) -> bool:
    """Whether every window has the same rate of operations."""
    rates = [tick.per_s for tick in outcome.ticks]
    return max(rates) - min(rates) < 1e-6 * max(rates)
