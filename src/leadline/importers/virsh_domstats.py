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

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.date_lines import DateLines
from leadline.formats.linux.domain_counters import Counters, DomainSeries

META = ImporterMeta(
    joins=True,
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
        DomainSeries(name, taken, source, request, builder).add(META.record, is_timed=is_timed)
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
