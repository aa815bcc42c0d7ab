"""sysbench: interval reports, summaries and latency histograms of OLTP, fileio, cpu, memory, threads and mutex runs.

Reads:
    The output of sysbench 0.4 to 1.1, one or many runs in one file; ``--report-interval``, ``--histogram``,
    ``--percentile``, ``--rate``, ``--report-checkpoints`` (a result per checkpoint).

Sample:
    .. code-block:: text

        [ 1s ] thds: 4 tps: 38.96 qps: 779.19 (r/w/o: 545.43/155.84/77.92) lat (ms,95%): 2.22 err/s: 0.00 reconn/s: 0.00
        [ 1s ] queue length: 0, concurrency: 0

Lost:
    Fairness of threads. sysbench 1.0 does not print which database it drove: its entity is named "database".

Units:
    Latency in milliseconds; fileio throughput in MiB/s (0.4 and 0.5 write it Mb). A histogram line holds the middle of
    a bucket whose width is 1.8% of it.

Sources:
    sysbench sources: sb_oltp report in ``sysbench.c`` and ``oltp_common.lua``, ``sb_fileio.c``, ``sb_histogram.c``
    (1024 buckets, logarithmic from 0.001 to 100000 ms, a sample goes to the nearest).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, NAN, Elapsed, add_columns, bad_line, placed

META = ImporterMeta(
    tool="sysbench",
    marks=("sysbench ", "]", "running the test with"),
    layers=(Layer.DATABASE, Layer.STORAGE_PATH),
    fields={
        "tps": Field("db_tps", "per_s"),
        "qps": Field("db_qps", "per_s"),
        "thds": Field("db_client_count", "count"),
        "lat (ms,95%)": Field("db_latency_ms_p95", "ms"),
        "lat (ms,99%)": Field("db_latency_ms_p99", "ms"),
        "err/s": Field("db_failed_per_s", "per_s"),
        "reconn/s": Field("db_reconnects_per_s", "per_s"),
        "reads": Field("job_mib_per_s_read", "mib_per_s"),
        "writes": Field("job_mib_per_s_write", "mib_per_s"),
        "latency (ms,95%)": Field("job_latency_ms_p95", "ms"),
        "latency (ms,99%)": Field("job_latency_ms_p99", "ms"),
        "MiB/sec": Field("job_mib_per_s", "mib_per_s"),
    },
    record="sysbench oltp_read_write --report-interval=1 --histogram --percentile=99 --threads=16 --time=600 run",
)
BUCKET_RATIO = float(np.exp((np.log(1e5) - np.log(1e-3)) / 1023))  # one bucket to the next; sb_histogram.c
CEILING_MS = 1e5  # the last bucket; sysbench.c, sb_histogram_init
_BUCKETS = "Buckets"  # in a block of statistics; with a capital, which no key read from the file has
PRINTED_STEP_MS = 0.0005  # half of the last digit a histogram line prints
BYTES_PER_MIB = 1024.0**2

_D = r"(\d{1,15}(?:\.\d{1,9})?)"
_INTERVAL = re.compile(r"\[\s*(\d+(?:\.\d+)?)s\s*\] (.*)")
_OLTP = re.compile(
    rf"(?:thds|threads): (\d+),? tps: {_D},? (?:qps: {_D}|reads(?:/s)?: {_D},? writes(?:/s)?: {_D},?)"
    rf"(?: \(r/w/o: {_D}/{_D}/{_D}\))?"
    rf"(?: (?:lat \(ms,(?P<share>\d+)%\): {_D}|response time: {_D}ms \((?P<old>\d+)%\)))?"
    rf",?(?: err(?:ors)?(?:/s)?: +(?P<err>[\d.]+))?,?(?: reconn(?:ects)?(?:/s)?: +(?P<reconn>[\d.]+))?\s*"
)
_FILEIO = re.compile(
    rf"reads: {_D} Mi?B/s writes: {_D} Mi?B/s fsyncs: {_D}/s"
    rf"(?: latency \(ms,(?P<share>\d+)%\): {_D}| response time: {_D}ms \((?P<old>\d+)%\))?\s*"
)
_EVENTS = re.compile(rf"thds: (\d+) eps: {_D} lat \(ms,(?P<share>\d+)%\): {_D}\s*")
_MEMORY = re.compile(rf"{_D} Mi?B/sec\s*")
_OTHER = re.compile(r"queue length: \d+, concurrency: \d+\s*|Checkpoint report:\s*")
_BUCKET = re.compile(r"\s*(\d+\.\d+) \|[* ]*?(\d{1,15})\s*$")
_BANNER = re.compile(r"sysbench (\d[\w.-]*)")
_PAIR = re.compile(r"\s*([A-Za-z][\w /,:'-]*?(?: \(ms\)|\(s\))?):\s+([\d.]+)\s*(?:\(([\d.]+) per sec(?:ond)?\.?\))?")
_PERCENTILE = re.compile(r"\s*(?:approx\.\s+)?([\d.]+)(?:th|st|nd|rd)? percentile:\s+([\d.]+)")
_OLD_FILEIO = re.compile(r"Operations performed:\s+(\d+) [Rr]eads?, (\d+) [Ww]rites?, (\d+) Other")
_TRANSFERRED = re.compile(rf"\s*{_D} Mi?B transferred \({_D} Mi?B/sec\)")
_IOPS = re.compile(rf"\s*(read|write|fsync):\s+IOPS={_D}(?: {_D} MiB/s)?")
_BLOCK_STARTS = (
    "SQL statistics:", "OLTP test statistics:", "File operations:", "Throughput:", "CPU speed:", "Latency histogram"
)  # fmt: skip
_LATE_STARTS = ("General statistics:", "Test execution summary:")
_MARK = re.compile(
    r"^sysbench \d|^\[\s*\d+s\s*\] (?:thds|threads|reads|\d)|^Running the test with following options:", re.M
)


@dataclass
class _Run:
    """One run as it is collected: rows per kind of interval line, and blocks of statistics."""

    version: str | None = None
    oltp: list[dict[str, float]] = field(default_factory=list)
    io: list[dict[str, float]] = field(default_factory=list)
    blocks: list[dict[str, Any]] = field(default_factory=list)
    options: dict[str, Any] = field(default_factory=dict)
    last_s: float = 0.0

    @property
    def length_s(self) -> float:
        """The longer of what the statistics say and the last interval."""
        return max(self.last_s, sum(float(block.get("total time", 0.0)) for block in self.blocks))


def sniff(source: Source) -> int:
    """Sure by the banner or an interval report."""
    return 92 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the interval reports, one result per block of statistics.

    Raises:
        InputError: there is neither, or an interval report before the last line is damaged.
    """
    builder = CaptureBuilder(source.name, "sysbench", META.tool)
    text = source.text()
    runs = _runs(text.splitlines(), source.name, builder, whole=text.endswith(("\n", "\r")))
    if not any(run.oltp or run.io or run.blocks for run in runs):
        raise bad_line(source.name, 0, "neither an interval report nor statistics", "the output of a sysbench run")
    _add_series(builder, source, request, runs)
    for run in runs:
        complete = [block for block in run.blocks if "total time" in block]
        for block in complete:
            builder.results.append(_result(run, block, source.name))
        if not complete:
            builder.warn("no-summary", "a run ends without statistics: there is no result of it")
    has_series = any(run.oltp or run.io for run in runs)
    return builder.build(clock_known=not has_series, tool_version=next((r.version for r in runs if r.version), None))


