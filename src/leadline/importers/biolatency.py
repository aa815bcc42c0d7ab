"""Histograms of latency by tracers of the Linux kernel: biolatency, and ext4dist, xfsdist, runqlat in its shape.

Reads:
    What ``biolatency`` of bcc prints (with ``-D -F -Q -T -m -e -j``), ``biolatency.bt`` of bpftrace, and the histograms
    of ``ext4dist``, ``xfsdist``, ``nfsdist``, ``btrfsdist``, ``zfsdist`` and ``runqlat`` of both, of one or many
    intervals.

Sample:
    .. code-block:: text

        Tracing block device I/O... Hit Ctrl-C to end.
        06:20:16
        disk = 'sdb'
             usecs               : count     distribution
               512 -> 1023       : 43       |*******************************         |
              1024 -> 2047       : 52       |****************************************|

Lost:
    Where in its bar a request was: bars are powers of two. Rates where no line tells the time. Which disk it was,
    without ``-D``: such histograms are those of ``all-disks``. Histograms of file systems and of the run queue are
    results only, since most of what they count never reached a disk.

Units:
    Microseconds (milliseconds with ``-m``, nanoseconds in own scripts). A bar counts from its first number to below
    the next power of two. The mean is printed with ``-e``; else it is taken from the middles of the bars, which is at
    most a third too high or too low.

Sources:
    bcc: tools/biolatency.py, src/python/bcc/table.py (print_log2_hist), libbpf-tools/biolatency.c. bpftrace:
    tools/biolatency.bt, docs/reference_guide (hist).
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from dataclasses import dataclass, field
from datetime import datetime, time

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer

META = ImporterMeta(
    tool="biolatency",
    marks=(": count ", "@us", "'val_type'", "[1k, 2k)", "@usecs"),
    layers=(Layer.GUEST,),
    fields={
        "all": Field("guest_disk_await_ms", "us"),
        "read": Field("guest_disk_await_ms_read", "us"),
        "write": Field("guest_disk_await_ms_write", "us"),
        "flush": Field("guest_disk_flush_latency_ms", "us"),
        "count": Field("disk_iops", "per_s"),
        "count of reads": Field("disk_reads_per_s", "per_s"),
        "count of writes": Field("disk_writes_per_s", "per_s"),
        "count of flushes": Field("guest_disk_flushes_per_s", "per_s"),
        "p99": Field("guest_disk_latency_ms_p99", "us"),
    },
    record="biolatency-bpfcc -D -T 1 60 > biolatency.txt",
)

_HEADING = re.compile(r" {1,12}(nsecs|usecs|msecs|secs) {1,24}: count {1,12}distribution", re.ASCII)
_BAR = re.compile(r" {0,24}(\d{1,20}) -> (\d{1,20}) {0,24}: (\d{1,18}) {0,12}\|[*+ ]{0,80}\|?", re.ASCII)
_MAP = re.compile(r"@(\w{0,60})(?:\[([^\]]{1,200})\])?: ?")
_EDGE = r"(\d{1,20}[KMGTPE]?)"
_MAP_BAR = re.compile(
    rf"(?:\[{_EDGE}(?:, {_EDGE})?[\])]|\(\.\.\., 0\)) {{1,40}}(\d{{1,18}}) \|[@ ]{{0,80}}\|?", re.ASCII
)
_LABEL = re.compile(r"(?:Bucket )?(disk|flags|operation|pid|pidns|cgroup|comm) = '?(.{0,100}?)'?")
_CLOCK = re.compile(r"(?:(\d{4}-\d\d-\d\d) )?(\d\d):(\d\d):(\d\d):?")
_AVERAGE = re.compile(r"avg = (\d{1,18}) (nsecs|usecs|msecs|secs), total: \d{1,20} \w{4,5}, count: (\d{1,18})")
_TRACING = re.compile(
    r"Tracing (block device I/O|block I/O|run queue latency|[\w-]{2,12} (?:operation )?latency)?.{0,80}"
)
_CHATTER = re.compile(
    r"\^C|Attaching \d{1,5} probes?\.\.\.|Detaching\.\.\.|# ?\S.{0,200}|\$ .{0,200}|WARNING: .{0,200}"
)
_MS_PER = {"nsecs": 1e-6, "usecs": 1e-3, "msecs": 1.0, "secs": 1e3, "ns": 1e-6, "us": 1e-3, "ms": 1.0}
_FACTORS = {letter: 1 << (10 * power) for power, letter in enumerate("KMGTPE", 1)}
_ALL_DISKS = "all-disks"
_WAYS = {"all": ("disk_iops", "io"), "read": ("disk_reads_per_s", "read"), "write": ("disk_writes_per_s", "write")} | {
    "flush": ("guest_disk_flushes_per_s", "fsync")
}


@dataclass(slots=True)
class _Bars:
    """One histogram: of what kind, of what, in which interval (counted from 0), and its bars in milliseconds."""

    subject: str  # disk, file-system or run-queue
    label: tuple[str, str]
    interval: int
    line: int
    ms: float
    bars: list[tuple[float, float, int]] = field(default_factory=list)
    mean_ms: float = float("nan")

    @property
    def count(self) -> int:
        return sum(count for _, _, count in self.bars)

    @property
    def total_ms(self) -> float:
        """The latencies of all requests in sum: as printed, else by the middles of the bars."""
        if np.isfinite(self.mean_ms):
            return self.mean_ms * self.count
        return sum((low + high) / 2 * count for low, high, count in self.bars)


def sniff(source: Source) -> int:
    """Sure by the heading of a histogram, or the name of a map with bars below it."""
    lines = source.head_text.splitlines()[:200]
    if any(_HEADING.fullmatch(line) or "'val_type': '" in line for line in lines):
        return 90
    return 85 if any(_MAP.fullmatch(line) for line in lines) and any(_MAP_BAR.fullmatch(line) for line in lines) else 0


def read(source: Source, request: Request) -> Capture:
    """Means, rates and 99th percentiles of each disk, and a result with the pooled histogram.

    Raises:
        InputError: a line is no part of a histogram, or none says of what it is.
    """
    builder = CaptureBuilder(source.name, "biolatency", META.tool)
    reader = _Reader(source)
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    for number, line in enumerate(lines, 1):
        if line.strip() and not reader.take(number, line):
            raise _refused(f"{source.name}:{number}", f"{line.strip()[:60]!r}")
    known = [one for one in reader.histograms if one.count]
    if not known:
        raise _refused(f"{source.name}:1", "no bar of a histogram")
    times, interval_s = _times(reader, source, request, builder)
    if any(not np.isfinite(one.mean_ms) for one in known if one.subject == "disk"):
        builder.warn("middles", "means are taken from the middles of bars: at most a third too high or too low")
    _emit(known, times, interval_s, builder, request)
    return builder.build(clock_known=False)


@dataclass(slots=True)
class _Reader:
    """The lines of a tracer as they come."""

    source: Source
    histograms: list[_Bars] = field(default_factory=list)
    clocks: list[tuple[str, time] | None] = field(default_factory=list)
    _subject: str = ""
    _label: tuple[str, str] = ("", "")
    _labels: set[tuple[str, str]] = field(default_factory=set)

    def take(self, number: int, line: str) -> bool:
        """One line that is not blank; False where it is none of a tracer's."""
        text = line.strip()
        bar = _BAR.fullmatch(line) or _MAP_BAR.fullmatch(text)
        if bar is not None:
            return self._bar(bar)
        if (heading := _HEADING.fullmatch(line)) is not None:
            return self._begin(number, self._label, _MS_PER[heading[1]])
        if (named := _MAP.fullmatch(text)) is not None:
            return self._map(number, named)
        if text.startswith("{'ts'"):
            return self._json(number, text)
        return self._between(text)

    def _between(self, text: str) -> bool:
        if (label := _LABEL.fullmatch(text)) is not None:
            self._label = (label[1], label[2])
            if label[1] == "operation":
                self._subject = "file-system"
            return True
        if (clock := _CLOCK.fullmatch(text)) is not None:
            return self._clock(clock)
        if (average := _AVERAGE.fullmatch(text)) is not None and self.histograms:
            self.histograms[-1].mean_ms = float(average[1]) * _MS_PER[average[2]]
            return True
        tracing = _TRACING.fullmatch(text)
        if tracing is not None:
            words = tracing[1] or ""
            self._subject = "disk" if "block" in words else "run-queue" if "run queue" in words else "file-system"
            return True
        return _CHATTER.fullmatch(text) is not None

    def _clock(self, match: re.Match[str]) -> bool:
        try:
            clock = time(int(match[2]), int(match[3]), int(match[4]))
        except ValueError:
            return False
        self.clocks.append((match[1] or "", clock))
        self._label, self._labels = ("", ""), set()
        return True

    def _begin(self, number: int, label: tuple[str, str], ms: float, subject: str = "") -> bool:
        """A histogram; one of a label that was there begins a new interval where no time does."""
        subject = subject or self._subject or ("disk" if label[0] in {"disk", "flags"} else self._by_name())
        if not subject:
            raise _refused(f"{self.source.name}:{number}", "a histogram that does not say of what it is")
        if not self.clocks or label in self._labels:
            self.clocks.append(None)
            self._labels = set()
        self._labels.add(label)
        self.histograms.append(_Bars(subject, label, len(self.clocks) - 1, number, ms))
        self._label = ("", "")
        return True

    def _by_name(self) -> str:
        name = self.source.name.rpartition("/")[2].casefold()
        return "disk" if "biolat" in name else "run-queue" if "runqlat" in name else "file-system" * ("dist" in name)

    def _map(self, number: int, match: re.Match[str]) -> bool:
        name, key = match[1], match[2] or ""
        unit = next((ms for start, ms in _MS_PER.items() if name.startswith(start)), None)
        if unit is None:
            return False
        subject = "file-system" if re.search(r"_(?:read|write|open|fsync|iter|getattr)", key) else ""
        label = ("operation", key) if subject else ("disk", key) if key else ("", "")
        if not subject and not self._subject and not self._by_name():
            subject = "disk" if name == "usecs" else "run-queue" if "cpu" in key else ""
        return self._begin(number, label, unit, subject)

    def _bar(self, bar: re.Match[str]) -> bool:
        if not self.histograms:
            return False
        last = self.histograms[-1]
        groups = bar.groups()
        low = _edge(groups[0]) if groups[0] else 0
        if bar.re is _BAR:
            high = int(groups[1]) + 1
        else:
            high = _edge(groups[1]) if groups[1] else low + 1
        if high <= low or (last.bars and low * last.ms < last.bars[-1][1] * (1 - 1e-9)):
            return False
        last.bars.append((low * last.ms, high * last.ms, int(groups[2])))
        return True

    def _json(self, number: int, text: str) -> bool:
        try:
            document = ast.literal_eval(text)
            moment = datetime.fromisoformat(str(document["ts"]))
            unit = _MS_PER[str(document["val_type"])]
            bars = [(int(b["interval-start"]), int(b["interval-end"]), int(b["count"])) for b in document["data"]]
        except (ValueError, SyntaxError, KeyError, TypeError, RecursionError, MemoryError):
            return False
        label = next(((kind, str(document[kind])) for kind in ("disk", "flags") if kind in document), ("", ""))
        stamp = (moment.date().isoformat(), moment.time().replace(microsecond=0, tzinfo=None))
        if not self.clocks or self.clocks[-1] != stamp:
            self.clocks.append(stamp)
            self._labels = set()
        self._begin(number, label, unit, "" if self._subject else "disk")
        limit = 1 << 62
        if any(low < 0 or high < low or not 0 <= count < limit for low, high, count in bars):
            return False
        self.histograms[-1].bars += [(low * unit, (high + 1) * unit, count) for low, high, count in bars]
        return True


