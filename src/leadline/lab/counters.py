"""What the hypervisor counts of a guest's disks between two moments: operations, latency, and bytes below them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import isnan

from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick
from leadline.core.model.run import Round
from leadline.core.system.qmp import WAYS
from leadline.lab.machine import Machine


@dataclass(frozen=True, slots=True)
class Counters:
    """All counters of a guest at a moment, since its start; latencies since they are counted.

    Attributes:
        blocks: QEMU's counters by disk.
        latencies: histograms in ms by disk and direction.
        storage_bytes: what QEMU had this machine's disks read and write; NaN where it is not known.
    """

    moment_s: float
    blocks: dict[str, dict[str, int]]
    latencies: dict[str, dict[str, Histogram]]
    storage_bytes: tuple[float, float]


@dataclass(frozen=True, slots=True)
class Moved:
    """Bytes a guest asked its disks for, and what its hypervisor did on the storage below for that and of its own."""

    guest: str
    phase: str
    seconds: float
    asked_bytes: tuple[int, int]
    storage_bytes: tuple[float, float]

    @property
    def sentence(self) -> str:
        """For people."""
        asked, done = (_mib(pair) for pair in (self.asked_bytes, self.storage_bytes))
        where = f"{self.guest}, {self.phase}, {self.seconds:.1f} s"
        guest_part = f"{where}: the guest read {asked[0]} and wrote {asked[1]} MiB"
        if any(map(isnan, self.storage_bytes)):
            return f"{guest_part}; what its hypervisor did is not measured."
        return f"{guest_part}, its hypervisor {done[0]} and {done[1]} MiB of the storage below."


def _mib(pair: tuple[float, float]) -> tuple[str, str]:
    read, wrote = (f"{value / 2**20:.1f}" for value in pair)
    return read, wrote


def counters(machine: Machine) -> Counters:
    """Now."""
    return Counters(time.monotonic(), machine.blocks(), machine.latencies(), machine.storage_bytes())


def moved(guest: str, phase: str, first: Counters, last: Counters) -> Moved:
    """Return the bytes moved between two moments, by the guest and by its hypervisor."""
    read, wrote = (
        sum(last.blocks[disk][f"{short}_bytes"] - block[f"{short}_bytes"] for disk, block in first.blocks.items())
        for _, short in WAYS
    )
    below_read, below_wrote = (b - a for a, b in zip(first.storage_bytes, last.storage_bytes, strict=True))
    return Moved(guest, phase, last.moment_s - first.moment_s, (read, wrote), (below_read, below_wrote))


def counted(machine: Machine, label: str, first: Counters, last: Counters, ticks: Sequence[Tick] = ()) -> Round:
    """What the hypervisor served between two moments, per disk and direction."""
    seconds = last.moment_s - first.moment_s
    results = []
    for disk in machine.guest.disks:
        before, after = first.blocks[disk.name], last.blocks[disk.name]
        operations = []
        for way, short in WAYS:
            count = after[f"{short}_operations"] - before[f"{short}_operations"]
            size = after[f"{short}_bytes"] - before[f"{short}_bytes"]
            spent_ms = (after[f"{short}_total_time_ns"] - before[f"{short}_total_time_ns"]) / 1e6
            latency = {"mean": spent_ms / count} if count else {}
            since = last.latencies[disk.name][way].minus(first.latencies[disk.name][way])
            operations.append(Operation(way, count / seconds, size / seconds, float(count), latency, since))
        results.append(Result("qemu", disk.name, tuple(operations), seconds, host=machine.guest.name))
    return Round(label, tuple(results), tuple(ticks))


Sample = tuple[float, dict[str, dict[str, int]]]


def ticks(samples: Sequence[Sample]) -> list[Tick]:
    """Operations per second of all disks, between each sample and the next."""
    rates = []
    for (before_s, one), (after_s, other) in pairwise(samples):
        done = sum(
            other[disk][f"{short}_operations"] - one[disk][f"{short}_operations"] for disk in one for _, short in WAYS
        )
        rates.append(Tick(after_s - samples[0][0], done / max(after_s - before_s, 1e-3)))
    return rates
