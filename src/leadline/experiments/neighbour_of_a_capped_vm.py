"""A copy between a VM with an IOPS limit and one without.

Setup:
    Files are copied from the disk of a VM without a limit to that of one with 100 IOPS, and the other way round; beside
    it the same copies with no limit at all.

Run:
    The storage path with a copy of 8 blocks of 32 KB at a time: each is read from one disk and, when it is there,
    written to the other. 120 s for each of four cases.

Limits:
    The copy's depth and block and the limit are not part of the published claim; any limit below what the copy would do
    shows the same. Caches of the guests are left out.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Simulated, Statement
from leadline.core.model.picture import Curve, Picture

META = ExperimentMeta(
    claim=(
        "copying between a VM with an IOPS limit and one without lowers the IOPS of the one without as well, but does "
        "not raise its latency"
    ),
    source="vmgu.ru, on IOPS limits of vSAN objects",
    verified="read",
    kind="ordering",
    by=("simulation",),
)
LIMIT = 100  # Judgement: far below what the copy does without it
SERVICE_MS = 10.0  # Judgement: disks
BLOCKS_AT_A_TIME = 8  # Judgement: as a file copy keeps under way
LOWER, SAME = 0.5, 0.05  # Judgement: "lowers" is to less than half, latency "as before" within 5 %
FREE, CAPPED = "files01", "capped01"


def scenario(read: str, write: str, limit: int | None) -> dict[str, Any]:
    """A copy from one to the other."""
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 10, "measure_s": 120, "window_s": 1},
        "vms": [{"name": FREE}, {"name": CAPPED, "iops_limit": limit}],
        "copies": [{"read": read, "write": write, "block": "32k", "oio": BLOCKS_AT_A_TIME}],
        "devices": [
            {
                "name": "disks",
                "parallelism": 64,
                "service": {"kind": "lognormal", "mean": f"{SERVICE_MS}ms", "cv": 0.5},
            }
        ],
    }


def reproduce(simulated: Simulated) -> Findings:
    """Both directions with and without the limit."""
    checks: list[Statement] = []
    curves: list[Curve] = []
    for read, write in ((FREE, CAPPED), (CAPPED, FREE)):
        before, after = (simulated(scenario(read, write, limit)) for limit in (None, LIMIT))
        rates = [outcome.measure(FREE, "iops").value for outcome in (before, after)]
        times = [outcome.measure(FREE, "latency_ms_mean").value for outcome in (before, after)]
        capped_ms = after.measure(CAPPED, "latency_ms_mean").value
        way = f"from {read} to {write}"
        checks += [
            Statement(
                f"copying {way}, the VM without a limit loses IOPS as well",
                rates[1] < LOWER * rates[0],
                f"{rates[0]:.0f} to {rates[1]:.0f} per second, limit of the other {LIMIT}",
            ),
            Statement(
                f"copying {way}, its latency stays, while that of the limited one grows",
                abs(times[1] / times[0] - 1.0) <= SAME and capped_ms > 2.0 * times[1],
                f"{times[0]:.3g} to {times[1]:.3g} ms; of the limited one {capped_ms:.3g} ms",
            ),
        ]
        curves.append(Curve(f"without a limit of its own, copy {way}", (0.0, 1.0), tuple(rates)))
    return Findings(checks=tuple(checks), picture=Picture("limit of the other: 0 none, 1 set", "IOPS", tuple(curves)))
