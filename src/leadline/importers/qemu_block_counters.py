"""What libvirt and QEMU count for the disks of one VM, as ``virsh domblkstat`` and QEMU's monitor print it.

Reads:
    ``virsh domblkstat VM [DISK] [--human]`` and ``info blockstats`` of QEMU's monitor (``qm monitor VMID``), taken once
    or several times in one file, with a line of ``date`` before each; ``virsh domblklist`` and ``virsh domblkinfo``.

Sample:
    .. code-block:: text

        Fri Nov 20 08:30:00 UTC 2026
        root@kvm1:~# virsh domblkstat db01 vda
        vda rd_req 17940
        vda wr_req 4903
        vda wr_total_times 109031753668

Lost:
    The VM, unless the command stands above what it printed: then it is called as the file is. What is counted once
    is a mean since the VM was started. Merged requests, failed ones, and how long a disk was idle.

Units:
    Nanoseconds and bytes that grow from one time to the next become rates and means of a request; see virsh domstats.

Sources:
    libvirt, virsh(1): domblkstat, domblklist, domblkinfo. QEMU, block/monitor/block-hmp-cmds.c: hmp_info_blockstats.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from typing import Any

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.date_lines import DateLines
from leadline.formats.linux.domain_counters import Counters, DomainSeries

META = ImporterMeta(
    tool="virsh domblkstat",
    marks=("rd_req", "rd_bytes=", "number of read operations", "target", "allocation:"),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "rd_req": Field("disk_reads_per_s", "per_s"),
        "wr_req": Field("disk_writes_per_s", "per_s"),
        "rd_req + wr_req": Field("disk_iops", "per_s"),
        "flush_operations": Field("virtual_disk_flushes_per_s", "per_s"),
        "rd_bytes": Field("disk_read_mib_per_s", "bytes_per_s"),
        "wr_bytes": Field("disk_write_mib_per_s", "bytes_per_s"),
        "rd_total_times": Field("virtual_disk_latency_ms_read", "ns"),
        "wr_total_times": Field("virtual_disk_latency_ms_write", "ns"),
        "flush_total_times": Field("virtual_disk_latency_ms_flush", "ns"),
    },
    record="for i in 1 2 3 4 5; do LC_ALL=C date; virsh domblkstat VM vda; sleep 60; done > domblkstat.txt",
)

_COUNTERS = {
    "rd_req": "rd.reqs",
    "wr_req": "wr.reqs",
    "rd_operations": "rd.reqs",
    "wr_operations": "wr.reqs",
    "rd_bytes": "rd.bytes",
    "wr_bytes": "wr.bytes",
    "flush_operations": "fl.reqs",
    "number of read operations": "rd.reqs",
    "number of bytes read": "rd.bytes",
    "number of write operations": "wr.reqs",
    "number of bytes written": "wr.bytes",
    "number of flush operations": "fl.reqs",
} | {
    f"{way}_total_time{ending}": f"{ours}.times"
    for way, ours in (("rd", "rd"), ("wr", "wr"), ("flush", "fl"))
    for ending in ("s", "_ns", "s_ns")
}
_HUMAN_TIMES = {"reads": "rd.times", "writes": "wr.times", "flushes": "fl.times"}
_PLAIN = re.compile(
    r"(\S{0,80}) (rd_req|rd_bytes|wr_req|wr_bytes|errs|\w{2,12}_(?:total_times|operations|req)) +(-?\d{1,20})"
)
_HUMAN = re.compile(r" ?(number of [a-z ]{4,30}|total duration of (reads|writes|flushes) \(ns\)): +(-?\d{1,20})")
_DEVICE = re.compile(r"Device: (\S{1,80})\s{0,4}")
_MONITOR = re.compile(r"([\w#./:-]{1,120})(?: \([^()]{1,80}\))?: ((?:[a-z_]{2,40}=-?\d{1,20} ?){3,40})")
_PAIR = re.compile(r"([a-z_]{2,40})=(-?\d{1,20})")
_COMMAND = re.compile(
    r".{0,100}\bvirsh (?:.{1,60} )?(domblk(?:stat|list|info)) (?:--domain )?(\S{1,80})(?: (\S{1,80}))?.{0,80}"
)
_QM = re.compile(
    r".{0,100}\bqm monitor (\d{1,10})\s*|.{0,40}(?:qm>|\(qemu\)).{0,80}|Entering Qemu Monitor for VM (\d{1,10}).{0,60}"
)
_LIST_HEADING = re.compile(r"^ ?(?:Type +Device +)?Target +Source[ \t]*\r?$", re.MULTILINE)
_LIST_ROW = re.compile(
    r" ?(?:(?:file|block|network|volume|dir|nvme|vhostuser) +(disk|cdrom|floppy|lun) +)?(\S{1,40}) +(\S.{0,400})"
)
_RULE = re.compile(r"-{5,}\s*")
_SIZE = re.compile(r"(Capacity|Allocation|Physical): +(\d{1,20})\s{0,8}")
_SIZES = re.compile(
    r"^Capacity: +\d{1,20}[ \t]*\r?\nAllocation: +\d{1,20}[ \t]*\r?\nPhysical: +\d{1,20}[ \t]*\r?$", re.MULTILINE
)
_MARK = re.compile(
    r"^(?:\S{0,80} rd_req +\d{1,20}[ \t]*\r?\n\S{0,80} rd_bytes +\d"
    r"|[\w#./:-]{1,120}(?: \([^()\n]{1,80}\))?: rd_bytes=\d{1,20} wr_bytes=\d"
    r"|Device: \S{1,80}[ \t]*\r?\n ?number of read operations:)",
    re.MULTILINE,
)


def sniff(source: Source) -> int:
    """Sure by counters of a disk below each other, or by the heading of a list of disks."""
    text = source.head_text
    if _MARK.search(text):
        return 94
    return 88 if _SIZES.search(text) or (_LIST_HEADING.search(text) and re.search(r"^-{20}", text, re.MULTILINE)) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of each disk, and what is known of them.

    Raises:
        InputError: a line is none of the commands', or there is neither a counter nor a disk.
    """
    builder = CaptureBuilder(source.name, "qemu-block-counters", META.tool)
    reader = _BlockLines(source, request, builder)
    reader.read()
    samples = [sample for sample in reader.samples if sample[2]]
    is_timed = bool(samples) and all(time_ns is not None for _, time_ns, _ in samples)
    for name in dict.fromkeys(name for name, _, _ in samples):
        taken = [(time_ns, counters) for other, time_ns, counters in samples if other == name]
        DomainSeries(name, taken, source, request, builder).add(META.record, is_timed=is_timed)
    if not samples and not reader.disk_count:
        raise reader.error("", "no counter of a disk")
    return builder.build(clock_known=is_timed and reader.is_zoned)


