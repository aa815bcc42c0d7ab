"""go-tpc: TPC-C transactions and TPC-H queries as PingCAP's tool (also ``tiup bench``) prints them.

Reads:
    What ``go-tpc tpcc run``, ``tpch run`` and ``ch run`` print in the plain style, versions 1.0.0 to 1.0.12: the
    lines of intervals (``[Current]``), the summary and ``tpmC``. A command line above them says how many clients there
    were and how often each query ran.

Sample:
    .. code-block:: text

        [Current] PAYMENT - Takes(s): 9.9, Count: 2, TPM: 12.1, Sum(ms): 9.8, Avg(ms): 4.9, 50th(ms): 4.7, …
        [Summary] Q1: 32.13s
        tpmC: 362.5, tpmTotal: 801.4, efficiency: 281.9%

Lost:
    The styles ``table`` and ``json``, keying and thinking times (``--wait``), QphH, the partition of warehouses.

Units:
    Milliseconds of TPC-C, seconds of TPC-H. go-tpc's buckets are 0.52 ms wide up to 16.8 ms, then a sixteenth to a
    thirty-second of their value; shorter than 1 ms counts as 1 ms, longer than 16 s as 16 s. A query of TPC-H counts as
    100 ms at least. Means of TPC-C are ``Sum`` by ``Count``, which are exact.

Sources:
    go-tpc sources: pkg/measurement/hist.go, tpcc/workload.go, tpch/workload.go, ch/workload.go, cmd/go-tpc/misc.go.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.go_tpc.intervals import IntervalLine, interval_histogram
from leadline.formats.loadtool import NAN, Elapsed, add_columns, bad_line, placed

META = ImporterMeta(
    tool="go-tpc",
    marks=("[summary] ", "[current] "),
    layers=(Layer.DATABASE,),
    fields={
        "Count / Takes(s)": Field("db_tps", "per_s"),
        "Sum(ms) / Count": Field("db_latency_ms", "ms"),
        "_ERR Count / Takes(s)": Field("db_failed_per_s", "per_s"),
    },
    record="go-tpc tpcc run --warehouses 10 -T 16 --time 10m --interval 1s --ignore-error ... 2>&1 | tee go-tpc.txt",
)
QUERY_COUNT = 22  # Source: TPC-H specification, 2.4
LEAST_QUERY_MS = 100.0  # Source: tpch/workload.go, MinLatency
LONGEST_MS = 16_000.0  # Source: pkg/measurement/measure.go, DefaultMaxLatency
HALF_DIGIT_MS = 5.0  # of a query's seconds, which have two decimals
MEAN_RATIO_MAX = 2.0  # Judgement: a mean of buckets is within a sixteenth; versions that print seconds as ms are not
SHORT_S = 0.5  # Judgement: of intervals shorter than that, Takes (one decimal) says no length
FEW_COUNT = 8.0  # Judgement: of up to so many operations, the printed ranks are most of them

_NAME = r"([A-Z][A-Z0-9_]{0,30})"
_LINE = re.compile(rf"\[(Current|Summary)\] {_NAME} *- ([A-Z][^:]{{0,20}}: .*)")
_QUERY = re.compile(r"\[(Current|Summary)\] (Q\d{1,2}(?:_ERR)?): (\d{1,9}\.\d\d)s")
_CELL = re.compile(r"([A-Z0-9][\w.()%]{0,12}): (\d{1,15}(?:\.\d)?)(?:, |$)")
_TPMC = re.compile(r"tpmC: (\d{1,12}\.\d)(?:, tpmTotal: (\d{1,12}\.\d), efficiency: (\d{1,9}\.\d)%)?\s*$")
_COMMAND = re.compile(r"(?:\S{0,200}go-tpc|tiup bench)\s+(?:.{0,400}?\s)?(tpcc|tpch|ch)\s(.*)")
_OPTION = re.compile(r"(?<!\S)(?:--(warehouses|threads|count|sf|queries)[ =]|-(T) ?)([\w,]+)")
_MARK = re.compile(
    rf"^\[(?:Current|Summary)\] (?:{_NAME} *- (?:Takes\(s\)|Count): \d|Q\d{{1,2}}: \d+\.\d\ds)", re.MULTILINE
)
_NAME_ONLY = re.compile(rf"\[(?:Current|Summary)\] {_NAME} *- Takes")
_PRINTED = {"50th": "p50", "90th": "p90", "95th": "p95", "99th": "p99", "99.9th": "p99.9", "Max": "max"}


@dataclass
class _TpcRun:
    """One run as it is collected: lines of intervals by operation, the summary, what the command line says."""

    benchmark: str = ""
    options: dict[str, str] = field(default_factory=dict)
    blocks: list[dict[str, IntervalLine]] = field(default_factory=list)
    summary: dict[str, IntervalLine] = field(default_factory=dict)
    queries: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)

    @property
    def is_used(self) -> bool:
        """Whether anything was printed of it."""
        return bool(self.blocks or self.summary or self.queries)

    @property
    def interval_s(self) -> float:
        """How long its intervals are: the longest time in each, the median of those."""
        times = [max((line.takes_s for line in block.values()), default=NAN) for block in self.blocks]
        return float(np.median(times)) if times else NAN

    def query_count(self) -> float:
        """How often each query ran, by ``--count``; NaN where that says nothing."""
        asked, clients = int(self.options.get("count", 0)), int(self.options.get("threads", 1))
        queries = len(self.options["queries"].split(",")) if "queries" in self.options else QUERY_COUNT
        return asked / queries if asked and clients and asked % (queries * clients) == 0 else NAN


def sniff(source: Source) -> int:
    """Sure by a line of an interval or of the summary."""
    return 92 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the intervals of TPC-C on the database, a result for each transaction type or query.

    Raises:
        InputError: nothing of a run is in it, or a line before the last is damaged.
    """
    builder = CaptureBuilder(source.name, "go-tpc", META.tool)
    runs = _runs(source, builder)
    if not runs:
        raise bad_line(source.name, 0, "no line of an interval or a summary", "what go-tpc prints in the plain style")
    for run in runs:
        results = _results(run, source.name, builder)
        if not results:
            builder.warn("no-summary", "a run ends without a summary: there is no result of it")
        builder.results.extend(results)
    if builder.results:
        builder.warn("not-audited", "no audited TPC results: compare them with go-tpc's alone, not with published ones")
    has_series = _add_series(builder, source, request, runs)
    return builder.build(clock_known=not has_series)


