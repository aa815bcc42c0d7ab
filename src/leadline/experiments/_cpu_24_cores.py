"""The host of 24 cores and its database VMs, as several published figures have them.

Set once, for all figures: 2 x 12 cores with hyper-threading (published). The load of 1x by one published point, 76 % of
a guest of 24 vCPUs at 3x. How long users think by another, a run queue of 25 in a guest that has a neighbour. The gain
of a core with two threads is Intel's, not fitted. Transactions of 50 ms of CPU in 10 bursts with 2.8 ms of storage
between them are a judgement: of times, only their ratios matter here. So is the hypervisor's own work beside the guest,
5 % of the guest's: VMware measured 8 % less than native for SQL Server on one vCPU ("Performance and scalability of
Microsoft SQL Server on VMware vSphere 4", 2009), part of which is time the guest sees as its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from leadline.core.contracts.scenario import Outcome

SOURCE = "InterSystems community, M. Oldfield, Virtualizing large databases: VMware CPU capacity planning (2017)"
CORES = 24
CALIBRATED_RATE = "the load of 1x: 76 % of 24 vCPUs at 3x"
CALIBRATED_THINK = "the think time of users: a run queue of 25 beside a VM at 2x"
# Source: Marr et al., "Hyper-Threading Technology architecture and microarchitecture" (Intel Technology Journal 6,
# 2002): up to 30 % on server applications.
THREAD_GAIN_PCT = 30.0
OVERHEAD_PCT = 5.0
CPU_S = 0.05
BURSTS = 10
BUSY_AT_3X = 0.76 * CORES  # vCPUs; the calibrated point
AWAY_PER_CPU = 3.4  # time a user spends without CPU by time with it; calibrated
WAITING_SHARE = 0.15  # of the time without CPU: storage; the rest is thinking
GUEST, NEIGHBOUR, HOST = "db01", "db02", "esx01"


def load(cores: float) -> dict[str, Any]:
    """A load that would keep this many cores of its own busy."""
    away_s = CPU_S * AWAY_PER_CPU
    return {
        "users": round(cores * (1.0 + AWAY_PER_CPU)),
        "think_time": {"kind": "exponential", "mean": away_s * (1.0 - WAITING_SHARE)},
        "bursts": BURSTS,
        "burst": {"kind": "exponential", "mean": CPU_S / BURSTS},
        "wait": {"kind": "exponential", "mean": away_s * WAITING_SHARE / (BURSTS - 1)},
    }


def vm(name: str, vcpus: int, scale: float) -> dict[str, Any]:
    """A database VM at 1x to 5x."""
    return {
        "name": name,
        "vcpus": vcpus,
        "overhead_pct": OVERHEAD_PCT,
        "load": load(BUSY_AT_3X * scale / 3.0),
    }


def host(vms: Sequence[dict[str, Any]], **other: Any) -> dict[str, Any]:  # noqa: ANN401 - keys of a scenario
    """A scenario of the host with these VMs."""
    return {
        "name": "cpu-24-cores",
        "system": "hypervisor-cpu",
        "timing": {"warm_up_s": 5, "measure_s": 30, "window_s": 1},
        "host": {
            "name": HOST,
            "nodes": 2,
            "cores_per_node": CORES // 2,
            "thread_gain_pct": THREAD_GAIN_PCT,
            **other,
        },
        "vms": list(vms),
    }


def value(outcome: Outcome, name: str, entity: str = GUEST) -> float:
    """A measure of the guest, or of another entity."""
    return outcome.measure(entity, name).value
