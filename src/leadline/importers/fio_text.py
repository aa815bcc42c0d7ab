"""fio's normal text output: the summary it prints for people.

Reads:
    The text of fio 1.59 to 3: one or many jobs, ``--client`` output, several summaries in a row, anything around them.
    Output that also holds JSON (``--output-format=normal,json``) is read by the JSON importer.

Sample:
    .. code-block:: text

        mixed: (groupid=0, jobs=1): err= 0: pid=6272: Fri Nov 20 22:52:48 2026
          read: IOPS=1499, BW=5998KiB/s (6142kB/s)(17.6MiB/3001msec)
            slat (nsec): min=3215, max=67941, avg=12660.35, stdev=2867.22
            clat (nsec): min=661, max=2788.6k, avg=38012.76, stdev=42857.36
             lat (usec): min=34, max=2802, avg=50.67, stdev=42.98
            clat percentiles (usec):
             |  1.00th=[   28],  5.00th=[   29], 10.00th=[   31], 20.00th=[   33],

Lost:
    Digits: fio rounds to three or four. Rates are computed from the counts and run times where those are printed, as
    fio does. Distributions in percent, CPU use and the group summary are left out.

Units:
    Latencies in the unit that stands in brackets (nsec, usec, msec), with ``k`` or ``K`` as 1000, ``M`` as 1,000,000.
    ``KB/s`` of fio 2 and ``KiB/s`` of fio 3 are both 1024 bytes; ``kB/s`` and ``MB/s`` in brackets are not read.

Sources:
    fio, HOWTO, "Interpreting the output"; ``stat.c`` (``show_ddir_status``).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import Layer
from leadline.formats.fio.results import DIRECTIONS, Statistics, ceiling_ms, latency_of, moment_of, percentile_key
from leadline.formats.printed import bytes_of, number_of, scaled

META = ImporterMeta(
    tool="fio text", marks=("(groupid=", "(g="), layers=(Layer.STORAGE_PATH,), record="fio --output=fio.txt JOBFILE"
)

_JOB = re.compile(
    r"^(?:<(?P<host>[^>]*)> )?(?P<name>\S.*?): \(groupid=(?P<group>\d+), jobs=(?P<jobs>\d+)\): err=\s*(?P<err>\d+)"
    r"(?:\s*\(.*?\))?: pid=(?P<pid>\d+)"
)
_SETTINGS = re.compile(r"^(?:<[^>]*> )?(?P<name>\S.*?): \(g=\d+\): (?P<settings>rw=.*)$")
_VERSION = re.compile(r"^(?:<[^>]*> )?(fio[- ]\d+\.\S*)$")
_WAY = re.compile(r"^(?:<[^>]*> )?\s+(?P<way>read|write|trim|mixed)\s*:\s*(?P<rest>(?:io=|IOPS=).*)$")
_PART = re.compile(r"^(?:<[^>]*> )?\s+(?P<part>slat|clat|lat|sync)\s*\((?P<unit>[num]?sec)\)\s*: (?P<rest>min=.*)$")
_SPREAD = re.compile(r"\b(min|max|avg|stdev)=\s*([\d.]+)([kKMGTPE]?)")
_PERCENTILES = re.compile(r"^(?:<[^>]*> )?\s+(?P<part>slat|clat|lat|sync) percentiles \((?P<unit>[num]?sec)\)\s*:")
_PERCENTILE = re.compile(r"(?<![\d.])([\d.]++)th=\[\s*+(>?=?[\d.]+)([kKMGTPE]?)\]")
_ISSUED = re.compile(r"^(?:<[^>]*> )?\s+issued\s*(?:rwts?)?\s*:\s*total=(?P<total>[^,\s]+(?:,\d+)*)")
_DISK = re.compile(r"^(?:<[^>]*> )?\s+(?P<disk>\S+): ios=.*\butil=(?P<util>\d+(?:\.\d*)?)%")
_RATE = re.compile(r"\bBW=([\d.]+)\s*([KMGTP]i?)?B/s|\b(?:bw|aggrb)=([\d.]+)\s*([KMGTP]i?)?B/s", re.IGNORECASE)
_IOPS = re.compile(r"\biops=\s*([\d.]+)([kMG]?)", re.IGNORECASE)
_RAN = re.compile(r"(?:runt=\s*|/)(\d+)\s*msec")
_SIGNATURE = re.compile(r"\(groupid=\d+, jobs=\d+\): err=|^\S.*: \(g=\d+\): rw=", re.MULTILINE)
_UNITS = {"nsec": "ns", "usec": "us", "msec": "ms", "sec": "s"}
_NAMES = {"avg": "mean", "min": "min", "max": "max", "stdev": "stddev"}
_DISK_STATS = re.compile(r"^(?:<[^>]*> )?Disk stats \(read/write\)")


def sniff(source: Source) -> int:
    """Sure by the line that heads every job; JSON in the same file is the JSON importer's."""
    text = source.head_text
    if '"fio version"' in text or not _SIGNATURE.search(text):
        return 0
    return 92 if "(groupid=" in text or re.search(r"^fio[- ]\d", text, re.MULTILINE) else 50