def _runs(source: Source, builder: CaptureBuilder) -> list[_TpcRun]:
    """Every run of the file; a line that is cut at its end is dropped with a warning."""
    lines = source.lines()
    runs = [_TpcRun()]
    for index, line in enumerate(lines):
        text = line.strip()
        command = _COMMAND.search(text)
        starts = text.startswith("[Current]") and (runs[-1].summary or runs[-1].queries)
        if (command or starts) and runs[-1].is_used:
            runs.append(_TpcRun())
        if command:
            options = {long or "threads": value for long, _, value in _OPTION.findall(command[2])}
            runs[-1].benchmark = command[1]
            runs[-1].options = {k: v for k, v in options.items() if v.isdigit() or k == "queries"}
        if not text.startswith(("[Current]", "[Summary]", "tpmC:")) or _take(text, runs[-1]):
            continue
        if index < len(lines) - 1 and _NAME_ONLY.match(text):
            raise bad_line(source.name, index, text, "[Summary] NAME - Takes(s): NUMBER, Count: NUMBER, …")
        builder.warn("cut", "lines that are cut or of another kind were left out")
    return [run for run in runs if run.is_used]


def _take(text: str, run: _TpcRun) -> bool:
    """Put one line into its run; whether it was of a known kind."""
    line, query, rate = _LINE.fullmatch(text), _QUERY.fullmatch(text), _TPMC.match(text)
    if rate:
        names = ("tpmC", "tpmTotal", "efficiency_pct")
        run.rates = {name: float(number) for name, number in zip(names, rate.groups(), strict=True) if number}
    elif query:
        if query[1] == "Summary":
            run.queries[query[2]] = float(query[3]) * 1000.0
        run.benchmark = run.benchmark or "tpch"
    elif line:
        cells = {name.partition("(")[0]: float(number) for name, number in _CELL.findall(line[3])}
        if not {"Count", "Sum"} <= set(cells) or cells["Count"] < 1:
            return False
        printed = {statistic: cells[name] for name, statistic in _PRINTED.items() if name in cells}
        taken = IntervalLine(int(cells["Count"]), cells["Sum"], printed, cells.get("Takes", NAN), cells.get("Avg", NAN))
        if line[1] == "Summary":
            run.summary[line[2]] = taken
        else:
            if not run.blocks or line[2] <= max(run.blocks[-1]):  # names of an interval are sorted
                run.blocks.append({})
            run.blocks[-1][line[2]] = taken
    return bool(line or query or rate)


