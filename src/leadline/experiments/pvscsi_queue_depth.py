"""Queue depths of the guest's adapter and of the host's, alone and together.

Setup:
    A VM with far more outstanding than either queue is deep, on an array that can work on more. Guest adapter
    paravirtual with its default depth of 64 for a disk or 254, LSI Logic with 32, which cannot be raised; host adapter
    with 64 for a LUN, as QLogic's has by default, or 254.

Run:
    The storage path with 256 requests outstanding, all four combinations of depths for 20 s each, and LSI Logic's depth
    with the deep host queue.

Limits:
    Only depths are simulated. What the paravirtual adapter saves in CPU time for each request is not. The array's width
    and service time are judgement: any array that does more when it has more outstanding shows the same order.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Simulated, Statement
from leadline.core.model.picture import Curve, Picture

META = ExperimentMeta(
    claim=(
        "queue depth must be raised both in the guest's adapter and in the host's; raising one alone helps little; the "
        "paravirtual adapter beats LSI Logic Parallel at depth"
    ),
    source="Tuning and profiling VMware virtual infrastructure for I/O-intensive PostgreSQL (slides)",
    verified="read",
    kind="ordering",
    by=("simulation",),
)
# Depths for a disk and for a LUN. Source: Broadcom KB 2053145 (PVSCSI 64, at most 254), KB 1267 (QLogic 64)
SHALLOW = {"adapter": 64, "host": 64}
DEEP = {"adapter": 254, "host": 254}
LSI_DEPTH = 32  # Source: KB 2053145, LSI Logic: 32 for a disk, which cannot be raised
OUTSTANDING = 256
ARRAY_WIDTH, ARRAY_SERVICE = 192, "2ms"  # Judgement: an all-flash array over a network
LITTLE, MUCH = 1.25, 1.5  # Judgement: "little" is less than a quarter more, "much" half more at least


def scenario(adapter: int, host: int) -> dict[str, Any]:
    """A database with those two depths."""
    return {
        "system": "storage-path",
        "timing": {"warm_up_s": 1, "measure_s": 10, "window_s": 1},
        "vms": [
            {"name": "db01", "adapter_depth": adapter, "workload": {"io": [{"block": "8k", "oio": OUTSTANDING}]}},
        ],
        "hosts": [{"name": "esx01", "queue_depth": host}],
        "devices": [
            {
                "name": "array",
                "parallelism": ARRAY_WIDTH,
                "service": {"kind": "exponential", "mean": ARRAY_SERVICE},
            }
        ],
    }


def reproduce(simulated: Simulated) -> Findings:
    """Operations per second for each combination."""

    def rate(adapter: int, host: int) -> float:
        return simulated(scenario(adapter, host)).measure("db01", "iops").value

    low = rate(SHALLOW["adapter"], SHALLOW["host"])
    guest = rate(DEEP["adapter"], SHALLOW["host"])
    host = rate(SHALLOW["adapter"], DEEP["host"])
    both = rate(DEEP["adapter"], DEEP["host"])
    lsi = rate(LSI_DEPTH, DEEP["host"])
    return Findings(
        checks=(
            Statement(
                "raising the guest's depth alone helps little",
                guest < LITTLE * low,
                f"{low:,.0f} to {guest:,.0f} per second",
            ),
            Statement(
                "raising the host's depth alone helps little",
                host < LITTLE * low,
                f"{low:,.0f} to {host:,.0f} per second",
            ),
            Statement(
                "raising both helps much more than either",
                both > MUCH * max(guest, host),
                f"{both:,.0f} against {guest:,.0f} and {host:,.0f} per second",
            ),
            Statement(
                "at depth the paravirtual adapter beats LSI Logic Parallel",
                both > lsi and host > lsi,
                f"{both:,.0f} with a depth of 254 and {host:,.0f} with 64, against {lsi:,.0f} per second with 32",
            ),
        ),
        picture=Picture(
            "guest adapter's depth",
            "operations per second",
            (
                Curve("host depth 64", (64.0, 254.0), (low, guest)),
                Curve("host depth 254", (32.0, 64.0, 254.0), (lsi, host, both)),
            ),
        ),
    )