@dataclass(slots=True)
class _Way:
    """A direction as it is being read: what its line says, and its latencies in ms by part."""

    line: str = ""
    values: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass(slots=True)
class _Job:
    """A job as it is being read; whole once fio's last lines of it (the issued I/Os) were there."""

    head: re.Match[str]
    line: int
    ways: dict[str, _Way] = field(default_factory=dict)
    counts: dict[str, float] = field(default_factory=dict)
    whole: bool = False

    @property
    def says_latency(self) -> bool:
        """Whether it has a mean latency of a direction or of flushes: what people paste ends there."""
        return any("mean" in values for way in self.ways.values() for values in way.values.values())


def read(source: Source, request: Request) -> Capture:
    """A result for each job.

    Raises:
        InputError: no job, or one that breaks off in the middle of the file.
    """
    builder = CaptureBuilder(source.name, "fio-text", META.tool)
    lines = source.lines()
    parsed = _Parser()
    jobs = parsed.taken(lines)
    if len(jobs) == 1 and not jobs[0].whole:
        # A number may be torn where the text has no last line break.
        jobs = _Parser().taken(lines if source.text().endswith("\n") else lines[:-1])
    if len(jobs) == 1 and not jobs[0].whole and jobs[0].says_latency:
        builder.warn("cut", f"the summary of job {jobs[0].head['name']} has no end: what stands there is kept")
        jobs[0].whole = True
    if jobs and not jobs[-1].whole:
        builder.warn("cut", f"the summary of job {jobs[-1].head['name']} was cut and is left out")
        jobs.pop()
    if not jobs:
        raise InputError(
            f"{source.name}:{len(lines)}",
            found="no whole summary of a job",
            expected="`NAME: (groupid=0, jobs=1): err= 0: ...` and what follows to the issued I/Os",
            advice="Let fio run to its end; it prints the summary last.",
        )
    broken = next((job for job in jobs if not job.whole), None)
    if broken is not None:
        raise InputError(
            f"{source.name}:{broken.line}",
            found=f"job {broken.head['name']} breaks off",
            expected="its latencies and issued I/Os before the next job",
            advice="Copy the file again, or record it again with --output=FILE.",
        )
    latest = {(job.head["name"], job.head["host"], job.head["pid"]): job for job in jobs}
    if len(latest) < len(jobs):
        builder.warn("reports", "earlier reports of the same process are left out; the last counts them in")
    builder.results.extend(_result(job, parsed, source.name, request) for job in latest.values())
    return _built(builder, parsed)


def _built(builder: CaptureBuilder, parsed: _Parser) -> Capture:
    spans = [(r.start_ns, r.start_ns + _ns(r.duration_s)) for r in builder.results if r.start_ns is not None]
    if spans:
        builder.warn("no-zone", "the times are local, without a zone; taken in the zone asked for, else as UTC")
    else:
        builder.warn("no-times", "the summary has no date")
    for line in parsed.messages:
        builder.warn("tool-message", line[:200])
    starts, ends = [start for start, _ in spans], [end for _, end in spans]
    return builder.build(
        tool_version=parsed.version,
        clock_known=False,
        start_ns=min(starts, default=None),
        end_ns=max(ends, default=None),
    )


def _ns(seconds: float) -> int:
    return round(seconds * 1e9) if math.isfinite(seconds * 1e9) else 0


