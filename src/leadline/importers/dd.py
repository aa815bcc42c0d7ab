"""dd: the time of one copy, which is the disk's where every block was synced or the page cache was passed by.

Reads:
    The report of GNU dd in every language, of BusyBox, uutils, the BSDs and macOS; several runs in one file, with the
    command lines before them, the times of the shell and ``status=progress``, or the last line alone.

Sample:
    .. code-block:: text

        # dd if=/dev/zero of=/mnt/pg/t bs=8k count=1000 oflag=dsync
        1000+0 records in
        1000+0 records out
        8192000 bytes (8.2 MB, 7.8 MiB) copied, 24.8 s, 330 kB/s

Lost:
    Reports of progress. Without ``direct``, ``sync`` or ``dsync`` in the command the page cache was measured: only
    the rate is kept, and no latency. Where the command is not in the text, blocks of up to 16 KiB that took 5 ms or
    more each count as waits for the disk; all other runs without a command keep their rate alone.

Units:
    Bytes and seconds as printed; the rate behind them only proves the line. The latency is the time by the number of
    blocks, since dd asks for one block after the other. In the sizes of a command ``k`` is 1024, ``kB`` is 1000.

Sources:
    GNU coreutils manual, "dd invocation"; ``dd.c`` (``print_xfer_stats``); BusyBox ``dd.c``; FreeBSD dd(1).
    Judgement: a page cache takes a block of 16 KiB in less than 0.1 ms, so that 5 ms are a wait.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from sys import intern
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, NAN, Elapsed, add_columns, bad_line, placed

if TYPE_CHECKING:
    from numpy.typing import NDArray

META = ImporterMeta(
    tool="dd",
    marks=("b/", "bytes/", "б/"),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "bytes / seconds": Field("job_mib_per_s", "bytes_per_s"),
        "records / seconds": Field("job_iops", "per_s"),
        "seconds / records": Field("job_latency_ms", "s"),
    },
    record="dd if=/dev/zero of=FILE_ON_THE_DISK bs=8k count=1000 oflag=dsync 2> dd.txt",
)
SMALL_BYTES, WAIT_MS = 16_384, 5.0  # Judgement: see above
RATE_SLACK = 0.06  # two digits are printed

_NUMBER = r"\d{1,12}(?:[.,]\d{1,12})?(?:e[-+]\d{1,3})?"
_RECORDS = re.compile(r"\D{0,12}(\d{1,18})\+(\d{1,18})[^\d+]{1,60}")
_COPIED = re.compile(
    rf"\s*(?P<bytes>\d{{1,20}})[^\d,，、()（）]{{1,40}}(?:[(（][^()（）]{{1,60}}[)）])?[^\d,，、()（）]{{0,40}}[,，、]\s{{0,3}}"
    rf"(?P<seconds>{_NUMBER})\s?[^\W\d_]{{1,12}}[,，、]\s{{0,3}}"
    rf"(?:(?P<rate>{_NUMBER})\s?(?P<prefix>[kKMGTPE]?)i?|[^\W\d_]{{1,12}}\s)(?:B|Б|bytes)/[^\W\d_]{{1,8}}\s*"
)
_TRANSFERRED = re.compile(
    rf"\s*(?P<bytes>\d{{1,20}}) bytes transferred in (?P<seconds>{_NUMBER}) sec(?:ond)?s? "
    rf"\((?P<rate>{_NUMBER})(?P<prefix>) bytes/sec\)\s*"
)
_CALL = re.compile(r"(?:^|[\s/;&|(])dd\s(?:[^|;&]*\s)?(?:if|of|bs|count)=")
_OPERAND = re.compile(r"(?<!\S)(if|of|bs|ibs|obs|count|iflag|oflag|conv)=(\"[^\"]*\"|'[^']*'|[^\s;|&]+)")
_PROMPT = re.compile(r"\s{0,8}(?:\S{1,80}[@:~\\][^#$>%]{0,120}|\[[^\]]{1,100}\]|[\w.-]{0,40})[#$>%](?:\s.*)?")
_TIME = re.compile(r"\s*(?:real|user|sys)\s+\S+\s*|.*\d(?:user|s user|elapsed|system)\b.*|.*pagefaults.*")
_MESSAGE = re.compile(r"\s*(?:\S+/)?dd: \S.*")
_PREFIX = {"": 0, "k": 1, "K": 1, "M": 2, "G": 3, "T": 4, "P": 5, "E": 6}
_SIZE = re.compile(r"(\d{1,15})(c|w|b|[kKMGT](?:iB|B)?)?")
_SIZES = {None: 1, "": 1, "c": 1, "w": 2, "b": 512}
_NO_DISK = ("/dev/zero", "/dev/urandom", "/dev/random", "/dev/null", "/dev/full", "")


@dataclass(slots=True)
class _Run:
    """One report and what is known of its command; counts of blocks are NaN where they are not printed."""

    size_bytes: float
    seconds: float
    read_count: float = NAN
    written_count: float = NAN
    operands: dict[str, str] | None = None

    @property
    def way(self) -> str:
        """``read``, ``write``, ``copy``, or empty where the command is not known."""
        if self.operands is None:
            return ""
        is_read = self.operands.get("if", "") not in _NO_DISK
        is_written = self.operands.get("of", "") not in _NO_DISK
        return "copy" if is_read and is_written else "read" if is_read else "write"

    @property
    def place(self) -> str:
        """The file or device."""
        return (self.operands or {}).get("if" if self.way == "read" else "of", "").strip("\"'")

    @property
    def flags(self) -> frozenset[str]:
        """The flags of the side that is measured."""
        side = "iflag" if self.way == "read" else "oflag"
        return frozenset((self.operands or {}).get(side, "").split(","))

    @property
    def count(self) -> float:
        """Blocks that were asked for."""
        printed = self.read_count if self.way == "read" else self.written_count
        operands = self.operands or {}
        block = _bytes(operands.get("bs") or operands.get("ibs" if self.way == "read" else "obs") or "512")
        if not math.isnan(printed) or self.operands is None:
            return printed
        return math.ceil(self.size_bytes / block) if block > 0 else NAN

    @property
    def name(self) -> str:
        """What one block was, as results name it; with ``buffered`` before it where nothing waits for the disk."""
        if not self.way:
            block = self.size_bytes / self.count if self.count > 0 else NAN
            return "io" if block <= SMALL_BYTES and self.each_ms >= WAIT_MS else "unknown"
        plain = {"read": "read", "write": "write", "copy": "io"}[self.way]
        if self.way != "read" and self.flags & {"sync", "dsync"}:
            return ("open_datasync" if "dsync" in self.flags else "open_sync") if self.way == "write" else plain
        return plain if "direct" in self.flags else f"buffered {plain}"

    @property
    def each_ms(self) -> float:
        """Time of one block."""
        return self.seconds * factor("s", "ms") / self.count if self.count > 0 else NAN

    @property
    def is_measured(self) -> bool:
        """Whether each block waited for the disk."""
        return not self.name.startswith(("buffered", "unknown")) and self.each_ms > 0


@dataclass(slots=True)
class _Reading:
    """The runs so far, and what the lines before the next report say of it."""

    runs: list[_Run] = field(default_factory=list)
    operands: dict[str, str] | None = None
    records: list[float] = field(default_factory=list)
    progress: _Run | None = None
    is_same: bool = False  # no command line since the last report

    def take(self, run: _Run) -> None:
        """A report; one without records before it may be of progress."""
        run.operands = self.operands
        if len(self.records) < 2:
            self._end_progress(run)
            self.progress = run
            return
        self.progress = None
        run.read_count, run.written_count = self.records[-2:]
        last = self.runs[-1] if self.runs and self.is_same and self.operands is not None else None
        if last is not None and last.size_bytes < run.size_bytes and last.seconds < run.seconds:
            self.runs.pop()  # a report that a signal asked for
        self.runs.append(run)
        self.records, self.is_same = [], True

    def call(self, operands: dict[str, str] | None) -> None:
        """A command line; None where it calls something else."""
        self._end_progress(None)
        self.operands, self.records, self.is_same = operands, [], False

    def end(self) -> list[_Run]:
        """All runs."""
        self._end_progress(None)
        return self.runs

    def _end_progress(self, following: _Run | None) -> None:
        """Count a report without records as a run, unless a later report of the same run follows."""
        last = self.progress
        if last is not None and (following is None or following.size_bytes <= last.size_bytes):
            self.runs.append(last)
        self.progress = None


def sniff(source: Source) -> int:
    """Sure by a report whose rate is that of its bytes and seconds."""
    return 92 if any(_report(line) is not None for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """A result per run; a sample of its rate, and of its latency where the disk was waited for.

    Raises:
        InputError: no report, or a line that is none of dd's nor of a shell's.
    """
    builder = CaptureBuilder(source.name, "dd", META.tool)
    runs = _runs(source, builder)
    if not runs:
        raise bad_line(source.name, 0, "no report", "the report of dd with bytes, seconds and rate")
    (times_ns,) = placed([Elapsed(seconds := np.cumsum([run.seconds for run in runs]), seconds[-1])], source.mtime_ns)
    for number, run in enumerate(runs, 1):
        _add(builder, request, run, f" {number}" if len(runs) > 1 else "", times_ns[number - 1 : number])
        _say(builder, run)
    builder.warn("no-times", "runs have no time: the last is taken to end when the file was last written")
    return builder.build(clock_known=False)


def _runs(source: Source, builder: CaptureBuilder) -> list[_Run]:
    reading = _Reading()
    text = source.text()
    if _CALL.search(source.command):
        reading.call(_operands(source.command))
    for index, line in enumerate(text.splitlines()):
        report = _report(line)
        if report is not None:
            if not 0 <= report.seconds <= ELAPSED_S_MAX:
                raise bad_line(source.name, index, line, "seconds")
            reading.take(report)
        elif (records := _RECORDS.fullmatch(line)) is not None:
            reading.records.append(float(records[1]) + float(records[2]))
        elif _CALL.search(line):
            reading.call(_operands(line))
        elif _MESSAGE.fullmatch(line):
            builder.warn("tool-message", line.strip()[:200])
        elif _PROMPT.fullmatch(line):
            reading.call(None)
        elif line.strip() and not _TIME.fullmatch(line):
            raise bad_line(source.name, index, line, "a line of dd")
    return [run for run in reading.end() if run.seconds > 0 and run.size_bytes > 0]


def _report(line: str) -> _Run | None:
    """The report of a line; None where it is none or its rate is not that of its bytes and seconds."""
    match = _COPIED.fullmatch(line) or _TRANSFERRED.fullmatch(line)
    if match is None:
        return None
    run = _Run(float(match["bytes"]), float(match["seconds"].replace(",", ".")))
    if match["rate"] is None or not run.seconds > 0:
        return run
    rate, power = float(match["rate"].replace(",", ".")), _PREFIX[match["prefix"]]
    per_s = run.size_bytes / run.seconds
    low, high = (rate * (1 - RATE_SLACK) - 1) * 1000.0**power, (rate * (1 + RATE_SLACK) + 1) * 1024.0**power
    is_short = run.seconds < 0.1  # its few digits say little of the rate
    return run if is_short or low <= per_s <= high else None


def _operands(line: str) -> dict[str, str] | None:
    """What a command line asks of dd; None where several are in a pipe, of which each prints a report."""
    calls = line.split("|")
    if sum(bool(_CALL.search(call)) for call in calls) != 1:
        return None
    return {intern(name): intern(text) for name, text in _OPERAND.findall(line)}  # loops repeat them


def _bytes(text: str) -> float:
    """A size of a command, which may be a product; NaN when it is none.

    >>> _bytes("8k"), _bytes("1MB"), _bytes("2x512")
    (8192.0, 1000000.0, 1024.0)
    """
    size = 1.0
    for each in text.strip("\"'").split("x"):
        match = _SIZE.fullmatch(each)
        if match is None:
            return NAN
        suffix = match[2]
        is_plain = suffix in _SIZES
        base = 1000.0 if not is_plain and suffix.endswith("B") and "i" not in suffix else 1024.0
        size *= float(match[1]) * (_SIZES[suffix] if is_plain else base ** _PREFIX[suffix[0]])
    return size


def _add(builder: CaptureBuilder, request: Request, run: _Run, suffix: str, times_ns: NDArray[np.int64]) -> None:
    """The result and the sample of a run."""
    latency_ms = run.each_ms if run.is_measured else NAN
    per_s = run.count / run.seconds if run.count > 0 else NAN
    bytes_per_s = run.size_bytes / run.seconds
    job = f"{run.name} {run.place}".strip() + suffix
    columns = {
        "job_latency_ms": [latency_ms],
        "job_iops": [per_s if run.is_measured else NAN],
        "job_mib_per_s": [bytes_per_s / 2**20],
    }
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    add_columns(builder, request, entity, times_ns, columns, interval_s=run.seconds)
    latencies = {"mean": latency_ms} if run.is_measured else {}
    operation = Operation(run.name, per_s, bytes_per_s, run.count, latencies)
    workload: dict[str, Any] = {key: value for key, value in (run.operands or {}).items() if key not in ("if", "of")}
    if run.place:
        workload["filename"] = run.place
    builder.results.append(
        Result(META.tool, job, (operation,), run.seconds, workload=workload, source=builder.info.name)
    )


def _say(builder: CaptureBuilder, run: _Run) -> None:
    """What a run does not tell of the disk."""
    if run.name == "unknown":
        builder.warn("no-command", "the command is not in the text: a run may have measured the page cache")
    elif run.name == "io" and not run.way:
        builder.warn(
            "no-command",
            f"the command is not in the text: blocks of up to {SMALL_BYTES // 1024} KiB that took {WAIT_MS:g} ms or "
            "more each are taken to wait for the disk",
        )
    elif run.name.startswith("buffered") and not {"fsync", "fdatasync"} & set(
        (run.operands or {}).get("conv", "").split(",")
    ):
        builder.warn(
            "page-cache",
            "a run without oflag=direct or dsync (reads: iflag=direct) measured the page cache: "
            "its rate says nothing of the disk",
        )