def _runs(lines: list[str], name: str, builder: CaptureBuilder, *, whole: bool) -> list[_Run]:
    runs: list[_Run] = []
    for index, line in enumerate(lines):
        banner = _BANNER.match(line)
        if banner or not runs:
            runs.append(_Run(version=banner[1].rstrip(".:") if banner else None))
        interval = _INTERVAL.match(line)
        if interval is None:
            _take_text(line, runs[-1], builder)
            continue
        is_last = index == len(lines) - 1
        if is_last and not whole:
            builder.warn("cut", "the last line has no end and was dropped")
            continue
        try:
            _take_interval(float(interval[1]), interval[2], runs[-1])
        except InputError as error:
            if is_last:
                builder.warn("cut", "the last line is cut and was dropped")
                continue
            raise bad_line(name, index, line, error.expected) from error
    return [run for run in runs if run.oltp or run.io or run.blocks or run.options]


def _take_interval(seconds: float, body: str, run: _Run) -> None:
    """One interval report into its run."""
    if not run.last_s <= seconds <= ELAPSED_S_MAX:
        raise bad_line("", 0, f"{seconds:g} s after {run.last_s:g} s", "times that rise")
    run.last_s = seconds
    oltp, fileio = _OLTP.fullmatch(body), _FILEIO.fullmatch(body)
    events, memory = _EVENTS.fullmatch(body), _MEMORY.fullmatch(body)
    if oltp:
        tps = float(oltp[2])
        row = {"s": seconds, "db_tps": tps, "db_client_count": float(oltp[1])}
        if oltp[3]:
            row["db_qps"] = float(oltp[3])
        _put(row, "db_failed_per_s", oltp["err"])
        _put(row, "db_reconnects_per_s", oltp["reconn"])
        run.oltp.append(row | _latency("db_latency_ms", oltp, tps))
    elif fileio:
        row = {"s": seconds, "job_mib_per_s_read": float(fileio[1]), "job_mib_per_s_write": float(fileio[2])}
        row["raw.sysbench.fsyncs_per_s"] = float(fileio[3])
        run.io.append(row | _latency("job_latency_ms", fileio, sum(float(fileio[i]) for i in (1, 2, 3))))
    elif events:
        row = {"s": seconds, "raw.sysbench.events_per_s": float(events[2])}
        run.io.append(row | _latency("job_latency_ms", events, float(events[2])))
    elif memory:
        run.io.append({"s": seconds, "job_mib_per_s": float(memory[1])})
    elif not _OTHER.fullmatch(body):
        raise bad_line("", 0, body, "an interval report of sysbench")


