"""What libvirt and QEMU count of a virtual machine since it was started, turned into rates, shares and latencies.

Counters are named as ``virsh domstats`` names them: ``vcpu.0.time``, ``block.0.name``, ``block.0.rd.reqs``.

Source: libvirt-domain.c, virConnectGetAllDomainStats.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from leadline.core.io.clock import synthetic_times
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source
    from leadline.core.model.capture import CaptureBuilder

_NS_PER_S, _NS_PER_MS = 1e9, 1e6
_MIB, _KIB_PER_MIB = float(1 << 20), 1024.0
_PLACED_S = 0.001  # apart, where no time is printed: their span is not known and clears nothing
_VCPUS_MAX = 4096
Counters = dict[str, float | str]
Values = NDArray[np.float64]


class DomainSeries:
    """One VM's counters, and what they grew by from one time to the next."""

    def __init__(
        self,
        name: str,
        taken: list[tuple[int | None, Counters]],
        source: Source,
        request: Request,
        builder: CaptureBuilder,
    ) -> None:
        self.vm = Entity(EntityKind.VM, name)
        self.request, self.builder = request, builder
        stamped = {moment: counters for moment, counters in taken if moment is not None}
        if len(stamped) == len(taken):
            ordered = sorted(stamped)
            self.counters = [stamped[moment] for moment in ordered]
            self.times = np.array(ordered, dtype=np.int64)
        else:
            self.counters = [counters for _, counters in taken]
            self.times = synthetic_times(len(taken), _PLACED_S, source.mtime_ns)
        self.is_single = len(self.counters) == 1

    def add(self, record: str, *, is_timed: bool) -> None:
        """Add the VM's series; rates and shares only where its samples have times.

        Args:
            record: the command that records more, for what is said where something is missing.
            is_timed: its samples have times.
        """
        if self.is_single:
            self.builder.warn(
                "one-sample",
                "VMs with one sample: means since the VM was started, no rates; put two or more in one file with "
                f"`{record}`, or run `leadline collect qemu`",
            )
        elif not is_timed:
            self.builder.warn(
                "no-times",
                "no line of `date` before each sample: latencies only, no rates and no ready time of vCPUs; record "
                f"with `{record}`",
            )
        self.seconds = np.diff(self.times) / _NS_PER_S if is_timed and not self.is_single else None
        self._memory()
        self._vcpus()
        last = self.counters[-1]
        for key, name in last.items():
            prefix, _, ending = key.rpartition(".")
            if ending == "name" and re.fullmatch(r"block\.\d{1,5}", prefix) and f"{prefix}.backingIndex" not in last:
                self._disk(prefix, Entity(EntityKind.VIRTUAL_DISK, str(name)[:200], self.vm))

    def _values(self, key: str) -> Values:
        known = [counters.get(key) for counters in self.counters]
        return np.array([value if isinstance(value, float) else np.nan for value in known])

    def _grown(self, key: str) -> Values:
        """What a counter grew by [n-1]; of a single sample what it is [1]; NaN where it is missing or fell."""
        values = self._values(key)
        if self.is_single:
            return values
        grown = np.diff(values)
        if bool(np.any(grown < 0)):
            self.builder.warn("reset", "a VM was started again: those intervals are not measured")
            grown[grown < 0] = np.nan
        return grown

    def _put(self, metric: str, entity: Entity, values: Values) -> None:
        if self.request.wants(metric) and bool(np.isfinite(values).any()):
            times = self.times if len(values) == len(self.times) else self.times[1:]
            step = float(np.median(self.seconds)) if self.seconds is not None else float("nan")
            self.builder.add_series(metric, entity, times, values, interval_s=step, since_boot=self.is_single)

    def _per_s(self, metric: str, entity: Entity, grown: Values, scale: float = 1.0) -> None:
        if self.seconds is not None:
            self._put(metric, entity, grown * scale / self.seconds)

    def _memory(self) -> None:
        size, current = self._values("balloon.maximum"), self._values("balloon.current")
        if not self.is_single:
            size, current = size[1:], current[1:]
        self._put("memory_size_mib", self.vm, size / _KIB_PER_MIB)
        self._put("memory_balloon_mib", self.vm, (size - current) / _KIB_PER_MIB)

    def _vcpus(self) -> None:
        last = self.counters[-1]
        names = [key.split(".")[1] for key in last if re.fullmatch(r"vcpu\.\d{1,4}\.time", key)][:_VCPUS_MAX]
        self.builder.inventory.add(self.vm, self.builder.info.name, vcpu_count=len(names) or None)
        for metric, endings in (("cpu_run_pct", ("time",)), ("cpu_ready_pct", ("delay", "wait"))):
            rows = []
            for name in names:
                ending = next((one for one in endings if np.nansum(self._values(f"vcpu.{name}.{one}")) > 0), endings[0])
                grown = self._grown(f"vcpu.{name}.{ending}")
                if self.seconds is not None and bool(np.isfinite(grown).any()):
                    rows.append(100.0 * grown / _NS_PER_S / self.seconds)
                    self._put(metric, Entity(EntityKind.VCPU, name, self.vm), rows[-1])
            if rows:
                self._put(metric, self.vm, np.mean(rows, axis=0))

    def _disk(self, prefix: str, disk: Entity) -> None:
        counts = {way: self._grown(f"{prefix}.{way}.reqs") for way in ("rd", "wr", "fl")}
        rates = (("rd", "disk_reads_per_s"), ("wr", "disk_writes_per_s"), ("fl", "virtual_disk_flushes_per_s"))
        for way, metric in rates:
            self._per_s(metric, disk, counts[way])
        self._per_s("disk_iops", disk, counts["rd"] + counts["wr"])
        for way, name in (("rd", "read"), ("wr", "write")):
            self._per_s(f"disk_{name}_mib_per_s", disk, self._grown(f"{prefix}.{way}.bytes"), 1.0 / _MIB)
        for way, name in (("rd", "read"), ("wr", "write"), ("fl", "flush")):
            with np.errstate(invalid="ignore", divide="ignore"):
                each = self._grown(f"{prefix}.{way}.times") / _NS_PER_MS / counts[way]
            self._put(f"virtual_disk_latency_ms_{name}", disk, np.where(counts[way] > 0, each, np.nan))
