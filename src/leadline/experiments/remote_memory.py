"""Paging to another host's memory is faster than paging to a local SSD.

Setup:
    A program of 1 GB that touches pages in five ways (in a loop, any page alike, popular pages, as a sort, with growing
    memory), 5 us of work for each touch, and 90, 50 or 30 % of its memory local. The rest is over RDMA at 5 us, or on
    an SSD at 85 us for a page.

Run:
    Each way and share with both backings; run time by run time with all memory local. "Runs well" with 70 % remote is
    taken as: a program with popular pages (Zipf, 0.99) keeps at least two thirds of its speed. Work and bound are
    judgements.

Limits:
    One thread, an SSD and a link of its own, and room that is made beside the program, not by it. The ratio of network
    to memory compares constants.
"""

from __future__ import annotations

from typing import Any

from leadline.core.contracts.experiment import ExperimentMeta, Findings, Simulated, Statement
from leadline.core.model.picture import Curve, Picture
from leadline.experiments._far_memory import FASTSWAP_RECLAIM_S, RAM_READ_S, RDMA_SMALL_READ_S, slowdown

META = ExperimentMeta(
    claim="paging to remote memory over RDMA is always faster than to a local SSD, and a VM with 70 % of its memory "
    "remote still runs well; the network is about 10 times slower than memory, once 1,000 times",
    source="vmgu.ru on VMware Cluster Memory, after VMworld 2019, OCTO2746BU",
    verified="read",
    kind="ordering",
    by=("simulation", "arithmetic"),
)
PATTERNS: dict[str, dict[str, Any]] = {
    "sequential": {"passes": 20},
    "uniform": {"visits": 20},
    "zipf": {"visits": 20, "skew": 0.99},
    "quicksort": {},
    "growing": {"visits": 20},
}
LOCAL_PCT = (90.0, 50.0, 30.0)
WORK_S = 5e-6  # Judgement: for each touch of a page, as a key-value store or a database's executor has
MEMORY_MB = 1024
PAGES = MEMORY_MB * 256
SPEED_KEPT = 2.0 / 3.0  # Judgement: what "runs well" means
NETWORK_TO_RAM = 10.0
FACTOR_MAX = 2.0  # Judgement: "about"
SORT_TOUCHES = 20  # of a page: log2 of the pages, the fill and the last pass


def reproduce(simulated: Simulated) -> Findings:
    """Both backings for every way to touch memory and every share of it that is local."""
    slowdowns: dict[str, dict[str, tuple[float, ...]]] = {}
    for pattern in PATTERNS:
        slowdowns[pattern] = {
            backing: tuple(slowdown(simulated, _program(pattern), share, backing) for share in LOCAL_PCT)
            for backing in ("rdma", "ssd")
        }
    pairs = [
        pair for by_backing in slowdowns.values() for pair in zip(by_backing["rdma"], by_backing["ssd"], strict=True)
    ]
    least = min(ssd / rdma for rdma, ssd in pairs)
    popular = slowdowns["zipf"]["rdma"][-1], slowdowns["zipf"]["ssd"][-1]
    in_fault = slowdown(simulated, _program("zipf"), LOCAL_PCT[-1], reclaim_s=FASTSWAP_RECLAIM_S)
    ratio = RDMA_SMALL_READ_S / RAM_READ_S
    return Findings(
        checks=(
            Statement(
                "RDMA is faster than the SSD for every way to touch memory and every local share",
                all(rdma < ssd for rdma, ssd in pairs),
                f"{len(pairs)} pairs; the SSD takes at least {least:.2f} times as long",
            ),
            Statement(
                "with 70 % of memory remote a program with popular pages runs well",
                popular[0] <= 1.0 / SPEED_KEPT,
                f"{popular[0]:.2f} times as long as with all memory local; on the SSD {popular[1]:.1f} times",
            ),
            Statement(
                "the network is about 10 times slower than memory",
                NETWORK_TO_RAM / FACTOR_MAX <= ratio <= NETWORK_TO_RAM * FACTOR_MAX,
                f"a small read over RDMA by one from memory: {ratio:.0f} times",
            ),
        ),
        picture=Picture(
            "% of memory local",
            "times as long as with all memory local",
            tuple(
                Curve(f"{pattern}, {backing}", LOCAL_PCT, values)
                for pattern in ("zipf", "uniform")
                for backing, values in slowdowns[pattern].items()
            ),
        ),
        why="Programs that touch any page alike do not run well with 70 % remote: "
        f"{slowdowns['uniform']['rdma'][-1]:.1f} times as long over RDMA. Nor does the one with popular pages on a "
        f"host that makes room in the fault, as Fastswap's did: {in_fault:.2f} times as long.",
    )


def _program(pattern: str) -> dict[str, Any]:
    """A program that touches its memory in one of the ways."""
    keys = PATTERNS[pattern]
    touches = PAGES * (1 + keys.get("visits", keys.get("passes", SORT_TOUCHES)))
    return {"memory_mb": MEMORY_MB, "run": touches * WORK_S, "pattern": pattern, "stands_for": 16, **keys}
