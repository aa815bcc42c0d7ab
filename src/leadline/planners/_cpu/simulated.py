"""VMs of a host as a scenario of the hypervisor's CPU, each with a load that keeps so many cores busy."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from leadline.core.contracts.planner import PlanContext

CPU_S, BURSTS = 0.05, 10  # Judgement: a transaction of 50 ms of CPU; of times only ratios matter here
MEASURED_S = 60  # a rate of one core then has a standard error of about 3 %, of nine 1 %
WAIT_S = 0.002  # Judgement: storage between bursts
FULL = 0.95  # Judgement: beyond it an open load has no steady state to report


@dataclass(frozen=True, slots=True)
class SimulatedVm:
    """A VM with its vCPUs and the cores it keeps busy."""

    vcpus: int
    cores: float


@dataclass(frozen=True, slots=True)
class SimulatedHost:
    """A host: NUMA nodes, cores in all, the hypervisor's work in percent of its VMs', two threads a core or one."""

    nodes: int
    cores: int
    overhead_pct: float = 5.0
    threads: bool = True


@dataclass(frozen=True, slots=True)
class Expected:
    """What a VM is expected to show, in percent: of its vCPUs busy as the guest sees it, ready, co-stop."""

    guest_pct: float
    ready_pct: float
    co_stop_pct: float


def scenario(vms: Sequence[SimulatedVm], host: SimulatedHost) -> dict[str, Any]:
    """Return a scenario of the host with all VMs; transactions begin at a rate of cores / CPU time."""
    return {
        "name": "plan-cpu",
        "system": "hypervisor-cpu",
        "timing": {"warm_up_s": 2, "measure_s": MEASURED_S, "window_s": 1},
        "host": {
            "name": "host",
            "nodes": host.nodes,
            "cores_per_node": host.cores // host.nodes,
            "hyper_threading": host.threads,
        },
        "vms": [
            {
                "name": f"vm{number}",
                "vcpus": vm.vcpus,
                "overhead_pct": host.overhead_pct,
                "load": {
                    "per_s": max(vm.cores, 0.01) / CPU_S,
                    "bursts": BURSTS,
                    "burst": {"kind": "exponential", "mean": CPU_S / BURSTS},
                    "wait": {"kind": "exponential", "mean": WAIT_S},
                },
            }
            for number, vm in enumerate(vms)
        ],
    }


def expected(
    context: PlanContext, vms: Sequence[SimulatedVm], host: SimulatedHost
) -> tuple[list[Expected], float] | None:
    """Return what each VM shows, and the cores in use, percent; None where VMs need more cores than there are."""
    whole = (1.0 + host.overhead_pct / 100.0) * sum(vm.cores for vm in vms)
    if whole > FULL * host.cores or any(vm.cores > FULL * vm.vcpus for vm in vms):
        return None
    outcome = context.simulated(scenario(vms, host))

    def value(name: str, entity: str) -> float:
        return outcome.measure(entity, name).value

    by_vm = [
        Expected(*(value(name, f"vm{i}") for name in ("guest_pct", "ready_pct", "co_stop_pct")))
        for i in range(len(vms))
    ]
    return by_vm, value("cores_pct", "host")
