"""A model ESXi host: what its VMs, CPUs, disks and ports do over time, from which esxtop's counters follow.

It is a bookkeeping model, not a simulator: quiet baselines with noise, faults written into the primary quantities, and
the dependent ones (GAVG = DAVG + KAVG, active commands by Little's law, group sums, host totals) derived afterwards, so
that a fault shows everywhere it would.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.errors import UsageError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.floating[Any]]

QUEUE_DEPTH = 32  # device queue depth many HBAs and LUNs default to
HELPER_WORLDS = ("vmx", "vmast", "vmx-vthread-5", "vmx-mks", "LSI")  # worlds of a VM that are not vCPUs
HOST_UTIL_TARGET = 0.45  # share of the physical CPUs the healthy VMs use together


@dataclass(frozen=True, slots=True)
class CaptureShape:
    """How large a generated capture is.

    ``start_ns`` is UTC; the last VM may be named by the caller so that names with odd characters can be tested.
    """

    vm_count: int = 8
    vcpus_per_vm: int = 4
    disks_per_vm: int = 2
    lun_count: int = 8
    sample_count: int = 120
    interval_s: float = 5.0
    seed: int = 1
    start_ns: int = 1_771_200_000_000_000_000
    host: str = "esx01.example"
    vm_prefix: str = "vm"

    def __post_init__(self) -> None:
        for name in ("vm_count", "vcpus_per_vm", "disks_per_vm", "lun_count", "sample_count"):
            if getattr(self, name) < 1:
                raise UsageError(
                    f"--{name.replace('_', '-')}",
                    found=str(getattr(self, name)),
                    expected="at least 1",
                    advice="Give a positive number.",
                )

    @property
    def duration_s(self) -> float:
        """Seconds the capture spans."""
        return self.sample_count * self.interval_s


@dataclass(slots=True)
class HostModel:
    """Primary quantities of the host; every array is float32 [entities, samples].

    CPU shares are percent of one vCPU, rates per second, latencies milliseconds, memory MiB.
    """

    shape: CaptureShape
    rng: np.random.Generator
    vm_names: list[str] = field(init=False)
    disk_lun: NDArray[np.int64] = field(init=False)  # [disks]: which LUN each virtual disk lies on
    used: Floats = field(init=False)  # [vcpus]
    ready: Floats = field(init=False)
    costop: Floats = field(init=False)
    max_limited: Floats = field(init=False)
    swap_wait: Floats = field(init=False)
    pcpu_util: Floats = field(init=False)  # [pcpus]
    load_1m: Floats = field(init=False)  # [1]
    memory: dict[str, Floats] = field(init=False)  # [vms] each
    numa_local: Floats = field(init=False)  # [vms]
    disk_reads: Floats = field(init=False)  # [disks]
    disk_writes: Floats = field(init=False)
    disk_extra_ms: Floats = field(init=False)  # [disks]: time a disk's I/O is held back above the LUN
    davg: Floats = field(init=False)  # [luns]
    kavg: Floats = field(init=False)  # [luns], queueing not included
    qavg: Floats = field(init=False)
    aborts: Floats = field(init=False)
    resets: Floats = field(init=False)
    tx_dropped: Floats = field(init=False)  # [vms]
    rx_dropped: Floats = field(init=False)

    def __post_init__(self) -> None:
        shape, n = self.shape, self.shape.sample_count
        vms, vcpus = shape.vm_count, shape.vm_count * shape.vcpus_per_vm
        disks = vms * shape.disks_per_vm
        self.vm_names = [f"{shape.vm_prefix}{i + 1:03d}" for i in range(vms)]
        self.disk_lun = np.arange(disks) % shape.lun_count
        self.used = self._noisy(vcpus, n, self.rng.uniform(8, 35, vcpus), 0.15)
        self.ready = self._noisy(vcpus, n, self.rng.uniform(0.1, 1.2, vcpus), 0.3)
        self.costop = self._noisy(vcpus, n, self.rng.uniform(0.0, 0.05, vcpus), 0.3)
        self.max_limited = np.zeros((vcpus, n), dtype=np.float32)
        self.swap_wait = np.zeros((vcpus, n), dtype=np.float32)
        self._add_host_cpu(n)
        self._add_memory(vms, n)
        reads = self.rng.uniform(30, 400, disks)
        self.disk_reads = self._noisy(disks, n, reads, 0.2)
        self.disk_writes = self._noisy(disks, n, reads * self.rng.uniform(0.2, 0.8, disks), 0.2)
        self.disk_extra_ms = self._noisy(disks, n, np.full(disks, 0.05), 0.2)
        luns = shape.lun_count
        self.davg = self._noisy(luns, n, self.rng.uniform(0.4, 1.6, luns), 0.2)
        self.kavg = self._noisy(luns, n, np.full(luns, 0.02), 0.3)
        self.qavg = np.zeros((luns, n), dtype=np.float32)
        self.aborts = np.zeros((luns, n), dtype=np.float32)
        self.resets = np.zeros((luns, n), dtype=np.float32)
        self.tx_dropped = np.zeros((vms, n), dtype=np.float32)
        self.rx_dropped = np.zeros((vms, n), dtype=np.float32)

    @property
    def pcpu_count(self) -> int:
        """Physical CPUs: enough for the VMs at the target utilisation, and for the widest VM."""
        need = float(self.used.mean(axis=1).sum()) / 100.0 / HOST_UTIL_TARGET
        return max(int(np.ceil(need / 2.0)) * 2, self.shape.vcpus_per_vm, 4)

    def vcpus_of(self, vm: int) -> slice:
        """Rows of a VM's vCPUs."""
        return slice(vm * self.shape.vcpus_per_vm, (vm + 1) * self.shape.vcpus_per_vm)

    def disk_iops(self) -> Floats:
        """Commands per second of each virtual disk."""
        return self.disk_reads + self.disk_writes

    def lun_rate(self, per_disk: Floats) -> Floats:
        """A per-disk rate summed over the disks of each LUN."""
        total = np.zeros((self.shape.lun_count, per_disk.shape[1]), dtype=np.float32)
        np.add.at(total, self.disk_lun, per_disk)
        return total

    def gavg(self) -> Floats:
        """GAVG of each LUN: device plus kernel, queueing included."""
        return self.davg + self.kavg + self.qavg

    def disk_latency(self) -> Floats:
        """Latency of each virtual disk: its LUN's GAVG plus what holds it back above."""
        return self.gavg()[self.disk_lun] + self.disk_extra_ms

    def lun_name(self, lun: int) -> str:
        """An NAA name, stable for a seed."""
        return f"naa.6001405{self.shape.seed:04x}{lun:021x}"

    def port_name(self, vm: int) -> str:
        """Switch, port id and client of a VM's first network adapter."""
        return f"vSwitch0:{33554449 + vm}:{self.vm_names[vm]}.eth0"

    def _add_host_cpu(self, n: int) -> None:
        count = self.pcpu_count
        self.pcpu_util = self._noisy(count, n, np.full(count, HOST_UTIL_TARGET * 100.0), 0.12)
        self.load_1m = self._noisy(1, n, np.array([HOST_UTIL_TARGET]), 0.05)

    def _add_memory(self, vms: int, n: int) -> None:
        size = np.full(vms, 16384.0)
        zero = np.zeros((vms, n), dtype=np.float32)
        self.memory = {
            "size": np.broadcast_to(size[:, np.newaxis], (vms, n)).astype(np.float32),
            "touched": self._noisy(vms, n, size * self.rng.uniform(0.2, 0.5, vms), 0.05),
            **{name: zero.copy() for name in ("balloon", "swapped", "swap_read", "swap_write", "compressed", "zip")},
        }
        self.numa_local = np.full((vms, n), 100.0, dtype=np.float32)

    def _noisy(self, rows: int, n: int, level: NDArray[np.float64], spread: float) -> Floats:
        """Level times a noise of the given coefficient of variation, never below zero."""
        noise = self.rng.standard_normal((rows, n), dtype=np.float32)
        noise *= np.float32(spread)
        noise += np.float32(1.0)
        np.maximum(noise, 0.0, out=noise)
        noise *= level.astype(np.float32)[:, np.newaxis]
        return noise
