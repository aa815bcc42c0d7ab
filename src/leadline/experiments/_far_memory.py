"""What experiments on memory in another host share: the network's and the SSD's costs, and one run of a program."""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import Simulated

RDMA_READ_S = 5e-6  # Source: Amaro et al., "Can far memory improve job throughput?" (EuroSys 2020): 4 KB over RDMA
SSD_READ_S = 85e-6  # Source: Intel, SSD DC P4510 product brief (2018): 77 us for 4 KB at random, and the kernel's way
RAM_READ_S = 100e-9  # Source: J. Dean, "Numbers everyone should know" (2009): a reference to main memory
# Source: Kalia, Kaminsky and Andersen, "Design guidelines for high performance RDMA systems" (USENIX ATC 2016):
# one-sided reads of a few bytes in 1 to 2 us.
RDMA_SMALL_READ_S = 1.5e-6
# What a program under Fastswap spends on each page that goes: the memory of a control group is charged, and a page
# written, in the fault that needs room. Calibrated on the sort with 90 % of its memory local, 1.097 times; used for all
# of Fastswap.
FASTSWAP_RECLAIM_S = 9.73e-6
# Linux: page-cluster 3.
READ_AHEAD_PAGES = 8


def slowdown(
    simulated: Simulated, program: dict[str, Any], local_pct: float, backing: str = "rdma", reclaim_s: float = 0.0
) -> float:
    """Run time with a share of a program's memory local, divided by the run time with all of it local."""
    outcome = simulated(
        {
            "name": "far-memory",
            "system": "far-memory",
            "timing": {"window_s": 10},
            "program": program,
            "local_pct": local_pct,
            "read_ahead_pages": READ_AHEAD_PAGES,
            "backing": backing,
            "rdma": {"read": RDMA_READ_S, "reclaim": reclaim_s},
            "ssd": {"read": SSD_READ_S, "reclaim": reclaim_s},
        }
    )
    return outcome.measure("program", "slowdown").value
