"""A log-structured write cache against one in memory: what random writes become, and what a power loss takes away.

Setup:
    Random writes of 4 KiB over 4 GiB, 16 outstanding, to a disk of 7,200 rpm; 64 MiB of memory that is flushed as it
    was filled, or as much of a log on a SATA SSD (490 MB/s, 36 us), destaged in the order of addresses. The source
    has no numbers; disk and SSD are typical ones.

Run:
    The system write-cache with each kind of cache: a burst that fits the log, and a load that goes on until every
    cache is full. At the beginning of each of the windows the contents are rebuilt as after a power loss.

Limits:
    The disk's gain with a full cache is that of the order of addresses, which memory could use as well: with it,
    memory writes as many. Only what survives a power loss is the log's alone. Memory is neither mirrored nor backed
    by a battery, as in the source.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Simulated, Statement
from leadline.core.contracts.scenario import Outcome

META = ExperimentMeta(
    claim=(
        "a log-structured write-back cache turns random writes into sequential ones and loses nothing acknowledged at "
        "power loss, unlike a RAM write-back cache"
    ),
    source="StarWind, Log-structured Write Cache, announcement",
    verified="second",
    kind="ordering",
    by=("simulation",),
)
GUESTS = "guests"
# Source: Intel, DC S4600, product specification.
LOG = {"latency": "36us", "mb_per_s": 490}
# Judgement: seeks of 0.5 to 15 ms (8.5 ms on average) and 200 MB/s are those of disks of 7,200 rpm.
DISK = {"seek_least": "0.5ms", "seek_most": "15ms", "rpm": 7200, "mb_per_s": 200}
KINDS = ("write-through", "ram-write-back", "log-structured")
SIZE = "64m"
GAIN_MIN = 10.0  # Judgement: what another order of speed is


def reproduce(simulated: Simulated) -> Findings:
    """Order of the caches by speed, and what each loses."""
    burst = simulated(_scenario("log-structured", size="1g", warm_up_s=0, measure_s=2, window_s=0.1))
    full = {kind: simulated(_scenario(kind)) for kind in KINDS}
    sorted_memory = simulated(_scenario("ram-write-back", order="address"))
    disk, memory, log = (_value(full[kind], "iops") for kind in KINDS)
    first = _value(burst, "iops")
    lost = {kind: _value(outcome, "lost_mib_max") for kind, outcome in full.items()}
    random_pct = _value(full["write-through"], "disk_sequential_pct")
    return Findings(
        checks=(
            Statement(
                "random writes to the disk become appends to the log, at another order of speed",
                first > GAIN_MIN * disk and random_pct < 1.0,
                f"{first:,.0f} writes/s into the log, {_value(burst, 'log_blocks_mean'):.1f} with each append; "
                f"{disk:,.0f} to the disk, {random_pct:.2g} % of them sequential",
            ),
            Statement(
                "behind a full cache the log still writes more than memory flushed as it was filled",
                log > memory and log > disk,
                f"{log:,.0f} writes/s behind the log, {memory:,.0f} behind memory, {disk:,.0f} without a cache; memory "
                f"flushed by address {_value(sorted_memory, 'iops'):,.0f}",
            ),
            Statement(
                "nothing acknowledged by the log is lost, at none of the moments looked at",
                lost["log-structured"] == 0.0 and _value(burst, "lost_mib_max") == 0.0,
                f"{len(full['log-structured'].ticks) + len(burst.ticks)} moments",
            ),
            Statement(
                "memory loses what it holds",
                lost["ram-write-back"] > 0.0 and _value(sorted_memory, "lost_mib_max") > 0.0,
                f"up to {lost['ram-write-back']:.1f} MiB of {SIZE}; write-through {lost['write-through']:.0f} MiB",
            ),
        ),
        why="where memory is flushed in the order of addresses the difference in speed is gone, that in safety stays",
    )


def _scenario(kind: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - parts of a scenario
    timing = {
        name: more.pop(name, default_s) for name, default_s in (("warm_up_s", 150), ("measure_s", 60), ("window_s", 1))
    }
    order = "address" if kind == "log-structured" else "arrival"
    return {
        "name": "write-cache",
        "system": "write-cache",
        "timing": timing,
        "cache": kind,
        "size": SIZE,
        "order": order,
        "workload": {"io": [{"block": "4k", "read_pct": 0, "oio": 16, "working_set": "4g"}]},
        "log": LOG,
        "disk": DISK,
        **more,
    }


def _value(outcome: Outcome, name: str) -> float:
    return outcome.measure(GUESTS, name).value