def _put(row: dict[str, float], metric: str, text: str | None) -> None:
    if text is not None and re.fullmatch(_D, text):
        row[metric] = float(text)


def _latency(prefix: str, match: re.Match[str], per_s: float) -> dict[str, float]:
    """The percentile that was asked for; none when it was switched off or nothing ran in the interval."""
    groups = match.groupdict()
    share = groups.get("share") or groups.get("old")
    if share in (None, "0"):
        return {}
    position = match.re.groupindex["share" if groups.get("share") else "old"]
    value = float(match[position + 1] if groups.get("share") else match[position - 1])
    metric = f"{prefix}_p{share}" if share in {"95", "99"} else f"raw.sysbench.{prefix}_p{share}"
    return {metric: value if per_s > 0 else NAN}


def _take_text(line: str, run: _Run, builder: CaptureBuilder) -> None:
    """Options, statistics and histogram lines; a block of statistics ends where the next begins."""
    stripped = line.strip()
    if stripped.startswith(_BLOCK_STARTS) and (not run.blocks or "total time" in run.blocks[-1]):
        run.blocks.append({})
    if stripped.startswith("FATAL:"):
        builder.warn("fatal", f"sysbench said: {stripped[:100]}")
    option = re.match(
        r"Number of threads: (\d+)|Target transaction rate: (\d+)|Block size ([\d.]+\w+)|Doing (.+) test", line
    )
    if option:
        keys = ("client_count", "rate_per_s", "block_size", "pattern")
        run.options |= {k: int(v) if v.isdigit() else v for k, v in zip(keys, option.groups(), strict=True) if v}
        return
    bucket, percentile = _BUCKET.match(line), _PERCENTILE.match(line)
    if not run.blocks and (stripped in _LATE_STARTS or _OLD_FILEIO.match(line) or _TRANSFERRED.match(line)):
        run.blocks.append({})
    if not run.blocks:
        return
    block = run.blocks[-1]
    pair, old, moved = _PAIR.match(line), _OLD_FILEIO.match(line), _TRANSFERRED.match(line)
    iops = _IOPS.match(line)
    if bucket:
        block.setdefault(_BUCKETS, []).append((float(bucket[1]), int(bucket[2])))
    elif percentile:
        _put(block, f"p{percentile[1]}", percentile[2])
    elif iops:
        block[f"{iops[1]}s/s"] = float(iops[2])
        _put(block, {"read": "read, mib/s", "write": "written, mib/s"}.get(iops[1], "-"), iops[3])
    elif old:
        block |= {"old reads": float(old[1]), "old writes": float(old[2]), "old other": float(old[3])}
    elif moved:
        block["mib/s"] = float(moved[2])
    elif pair:
        _put(block, pair[1].strip().lower(), pair[2])
        _put(block, f"{pair[1].strip().lower()} per s", pair[3])


