"""What an operation of each size counts as against an IOPS limit.

Setup:
    A virtual disk with an IOPS limit, operations of 4, 32, 33, 64 KB and 1 MB. The limit counts in units of 32 KB,
    rounded up.

Run:
    The storage path with a closed loop of each size behind a limit of 10,000 for 20 s: what an operation counts as is
    the limit by the operations that pass.

Limits:
    The limit's rule is the source's: the simulation shows that the model keeps it for a running load, not that vSAN
    does.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Published, Simulated
from leadline.core.model.picture import Curve, Picture

META = ExperimentMeta(
    claim=(
        "operations of up to 32 KB count as one, of 32 to 64 KB as two, and so on up to 1 MB: a limit of 10,000 passes "
        "5,000 of 64 KB"
    ),
    source="vmgu.ru, on IOPS limits of vSAN objects; C. Hogan, VSAN 6.2 part 4: IOPS limit for object (2016)",
    verified="read",
    kind="exact",
    by=("simulation", "arithmetic"),
)
LIMIT = 10_000
COUNTS_AS = {"4k": 1, "32k": 1, "33k": 2, "64k": 2, "1m": 32}  # Source: as META


def scenario(block: str) -> dict[str, Any]:
    """A VM that reads blocks of this size behind the limit."""
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 5, "measure_s": 20, "window_s": 1},
        "vms": [
            {
                "name": "db01",
                "adapter_depth": 64,
                "iops_limit": LIMIT,
                "workload": {"io": [{"block": block, "oio": 64}]},
            }
        ],
        "devices": [{"name": "ssd", "parallelism": 64, "service": "200us"}],
    }


def reproduce(simulated: Simulated) -> Findings:
    """What each size counts as."""
    rates = {block: simulated(scenario(block)).measure("db01", "iops").value for block in COUNTS_AS}
    counts = [Published(f"{block} counts as", float(n), LIMIT / rates[block]) for block, n in COUNTS_AS.items()]
    passed = Published("operations of 64 KB that a limit of 10,000 passes", 5000.0, rates["64k"], "per_s")
    sizes = (4.0, 32.0, 33.0, 64.0, 1024.0)
    return Findings(
        (*counts, passed),
        picture=Picture(
            "block, KB",
            "counts as",
            (
                Curve("units of 32 KB", sizes, tuple(LIMIT / rate for rate in rates.values())),
                Curve("units of 32 KB", sizes, tuple(map(float, COUNTS_AS.values())), is_published=True),
            ),
        ),
    )
