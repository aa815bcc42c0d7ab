"""The host of the mClock paper's experiments, shared by the figures taken from it.

Sources:
    Gulati, Merchant and Varman, "mClock: handling throughput variability for hypervisor IO scheduling" (OSDI 2010).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

SOURCE = "Gulati, Merchant and Varman, mClock (OSDI 2010)"
HOST_DEPTH = 32  # requests the host keeps at the array. Source: figure 6, depth of SFQ
DISKS = 10  # that serve one request at a time each. Judgement: any number that 32 requests keep busy gives the same
OUTSTANDING = 32  # of each machine. Source: table 4


def vm(name: str, weight: float, io: Mapping[str, Any] | None = None, **disk: Any) -> dict[str, Any]:  # noqa: ANN401
    """A machine with a weight; ``disk`` has reservation_iops, iops_limit, idle_credit as scenarios name them."""
    load = {"block": "4k", "read_pct": 75, "oio": OUTSTANDING, **(io or {})}
    return {"name": name, "adapter_depth": 256, "shares": weight, "workload": {"io": [load]}, **disk}


def scenario(
    vms: Sequence[Mapping[str, Any]],
    capacity: float,
    scheduler: str = "mclock",
    *,
    measure_s: float = 120.0,
    seed: int = 1,
) -> dict[str, Any]:
    """Machines before the host's scheduler and an array of this capacity [requests per second]."""
    service = {"kind": "exponential", "mean": DISKS / capacity}
    return {
        "system": "storage-path",
        "seed": seed,
        "timing": {"warm_up_s": 20, "measure_s": measure_s, "window_s": 10},
        "vms": list(vms),
        "hosts": [{"name": "esx01", "queue_depth": HOST_DEPTH, "scheduler": scheduler}],
        "devices": [{"name": "array", "parallelism": DISKS, "service": service}],
    }