def _results(run: _TpcRun, name: str, builder: CaptureBuilder) -> list[Result]:
    """One result for each transaction type or query, errors counted with it."""
    results = []
    for job, line in run.summary.items():
        if job.endswith("_ERR"):
            continue
        kind = "query" if re.fullmatch(r"Q\d+", job) else "transaction"
        failed = run.summary.get(f"{job}_ERR")
        workload = _workload(run) | (run.rates if job == "NEW_ORDER" else {})
        operation = _operation(kind, job, line, run, builder)
        seconds = line.takes_s if line.takes_s > 0 else NAN
        errors = 0 if failed is None else failed.count
        results.append(
            Result(META.tool, job, (operation,), seconds, workload=workload, error_count=errors, source=name)
        )
    return results + _queries(run, name)


def _queries(run: _TpcRun, name: str) -> list[Result]:
    """A result for each query of TPC-H; with known counts each client ran all of them, one after the other."""
    good = {job: mean_ms for job, mean_ms in run.queries.items() if not job.endswith("_ERR")}
    count = run.query_count()
    clients = max(int(run.options.get("threads", 1)), 1)
    seconds = sum(good.values()) / 1000.0 * count / clients
    return [
        Result(
            META.tool,
            job,
            (_query(mean_ms, count, seconds),),
            seconds,
            workload=_workload(run),
            error_count=int(f"{job}_ERR" in run.queries),
            source=name,
        )
        for job, mean_ms in good.items()
    ]


def _operation(kind: str, job: str, line: IntervalLine, run: _TpcRun, builder: CaptureBuilder) -> Operation:
    mean_ms = line.sum_ms / line.count
    printed = dict(line.printed_ms)
    if line.mean_ms > 0 and not 1 / MEAN_RATIO_MAX <= (mean_ms + 0.1) / (line.mean_ms + 0.1) <= MEAN_RATIO_MAX:
        builder.warn("wrong-unit", "printed percentiles do not fit Sum and Count, and were left out")
        printed = {}
    blocks = [block[job] for block in run.blocks if job in block]
    histogram = None
    if printed and blocks and np.mean([block.count for block in blocks]) <= FEW_COUNT:
        histogram = interval_histogram(blocks, line)
    per_s = line.count / line.takes_s if line.takes_s > 0 else NAN
    return Operation(kind, per_s, NAN, line.count, {"mean": mean_ms} | printed, histogram, LONGEST_MS)


def _query(mean_ms: float, count: float, seconds: float) -> Operation:
    """The operation of a query of which only the mean is printed: alone, the mean is its latency."""
    histogram = None
    if count == 1:
        low = 0.0 if mean_ms <= LEAST_QUERY_MS + HALF_DIGIT_MS else mean_ms - HALF_DIGIT_MS
        histogram = Histogram.of([low], [mean_ms + HALF_DIGIT_MS], [1], "ms")
    per_s = count / seconds if seconds > 0 else NAN
    return Operation("query", per_s, count=count, latency_ms={"mean": mean_ms}, histogram=histogram)


def _workload(run: _TpcRun) -> dict[str, Any]:
    known = {"warehouses": "scale", "sf": "scale", "threads": "client_count"}
    described = {known[key]: int(value) for key, value in run.options.items() if key in known}
    return ({"benchmark": run.benchmark} if run.benchmark else {}) | described


def _add_series(builder: CaptureBuilder, source: Source, request: Request, runs: list[_TpcRun]) -> bool:
    """Add the intervals of every run, one after the other up to the file's last change; whether there are any."""
    timed = [(run, run.interval_s) for run in runs if run.interval_s >= SHORT_S]
    database = Entity(EntityKind.DATABASE, "database", UNNAMED_GUEST)
    lengths = [Elapsed(np.arange(1.0, len(run.blocks) + 1) * step_s, step_s * len(run.blocks)) for run, step_s in timed]
    for (run, step_s), times in zip(timed, placed(lengths, source.mtime_ns), strict=True):
        good = [[line for name, line in block.items() if not name.endswith("_ERR")] for block in run.blocks]
        bad = [sum(line.count for name, line in block.items() if name.endswith("_ERR")) for block in run.blocks]
        counts = np.array([sum(line.count for line in lines) for lines in good], dtype=np.float64)
        sums = np.array([sum(line.sum_ms for line in lines) for lines in good])
        columns = {
            "db_tps": counts / step_s,
            "db_latency_ms": np.divide(sums, counts, out=np.full(len(sums), NAN), where=counts > 0),
            "db_failed_per_s": np.array(bad) / step_s,
        }
        add_columns(builder, request, database, times, columns, interval_s=step_s)
    if timed:
        message = "intervals have no date: the last run is taken to end when the file was last written"
        builder.warn("no-times", f"{message}; intervals in which nothing ended are not printed and shift those before")
    return bool(timed)
