"""What the simulator measures of a hypervisor's CPU scheduler."""

from __future__ import annotations

from leadline.scenarios._simulator import Column, Figures, Interval, Little, Number, Outcome, Spread


class Level(Figures):
    """How many on average, at most, and by window."""

    mean: Number
    max: int
    series: Column


class States(Figures):
    """vCPUs of a VM in each state."""

    run: Level
    ready: Level
    co_stop: Level
    wait: Level


class VmFigures(Spread):
    """Transactions of a VM, ns, and where its vCPUs were; ``spent`` [vCPU, state] in ns: run, ready, co-stop, wait."""

    states: States
    run_queue: Level
    migration_count: int
    little: Little | None
    rate_interval: Interval | None
    latency_interval: Interval | None
    steady_after: int | None
    counts: Column
    latency_ms: Column
    spent: Column
    warm_up_counts: Column


class HostFigures(Outcome):
    """What the simulator measured; levels of cores and threads are those in use."""

    vms: tuple[VmFigures, ...]
    cores: Level
    threads: Level