class _Parser:
    """Goes through the lines once and keeps what belongs to the job, direction and latency at hand."""

    def __init__(self) -> None:
        self.jobs: list[_Job] = []
        self.settings: dict[str, dict[str, str]] = {}
        self.disks: dict[str, float] = {}
        self.messages: list[str] = []
        self.version: str | None = None
        self._way: _Way | None = None
        self._percentiles: dict[str, float] | None = None
        self._to_ms = 1.0
        self._in_disks = False

    def taken(self, lines: list[str]) -> list[_Job]:
        """The jobs of some lines."""
        for number, line in enumerate(lines, 1):
            self.take(line, number)
        return self.jobs

    def take(self, line: str, number: int) -> None:
        head = _JOB.match(line)
        if head is not None:
            self.jobs.append(_Job(head, number))
            self._way, self._percentiles, self._in_disks = None, None, False
        elif line.startswith("fio: "):
            self.messages.append(line)
        elif settings := _SETTINGS.match(line):
            self.settings[settings["name"]] = _settings(settings["settings"])
        elif version := _VERSION.match(line):
            self.version = version[1].replace(" ", "-")
        elif _DISK_STATS.match(line):
            self._in_disks = True
        elif self._in_disks and (disk := _DISK.match(line)):
            self.disks[disk["disk"]] = float(disk["util"])
        elif self.jobs and not self.jobs[-1].whole:
            self._take_detail(self.jobs[-1], line)

    def _take_detail(self, job: _Job, line: str) -> None:
        if way := _WAY.match(line):
            self._way = job.ways.setdefault(way["way"], _Way(way["rest"]))
            self._percentiles = None
        elif part := _PART.match(line):
            to_ms = factor(_UNITS[part["unit"]], "ms")
            name = part["part"]
            if name == "sync":
                self._way, name = job.ways.setdefault("sync", _Way()), "lat"
            if self._way is not None:
                spread = {
                    _NAMES[key]: scaled(value, suffix) * to_ms for key, value, suffix in _SPREAD.findall(part["rest"])
                }
                self._way.values.setdefault(name, {}).update(spread)
            self._percentiles = None
        elif (heads := _PERCENTILES.match(line)) and self._way is not None:
            name = "lat" if heads["part"] == "sync" else heads["part"]
            self._percentiles = self._way.values.setdefault(name, {})
            self._to_ms = factor(_UNITS[heads["unit"]], "ms")
        elif self._percentiles is not None and "th=[" in line:
            for share, value, suffix in _PERCENTILE.findall(line):
                key = percentile_key(number_of(share))
                self._percentiles[key] = scaled(value.lstrip(">="), suffix) * self._to_ms
        elif issued := _ISSUED.match(line):
            job.counts, job.whole = _counts(issued["total"]), True


def _settings(text: str) -> dict[str, str]:
    """``rw=randrw, bs=(R) 4096B-4096B, (W) ..., ioengine=libaio`` as options; of the block sizes the first."""
    options = dict(re.findall(r"\b(rw|ioengine|iodepth)=([^,\s]+)", text))
    size = re.search(r"\bbs=(?:\(R\) )?([^,]+)", text)
    if size is not None:
        low, _, high = size[1].split("/")[0].strip().partition("-")
        options["bs"] = low if low == high or not high else f"{low}-{high}"
    return options


def _counts(text: str) -> dict[str, float]:
    """``4500,2100,0,0`` of fio 3 and ``r=0/w=66491/d=0`` of fio 2 by direction."""
    named = re.findall(r"([rwdt])=(\d+)", text)
    if named:
        ways = {"r": "read", "w": "write", "d": "trim", "t": "trim"}
        return {ways[key]: float(value) for key, value in named}
    return {way: float(value) for way, value in zip(DIRECTIONS, re.findall(r"\d+", text), strict=False)}


def _result(job: _Job, parsed: _Parser, source: str, request: Request) -> Result:
    head = job.head
    ran_ms = [_ran_ms(way.line) for way in job.ways.values() if way.line]
    duration_s = max((ms for ms in ran_ms if not math.isnan(ms)), default=math.nan) / 1e3
    operations, of = _operations(job, ceiling_ms(parsed.version))
    moment = moment_of(head.string[head.end() :])
    end_ns = None if moment is None else to_ns(moment, request)
    workload: dict[str, Any] = dict(parsed.settings.get(head["name"], {}))
    if int(head["jobs"]) > 1:
        workload["numjobs"] = head["jobs"]
    facts = {"percentiles_of": of, "disk_util_pct": parsed.disks}
    return Result(
        tool="fio",
        job=head["name"],
        operations=operations,
        duration_s=duration_s,
        start_ns=None if end_ns is None else end_ns - _ns(duration_s),
        tool_version=parsed.version,
        host=head["host"],
        workload=workload | {key: value for key, value in facts.items() if value},
        error_count=int(int(head["err"]) > 0),
        source=source,
    )


def _operations(job: _Job, ceiling: float) -> tuple[tuple[Operation, ...], str | None]:
    operations: list[Operation] = []
    of: str | None = None
    for name, way in job.ways.items():
        parts = {part: Statistics(values) for part, values in way.values.items()}
        latency_ms, _, percentiles_of = latency_of(parts)
        of = of or (percentiles_of if way.line else None)
        count, ran_s = job.counts.get(name, math.nan), _ran_ms(way.line) / 1e3
        per_s = count / ran_s if ran_s > 0 and not math.isnan(count) else _iops(way.line)
        operations.append(Operation(name, per_s, _bytes_per_s(way.line), count, latency_ms, ceiling_ms=ceiling))
    return tuple(operations), of


def _ran_ms(line: str) -> float:
    match = _RAN.search(line)
    return float(match[1]) if match else math.nan


def _iops(line: str) -> float:
    match = _IOPS.search(line)
    return scaled(match[1], match[2]) if match else math.nan


def _bytes_per_s(line: str) -> float:
    match = _RATE.search(line)
    if match is None:
        return math.nan
    prefix = (match[2] or match[4] or "")[:1]
    return bytes_of(f"{match[1] or match[3]}{prefix}")