def _edge(text: str) -> int:
    return int(text[:-1]) * _FACTORS[text[-1]] if text[-1] in _FACTORS else int(text)


def _times(
    reader: _Reader, source: Source, request: Request, builder: CaptureBuilder
) -> tuple[np.ndarray[tuple[int], np.dtype[np.int64]], float]:
    """UTC nanoseconds [intervals] and the usual length of an interval in seconds; NaN where no line tells it."""
    known = [clock for clock in reader.clocks if clock is not None]
    if len(known) < len(reader.clocks):
        builder.warn("no-times", "histograms have no time: no rates, and the last is at the file's last change")
        return synthetic_times(len(reader.clocks), 1.0, source.mtime_ns), float("nan")
    day = assumed_date(source, request)
    days = [datetime.fromisoformat(date).date() if date else day for date, _ in known]
    moments = [to_ns(datetime.combine(each, clock), request) for each, (_, clock) in zip(days, known, strict=True)]
    if not all(date for date, _ in known):
        builder.warn("no-date", f"times have no date; {day} was assumed; --date sets it")
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    times = rolled_over(moments)
    steps = np.diff(times)
    return times, float(np.median(steps[steps > 0])) / 1e9 if np.any(steps > 0) else float("nan")


def _way(label: tuple[str, str]) -> str:
    """Of which requests a histogram of biolatency is: all, read, write or flush."""
    if label[0] != "flags":
        return "all"
    flags = label[1].casefold()
    return next((way for way in ("flush", "read", "write") if flags.endswith(way) or way in flags), "other")


