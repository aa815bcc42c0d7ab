r"""What libvirt counts for each virtual machine on a KVM host, as ``virsh domstats`` prints it.

Reads:
    The text of ``virsh domstats``, of one or many VMs, taken once or several times in one file, with a line of ``date``
    (in the C locale, ISO 8601 or ``+%s``) before each time.

Sample:
    .. code-block:: text

        Tue Nov 24 09:00:00 UTC 2026
        Domain: 'db01'
          vcpu.0.time=955260000000
          vcpu.0.delay=1305744538
          block.0.name=vda
          block.0.wr.reqs=471370
          block.0.wr.times=158585666809

Lost:
    What is counted once has no interval: then latencies are means since the VM was started, which no rule looks at.
    Without times there are no rates and no share of time, only latencies. Backing files of a disk, network, and
    counters of KVM itself.

Units:
    Nanoseconds and bytes that grow from one time to the next become rates, shares of time and means of a request. The
    time a vCPU was runnable without a CPU (``delay``, else ``wait``) is its ready time; a VM's is the mean of its
    vCPUs. Memory is printed in KiB.

Sources:
    libvirt, virsh(1), domstats; libvirt-domain.c, virConnectGetAllDomainStats. Linux, scheduler/sched-stats: run_delay.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.date_lines import DateLines

META = ImporterMeta(
    tool="virsh domstats",
    marks=("domain: '",),
    layers=(Layer.HYPERVISOR_CPU, Layer.STORAGE_PATH),
    fields={
        "vcpu.N.time": Field("cpu_run_pct", "pct"),
        "vcpu.N.delay|wait": Field("cpu_ready_pct", "pct"),
        "block.N.rd.reqs": Field("disk_reads_per_s", "per_s"),
        "block.N.wr.reqs": Field("disk_writes_per_s", "per_s"),
        "block.N.rd.reqs + wr.reqs": Field("disk_iops", "per_s"),
        "block.N.fl.reqs": Field("virtual_disk_flushes_per_s", "per_s"),
        "block.N.rd.bytes": Field("disk_read_mib_per_s", "bytes_per_s"),
        "block.N.wr.bytes": Field("disk_write_mib_per_s", "bytes_per_s"),
        "block.N.rd.times": Field("virtual_disk_latency_ms_read", "ns"),
        "block.N.wr.times": Field("virtual_disk_latency_ms_write", "ns"),
        "block.N.fl.times": Field("virtual_disk_latency_ms_flush", "ns"),
        "balloon.maximum": Field("memory_size_mib", "kib"),
        "balloon.maximum - current": Field("memory_balloon_mib", "kib"),
    },
    record="for i in 1 2 3 4 5; do LC_ALL=C date; virsh domstats; sleep 60; done > domstats.txt",
)

_DOMAIN = re.compile(r"Domain: '([^']{1,200})'\s{0,4}")
_COUNTER = re.compile(r"\s{1,8}([a-z][\w.-]{1,120})=(.{0,4096})")
_NUMBER = re.compile(r"\d{1,20}")
_NS_PER_S, _NS_PER_MS = 1e9, 1e6
_MIB, _KIB_PER_MIB = float(1 << 20), 1024.0
_PLACED_S = 0.001  # apart, where no time is printed: their span is not known and clears nothing
_VCPUS_MAX = 4096
Counters = dict[str, float | str]
Values = NDArray[np.float64]


def sniff(source: Source) -> int:
    """Sure by a domain's line with counters below it."""
    lines = source.head_text.splitlines()
    return 95 if any(_DOMAIN.fullmatch(a) and _COUNTER.fullmatch(b) for a, b in pairwise(lines)) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of each VM, its vCPUs and disks.

    Raises:
        InputError: no VM that runs.
    """
    builder = CaptureBuilder(source.name, "virsh-domstats", META.tool)
    text = _Text(source, request, builder)
    text.read()
    is_timed = bool(text.samples) and all(time_ns is not None for _, time_ns, _ in text.samples)
    for name in dict.fromkeys(name for name, _, _ in text.samples):
        taken = [(time_ns, counters) for other, time_ns, counters in text.samples if other == name]
        _Vm(name, taken, source, request, builder).add(is_timed=is_timed)
    capture = builder.build(clock_known=is_timed and text.is_zoned)
    if not capture.groups and request.metrics is None:
        raise InputError(
            source.name,
            found="no counter of a VM that runs",
            expected="vCPUs and disks of `virsh domstats`",
            advice=f"Record with `{META.record}`, or with `leadline collect qemu`.",
        )
    return capture


@dataclass(slots=True)
class _Text:
    """The samples of all VMs in the order they were printed: name, time, counters."""

    source: Source
    request: Request
    builder: CaptureBuilder
    samples: list[tuple[str, int | None, Counters]] = field(default_factory=list)
    is_zoned: bool = True

    def read(self) -> None:
        """Read the whole file."""
        text = self.source.text()
        lines = text.splitlines()
        if lines and not text.endswith(("\n", "\r")) and _COUNTER.fullmatch(lines[-1]):
            self.builder.warn("cut", "the last line has no end and was left out")
            lines.pop()
        now: int | None = None
        current: Counters | None = None
        dates = DateLines(self.request, self.builder)
        for line in lines:
            if (domain := _DOMAIN.fullmatch(line)) is not None:
                current = {}
                self.samples.append((domain[1], now, current))
            elif (counter := _COUNTER.fullmatch(line)) is not None:
                if current is None or counter[1] in current:  # twice: the heading of another VM was lost
                    current = None
                    self.builder.warn("left-out", "left out: counters below a heading that cannot be read")
                    continue
                is_number = _NUMBER.fullmatch(counter[2]) is not None
                current[counter[1]] = float(counter[2]) if is_number else counter[2]
            elif line.strip() and (moment := dates.time_ns(line)) is not None:
                now, current = moment, None
            elif line.strip():
                current = None if line.lstrip().startswith("Dom") else current
                self.builder.warn("left-out", "left out: lines that are neither a time, a heading nor a counter")
        self.is_zoned = dates.is_zoned


class _Vm:
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

    def add(self, *, is_timed: bool) -> None:
        """Add the VM's series; rates and shares only where its samples have times."""
        if self.is_single:
            self.builder.warn(
                "one-sample",
                "VMs with one sample: means since the VM was started, no rates; put two or more in one file with "
                f"`{META.record}`, or run `leadline collect qemu`",
            )
        elif not is_timed:
            self.builder.warn(
                "no-times",
                "no line of `date` before each sample: latencies only, no rates and no ready time of vCPUs; record "
                f"with `{META.record}`",
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