@dataclass(slots=True)
class _BlockLines:
    """State of reading line by line."""

    source: Source
    request: Request
    builder: CaptureBuilder
    samples: list[tuple[str, int | None, Counters]] = field(default_factory=list)
    disk_count: int = 0
    is_zoned: bool = True
    _vm: str = ""
    _disk: str = ""
    _now: int | None = None
    _in_list: bool = False
    _numbers: dict[str, list[str]] = field(default_factory=dict)

    def read(self) -> None:
        """Read the whole file.

        Raises:
            InputError: a line is none of the commands'.
        """
        dates = DateLines(self.request, self.builder)
        text = self.source.text()
        lines = text.splitlines()
        whole = len(lines) if text.endswith(("\n", "\r")) else len(lines) - 1
        for index, line in enumerate(lines):
            if not line.strip() or _RULE.fullmatch(line):
                self._in_list = self._in_list and bool(line.strip())
            elif index >= whole:
                self.builder.warn("cut", "the last line has no end and was left out")
            elif (moment := dates.time_ns(line)) is not None:
                if moment != self._now:
                    self._vm_begins()
                self._now = moment
            elif not (self._command(line) or self._counter(line.rstrip()) or self._listed(line.rstrip())):
                raise self.error(f":{index + 1}", f"{line.strip()[:60]!r}")
        self.is_zoned = dates.is_zoned

    def _vm_begins(self) -> None:
        """What follows is another sample."""
        if self.samples and self.samples[-1][2]:
            self.samples.append((self._name(), None, {}))

    def _name(self) -> str:
        if not self._vm:
            self.builder.warn("no-vm", "the text does not say of which VM it is; it is called as the file")
            self._vm = PurePosixPath(self.source.name.replace("\\", "/")).name.partition(".")[0] or "vm"
        return self._vm

    def _command(self, line: str) -> bool:
        """A line that was typed, or a heading."""
        if (match := _COMMAND.fullmatch(line)) is not None:
            if self._vm and self._vm != match[2]:
                self._vm_begins()
            self._vm, self._disk = match[2], match[3] or ""
            return True
        if (match := _QM.fullmatch(line)) is not None:
            self._vm = match[1] or match[2] or self._vm
            return True
        if (match := _DEVICE.fullmatch(line)) is not None:
            self._disk = match[1]
            return True
        if _LIST_HEADING.fullmatch(line):
            self._in_list = True
            return True
        return False

    def _counter(self, line: str) -> bool:
        if (match := _MONITOR.fullmatch(line)) is not None:
            for name, number in _PAIR.findall(match[2]):
                self._put(match[1], _COUNTERS.get(name), number)
            return True
        if (match := _PLAIN.fullmatch(line.strip("\t") if line[:1] != " " else line)) is not None:
            self._put(match[1] or self._disk or "disk", _COUNTERS.get(match[2]), match[3])
            return True
        if (match := _HUMAN.fullmatch(line)) is not None:
            key = _HUMAN_TIMES[match[2]] if match[2] else _COUNTERS.get(match[1])
            self._put(self._disk or "disk", key, match[3])
            return True
        return False

    def _put(self, disk: str, key: str | None, number: str) -> None:
        """Add a counter of a disk to the sample; the same once more begins another sample."""
        if key is None or number.startswith("-"):
            return
        disk = disk.removeprefix("drive-")
        name = self._name()
        sample = f"block.{self._index(name, disk)}.{key}"
        if not self.samples or self.samples[-1][0] != name or sample in self.samples[-1][2] or not self.samples[-1][2]:
            if self.samples and not self.samples[-1][2]:
                self.samples.pop()
            self.samples.append((name, self._now, {}))
        counters = self.samples[-1][2]
        counters[sample] = float(number)
        counters[f"{sample[: -len(key)]}name"] = disk

    def _index(self, name: str, disk: str) -> int:
        """The number of a disk of a VM, the same in all samples."""
        known = self._numbers.setdefault(name, [])
        if disk not in known:
            known.append(disk)
        return known.index(disk)

    def _listed(self, line: str) -> bool:
        """A row of the list of disks, or a size of one of them."""
        if (match := _SIZE.fullmatch(line)) is not None:
            if match[1] == "Capacity" and self._disk:
                self._fact(self._disk, size_gib=int(match[2]) / 2**30)
            self.disk_count += 1
            return True
        if not self._in_list or (match := _LIST_ROW.fullmatch(line)) is None:
            return False
        is_disk = match[1] in {None, "disk", "lun"} and match[3] != "-"
        if is_disk and match[3].startswith("/dev/"):
            self._fact(match[2], device=match[3])
        elif is_disk:
            self._fact(match[2], file=match[3])
        self.disk_count += 1
        return True

    def _fact(self, disk: str, **facts: Any) -> None:  # noqa: ANN401 - settings of any type
        entity = Entity(EntityKind.VIRTUAL_DISK, disk, Entity(EntityKind.VM, self._name()))
        self.builder.inventory.add(entity, self.builder.info.name, **facts)

    def error(self, place: str, problem: str) -> InputError:
        """The error that names a place and what was read there."""
        return InputError(
            f"{self.source.name}{place}",
            found=problem,
            expected="what `virsh domblkstat`, `domblklist`, `domblkinfo` or `info blockstats` print",
            advice=f"Record it again: {META.record}",
        )