def _emit(
    histograms: list[_Bars],
    times: np.ndarray[tuple[int], np.dtype[np.int64]],
    interval_s: float,
    builder: CaptureBuilder,
    request: Request,
) -> None:
    groups: defaultdict[tuple[str, str, str], list[_Bars]] = defaultdict(list)
    for one in histograms:
        name = one.label[1] if one.label[0] == "disk" else _ALL_DISKS
        if one.subject == "disk":
            groups["disk", name or _ALL_DISKS, _way(one.label)].append(one)
        else:
            groups[one.subject, one.label[1] or one.subject, one.label[1] or "wait"].append(one)
    operations: defaultdict[tuple[str, str], list[Operation]] = defaultdict(list)
    for (subject, name, way), known in groups.items():
        pooled = Histogram.merged([_histogram([one]) for one in known])
        operation = _WAYS[way][1] if subject == "disk" and way in _WAYS else way
        operations[subject, name if subject == "disk" else subject].append(
            Operation(operation, count=float(pooled.total), histogram=pooled)
        )
        if subject == "disk" and way in _WAYS:
            _emit_disk((name, way), known, (times, interval_s), builder, request)
    for (subject, name), parts in operations.items():
        tool = {"disk": META.tool, "run-queue": "runqlat"}.get(subject, "file system latency")
        builder.results.append(Result(tool, name, tuple(parts), source=builder.info.name, is_observed=True))
    builder.inventory.add(UNNAMED_GUEST, builder.info.name)