def _add_series(builder: CaptureBuilder, source: Source, request: Request, runs: list[_Run]) -> None:
    """Series of every run, one run after the other up to the file's last change."""
    database = Entity(EntityKind.DATABASE, "database", UNNAMED_GUEST)
    job = Entity(EntityKind.JOB, "sysbench", UNNAMED_GUEST)
    lengths = [Elapsed(np.array([row["s"] for row in run.oltp or run.io]), run.length_s) for run in runs]
    for run, times in zip(runs, placed(lengths, source.mtime_ns), strict=True):
        rows, entity = (run.oltp, database) if run.oltp else (run.io, job)
        metrics = dict.fromkeys(metric for row in rows for metric in row if metric != "s")
        columns = {metric: [row.get(metric, NAN) for row in rows] for metric in metrics}
        steps = np.diff([row["s"] for row in rows], prepend=0.0)
        add_columns(builder, request, entity, times, columns, interval_s=float(np.median(steps)) if rows else NAN)
    if any(run.oltp or run.io for run in runs):
        message = "interval reports have no date: the last run is taken to end when the file was last written"
        builder.warn("no-times", message)


def _result(run: _Run, block: dict[str, Any], name: str) -> Result:
    """The result of one block of statistics."""
    seconds = block["total time"]
    latency = {stat: block[key] for key, stat in (("avg", "mean"), ("min", "min"), ("max", "max")) if key in block}
    latency |= {key: value for key, value in block.items() if re.fullmatch(r"p[\d.]+", key)}
    buckets = _histogram(block[_BUCKETS]) if _BUCKETS in block else None
    job, operations = _operations(block, seconds, latency, buckets)
    errors = block.get("ignored errors", block.get("deadlocks", 0.0))
    return Result(
        tool=META.tool,
        job=job,
        operations=tuple(replace(operation, ceiling_ms=CEILING_MS) for operation in operations),
        duration_s=seconds,
        tool_version=run.version,
        workload=dict(run.options),
        error_count=int(errors),
        source=name,
    )


def _operations(
    block: dict[str, Any], seconds: float, latency: dict[str, float], buckets: Histogram | None
) -> tuple[str, tuple[Operation, ...]]:
    """The kind of test, and what it counted."""
    count = block.get("total number of events", NAN)
    per_s = count / seconds if seconds > 0 else NAN
    if "transactions" in block:
        shown = block.get("transactions per s", NAN)
        queries = Operation("query", block.get("queries per s", NAN), count=block.get("queries", NAN))
        transaction = Operation("transaction", shown, NAN, block["transactions"], latency, buckets)
        return "oltp", (transaction, *([queries] if "queries" in block else []))
    of_files = "reads/s" in block or "old reads" in block
    kind = "io" if of_files else "event"
    event = Operation(kind, per_s, block.get("mib/s", NAN) * BYTES_PER_MIB, count, latency, buckets)
    if of_files:
        kinds = (("read", "reads", "read, mib/s"), ("write", "writes", "written, mib/s"), ("fsync", "fsyncs", ""))
        operations = [event]
        for operation, key, moved in kinds:
            old = block.get(f"old {key.replace('fsyncs', 'other')}", NAN) / seconds if seconds > 0 else NAN
            operations.append(Operation(operation, block.get(f"{key}/s", old), block.get(moved, NAN) * BYTES_PER_MIB))
        return "fileio", tuple(operations)
    if "mib/s" in block:
        return "memory", (event,)
    return ("cpu" if "events per second" in block else "events"), (event,)


def _histogram(rows: list[tuple[float, int]]) -> Histogram:
    """Buckets around the printed middles; where the printed digits are coarser than a bucket, as wide as the digits."""
    middle = np.array([row[0] for row in rows])
    lower = np.minimum(middle / np.sqrt(BUCKET_RATIO), middle - PRINTED_STEP_MS)
    upper = np.maximum(middle * np.sqrt(BUCKET_RATIO), middle + PRINTED_STEP_MS)
    return Histogram.of(np.maximum(lower, 0.0), upper, [row[1] for row in rows], "ms")
