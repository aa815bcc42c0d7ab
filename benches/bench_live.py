"""What it costs to judge a live window of a whole estate: 10,000 VMs, 1.7 million new samples every 20 s.

``python -m benches.bench_live [--vms N] [--steps N] [--window S] [--red N] [--profile]``

An estate as vCenter's real-time counters tell of it: hosts of 20 VMs, each VM with 6 vCPUs, 6 virtual disks and 2
ports; devices, adapters, physical CPUs and NICs of the hosts. Values vary from step to step; some VMs wait for a CPU
(``--red``). The window is filled; then each step appends one sample of every series and is judged. It prints CPU time
of a step (median and worst), what is found, and the memory of the process. It exits with 1 when the median step of the
full estate takes more than `STEP_CPU_S_MAX`.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import time
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from leadline.app.watch.judging import LiveJudge
from leadline.app.watch.window import LiveSeries, LiveWindow
from leadline.core.model.capture import SourceInfo
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

VMS, STEP_S, WINDOW_S, STEPS = 10_000, 20, 600, 6
VMS_PER_HOST, VCPUS, DISKS, PORTS = 20, 6, 6, 2
PCPUS, DEVICES, ADAPTERS, NICS = 32, 16, 4, 4
STEP_CPU_S_MAX = 4.0
START_NS = 1_790_000_000 * 10**9

# Each metric with its usual value; values vary around it.
_OF_VCPU = {"cpu_used_pct": 20.0, "cpu_ready_pct": 0.5, "cpu_costop_pct": 0.05, "cpu_max_limited_pct": 0.0}
_OF_VCPU |= {"cpu_run_pct": 20.0, "cpu_system_pct": 1.0, "cpu_wait_pct": 70.0, "cpu_idle_pct": 70.0}
_OF_VCPU |= {"cpu_overlap_pct": 0.1, "cpu_swap_wait_pct": 0.0, "cpu_latency_pct": 0.8}
_OF_VM = {name: value for name, value in _OF_VCPU.items() if name != "cpu_idle_pct"}
_OF_VM |= {"memory_size_mib": 32768.0, "memory_granted_mib": 32768.0, "memory_consumed_mib": 32000.0}
_OF_VM |= {"memory_touched_mib": 4e3, "memory_active_pct": 12.0, "memory_balloon_mib": 0.0, "memory_swapped_mib": 0.0}
_OF_VM |= {"memory_balloon_target_mib": 0.0, "memory_swap_read_mib_per_s": 0.0, "memory_swap_write_mib_per_s": 0.0}
_OF_VM |= {"memory_compressed_mib": 0.0, "memory_overhead_mib": 90.0, "memory_latency_pct": 0.0}
_OF_VM |= {"disk_latency_ms_max": 2.0}
_OF_DISK = {"disk_iops": 120.0, "disk_reads_per_s": 70.0, "disk_writes_per_s": 50.0, "disk_read_mib_per_s": 1.0}
_OF_DISK |= {"disk_write_mib_per_s": 0.6, "virtual_disk_latency_ms_read": 0.8, "virtual_disk_latency_ms_write": 1.1}
_OF_DISK |= {"virtual_disk_outstanding_count": 0.3, "virtual_disk_io_size_bytes": 9000.0}
_OF_PORT = {"net_tx_mbit_per_s": 8.0, "net_rx_mbit_per_s": 6.0, "net_tx_packets_per_s": 900.0}
_OF_PORT |= {"net_rx_packets_per_s": 800.0, "net_tx_dropped_pct": 0.0, "net_rx_dropped_pct": 0.0}
_OF_DEVICE = {"disk_iops": 1500.0, "disk_reads_per_s": 900.0, "disk_writes_per_s": 600.0, "disk_read_mib_per_s": 12.0}
_OF_DEVICE |= {"disk_write_mib_per_s": 8.0, "disk_device_latency_ms": 0.7, "disk_kernel_latency_ms": 0.02}
_OF_DEVICE |= {"disk_queued_count": 0.0, "disk_active_count": 2.0, "disk_queue_depth_count": 128.0}
_OF_DEVICE |= {"disk_aborts_per_s": 0.0, "disk_resets_per_s": 0.0}
_OF_ADAPTER = {name: 4.0 * value if name.endswith("_s") else value for name, value in _OF_DEVICE.items()}
_OF_HOST = {"host_cpu_used_pct": 40.0, "host_memory_free_mib": 90_000.0, "host_memory_state_count": 0.0}


class Estate:
    """An estate with its series in a window, and samples for each step."""

    def __init__(self, vms: int, window_s: float, red: int) -> None:
        self.window = LiveWindow(window_s, [SourceInfo("vcenter", "vcenter", "vCenter real-time counters")])
        self.random = np.random.default_rng(1)
        self.red = red
        self.series: list[tuple[LiveSeries, float]] = []
        hosts = [Entity(EntityKind.HOST, f"esx{i:04}") for i in range(-(-vms // VMS_PER_HOST))]
        machines = [Entity(EntityKind.VM, f"vm{i:05}", hosts[i // VMS_PER_HOST]) for i in range(vms)]
        for host in hosts:
            self.window.inventory.add(host, "vcenter", core_count=PCPUS, memory_mib=786_432.0)
        for vm in machines:
            self.window.inventory.add(vm, "vcenter", vcpu_count=VCPUS, memory_mib=32_768.0, power_state="on")
        self._add(_OF_VM, machines)
        self._add(_OF_VCPU, list(_parts(machines, EntityKind.VCPU, VCPUS)))
        self._add(_OF_DISK, list(_parts(machines, EntityKind.VIRTUAL_DISK, DISKS)))
        self._add(_OF_PORT, list(_parts(machines, EntityKind.PORT, PORTS)))
        self._add(_OF_HOST, hosts)
        self._add({"host_cpu_used_pct": 40.0}, list(_parts(hosts, EntityKind.PCPU, PCPUS)))
        self._add(_OF_DEVICE, list(_parts(hosts, EntityKind.DEVICE, DEVICES)))
        self._add(_OF_ADAPTER, list(_parts(hosts, EntityKind.ADAPTER, ADAPTERS)))
        self._add(_OF_PORT, list(_parts(hosts, EntityKind.NIC, NICS)))

    @property
    def count(self) -> int:
        """How many samples a step has."""
        return sum(len(series.entities) for series, _ in self.series)

    def step(self, number: int) -> None:
        """Append a sample of every series."""
        self.window.step(START_NS + number * STEP_S * 10**9, [(one, self.values(one, at)) for one, at in self.series])

    def values(self, series: LiveSeries, level: float) -> NDArray[np.float32]:
        """Values [k] of a step."""
        noise = self.random.random(len(series.entities), dtype=np.float32)
        values: NDArray[np.float32] = np.float32(level) * (np.float32(0.5) + noise)
        if series.metric == "cpu_ready_pct" and self.red:
            of_each = VCPUS if EntityKind.VCPU in series.entities.kinds else 1
            values[: self.red * of_each] = 30.0
        return values

    def _add(self, metrics: dict[str, float], entities: list[Entity]) -> None:
        column = self.window.entities(entities)
        self.series += [(self.window.series(name, column, STEP_S), level) for name, level in metrics.items()]


def _parts(wholes: list[Entity], kind: EntityKind, count: int) -> Iterator[Entity]:
    return (Entity(kind, str(i), whole) for whole in wholes for i in range(count))


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--vms", type=int, default=VMS)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--window", type=float, default=WINDOW_S)
    parser.add_argument("--red", type=int, default=20, help="VMs that wait for a CPU")
    parser.add_argument("--profile", action="store_true", help="say which functions take most time")
    options = parser.parse_args(arguments)
    estate, judge = Estate(options.vms, options.window, options.red), LiveJudge()
    filled = int(options.window / STEP_S)
    for number in range(filled):
        estate.step(number)
    print(f"{options.vms} VMs, {estate.count:,} samples a step, window of {filled} steps")
    profile = cProfile.Profile()
    costs = []
    for number in range(filled, filled + options.steps):
        begin = time.process_time()
        estate.step(number)
        appended = time.process_time()
        if options.profile and number == filled + 1:
            profile.enable()
        judged = judge.judge(estate.window)
        profile.disable()
        costs.append(time.process_time() - appended)
        print(
            f"step {number}: appended in {appended - begin:.2f} s, judged in {costs[-1]:.2f} s of CPU; "
            f"{judged.asked} rules asked, {len(judged.findings)} findings"
        )
    peak_kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    later = sorted(costs[1:] or costs)
    print(f"judged: median {later[len(later) // 2]:.2f} s, worst {later[-1]:.2f} s of CPU; first {costs[0]:.2f} s")
    print(f"peak {peak_kib / 1024:.0f} MiB")
    if options.profile:
        pstats.Stats(profile).sort_stats("cumulative").print_stats(45)
    if options.vms >= VMS and later[len(later) // 2] > STEP_CPU_S_MAX:
        raise SystemExit(f"a step takes more than {STEP_CPU_S_MAX:g} s of CPU")


if __name__ == "__main__":
    main()