def _histogram(parts: list[_Bars]) -> Histogram:
    bars = [bar for part in parts for bar in part.bars]
    return Histogram.of([bar[0] for bar in bars], [bar[1] for bar in bars], [bar[2] for bar in bars], "ms")


def _emit_disk(
    of: tuple[str, str],
    known: list[_Bars],
    when: tuple[np.ndarray[tuple[int], np.dtype[np.int64]], float],
    builder: CaptureBuilder,
    request: Request,
) -> None:
    """The series of one disk and way; several sets of flags of one way are one."""
    (name, way), (times, interval_s) = of, when
    disk = Entity(EntityKind.BLOCK_DEVICE, name, UNNAMED_GUEST)
    counts, totals = np.zeros(len(times)), np.zeros(len(times))
    p99 = np.full(len(times), np.nan)
    for place in sorted({one.interval for one in known}):
        parts = [one for one in known if one.interval == place]
        counts[place] = sum(one.count for one in parts)
        totals[place] = sum(one.total_ms for one in parts)
        p99[place] = Histogram.merged([_histogram([one]) for one in parts]).quantile(0.99)
    means = np.divide(totals, counts, out=np.full(len(times), np.nan), where=counts > 0)
    order = np.argsort(times, kind="stable")
    rows = {META.fields[way].metric: means, _WAYS[way][0]: counts / interval_s}
    if way == "all":
        rows["guest_disk_latency_ms_p99"] = p99
    for metric, values in rows.items():
        if request.wants(metric) and np.isfinite(values).any():
            builder.add_series(metric, disk, times[order], values[order], interval_s=interval_s)


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="histograms of biolatency, ext4dist, xfsdist or runqlat",
        advice=f"Record it with: {META.record}",
    )
