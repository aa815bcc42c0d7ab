"""wrk and wrk2: requests per second and latency of a web server, as printed and as Leadline's own runs keep them.

Reads:
    What wrk 3 to 4.2 and wrk2 print, one or many runs in one file, also between other lines; the percentiles of
    ``--latency``; wrk2's detailed spectrum as a histogram. The document ``wrk.json`` of `leadline bench run`, with
    every latency.

Sample:
    .. code-block:: text

        Running 30s test @ http://127.0.0.1:8080/index.html
          12 threads and 400 connections
          Thread Stats   Avg      Stdev     Max   +/- Stdev
            Latency   635.91us    0.89ms  12.92ms   93.69%
          22464657 requests in 30.00s, 17.76GB read
          Socket errors: connect 0, read 703, write 0, timeout 0
        Requests/sec: 748868.53

Lost:
    Requests per second of single threads, ``+/- Stdev``, wrk2's latencies without waiting (``Uncorrected Latency``).
    There are no series: wrk prints nothing while it runs.

Units:
    us, ms, s, m and h with two decimals; k, M, G of rates are powers of 1000, K, M, G of bytes powers of 1024. The
    spectrum is in milliseconds with three decimals. wrk prints percentiles after it added requests that it did not
    make; in ``wrk.json`` they are taken out again. wrk2 counts from when a request was due, and its spectrum leaves
    the first ten seconds out.

Sources:
    wrk 4.1.0, ``wrk.c`` (print_stats, print_stats_latency), ``units.c``, ``stats.c``; wrk2, README ("Basic Usage") and
    ``hdr_histogram.c`` (hdr_percentiles_print).
"""

from __future__ import annotations

import re
from array import array
from dataclasses import dataclass, field
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.formats.json_documents import json_documents
from leadline.formats.loadtool import NAN, bad_line
from leadline.formats.wrk.report import ERRORS, MARK, WrkReport, report_of

META = ImporterMeta(
    tool="wrk",
    marks=("thread stats", "threads and", MARK),
    layers=(),
    record="wrk -t2 -c16 -d30s --latency http://HOST/PAGE > wrk.txt",
)
REQUEST = "http request"
CLOSEST = 0.999  # Source: HdrHistogram with three digits: a value stands for those down to a thousandth below

_TIMES = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4, "p": 5}
_TIME = r"(-?nan|\d{1,12}\.\d\d)(us|ms|s|m|h)"
_RUN = re.compile(r"(?:\S{0,80}[>$#] )?Running (\d{1,9}[smh]) test @ (\S{1,4000})")
_SHAPE = re.compile(r"(\d{1,6}) threads and (\d{1,7}) connections")
_HEAD = re.compile(r"Thread Stats +Avg +Stdev +(Max|99%)")
_LATENCY = re.compile(rf"Latency +{_TIME} +{_TIME} +{_TIME} ")
_RECORDED = re.compile(r"Latency Distribution(?: \(HdrHistogram - Recorded Latency\))?")
_UNCORRECTED = re.compile(r"Latency Distribution \(HdrHistogram - Uncorrected Latency")
_PERCENTILE = re.compile(rf"(\d{{1,3}}(?:\.\d{{1,6}})?)% +{_TIME}")
_SPECTRUM = re.compile(r"(\d{1,12}\.\d{3}) +([01]\.\d{6,12}) +(\d{1,15}) +(?:\d{1,15}\.\d\d|inf)")
_TOTAL = re.compile(r"(\d{1,15}) requests in (\d{1,9}\.\d\d)(us|ms|s|m|h), (\d{1,9}\.\d\d)([KMGTP]?)B read")
_SOCKETS = re.compile(r"Socket errors: connect (\d{1,15}), read (\d{1,15}), write (\d{1,15}), timeout (\d{1,15})")
_STATUS = re.compile(r"Non-2xx or 3xx responses: (\d{1,15})")
_RATE = re.compile(r"Requests/sec: +(\d{1,15}\.\d\d)")
_TRANSFER = re.compile(r"Transfer/sec: +(\d{1,9}\.\d\d)([KMGTP]?)B?")
_OFFERED = re.compile(r"wrk2?(?:\s.{0,400}?)?\s(?:-R ?|--rate[ =])(\d{1,12})([kMG]?)(?:\s|$)")
_WRK2 = re.compile(r"Thread calibration: mean lat\.|.*HdrHistogram - ")
_USERINFO = re.compile(r"(?<=//)[^/@\s]*+@")
_MARK = re.compile(
    rf"Running \d{{1,9}}[smh] test @ [^\n]{{1,4000}}\r?\n\s{{0,80}}{_SHAPE.pattern}|{_HEAD.pattern}|\"{MARK}\": 1"
)


@dataclass
class _WrkRun:
    """One run as it is collected."""

    url: str = ""
    workload: dict[str, int | float | str] = field(default_factory=dict)
    latency_ms: dict[str, float] = field(default_factory=dict)
    spectrum_ms: array[float] = field(default_factory=lambda: array("d"))
    spectrum_counts: array[int] = field(default_factory=lambda: array("q"))
    errors: dict[str, int] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    is_wrk2: bool = False
    keeps: bool = True  # False: percentiles that follow are of another kind
    is_started: bool = False
    third: str = "max"

    @property
    def is_measured(self) -> bool:
        """Whether statistics of it were printed, so that a new head is of another run."""
        return "per_s" in self.numbers or bool(self.latency_ms)


def sniff(source: Source) -> int:
    """Sure by the two lines a run begins with, by the head of its statistics, or by the key of our document."""
    return 93 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """A result for each run.

    Raises:
        InputError: there is no result, or a line before the last is damaged.
    """
    builder = CaptureBuilder(source.name, "wrk", META.tool)
    text = source.text()
    if f'"{MARK}"' in text:

        def made_of(value: dict[str, Any]) -> WrkReport | dict[str, Any]:
            return report_of(value, source.name) if MARK in value else value

        documents = json_documents(text, source.name, made_of)
        if documents.cut:
            builder.warn("cut", "the last document was cut while it was written and is left out")
        values = [document.value for document in documents.documents]
        reports = [one if isinstance(one, WrkReport) else report_of(one, source.name) for one in values]
        builder.results.extend(_reported(report, source.name) for report in reports)
        if not all(report.is_as_recorded for report in reports):
            builder.warn("corrected", "requests that wrk added to its histogram could not be taken out")
    else:
        runs = _runs(text, source.name, request, builder)
        builder.results.extend(_printed(run, source.name) for run in runs)
    if not builder.results:
        raise bad_line(source.name, 0, "no result of a run", "the output of wrk, to its last line")
    return builder.build(clock_known=False)


def _reported(report: WrkReport, name: str) -> Result:
    seconds = report.duration_s
    histogram = report.histogram() if len(report.counts) else None
    latency: dict[str, float] = {}
    if histogram is not None and report.is_as_recorded:
        scale = factor("us", "ms")
        latency["mean"] = report.busy_s * factor("s", "ms") / histogram.total
        latency |= {"min": float(report.latencies_us[0]) * scale, "max": float(report.latencies_us[-1]) * scale}
    per_s, bytes_per_s = (
        (count / seconds if seconds > 0 else NAN) for count in (report.requests, report.received_bytes)
    )
    operation = Operation(REQUEST, per_s, bytes_per_s, report.requests, latency, histogram)
    errors = {f"{error}_error_count": int(count) for error, count in report.errors.items() if count}
    workload = {**report.asked, "url": _USERINFO.sub("", report.asked["url"]), **errors}
    error_count = int(sum(report.errors.values()))
    return Result("wrk", "web", (operation,), seconds, workload=workload, error_count=error_count, source=name)


def _runs(text: str, name: str, request: Request, builder: CaptureBuilder) -> list[_WrkRun]:
    """Return every run that has its rate; one without is left out with a warning."""
    lines = text.splitlines()
    runs = [_WrkRun()]
    for index, line in enumerate(lines):
        stripped = line.strip(" \t*>")
        if (offered := _OFFERED.search(stripped)) and not _RUN.match(stripped):
            runs.append(_WrkRun(workload={"rate_per_s": _scaled(offered[1], offered[2], 1000)}))
            continue
        if begun := _RUN.match(stripped):
            if runs[-1].is_started:
                runs.append(_WrkRun())
            runs[-1].url, runs[-1].is_started = _USERINFO.sub("", begun[2]), True
            continue
        if (_HEAD.match(stripped) or _SHAPE.match(stripped)) and runs[-1].is_measured:
            runs.append(_WrkRun(is_started=True))
        if not _take(runs[-1], stripped) and stripped.startswith(("Requests/sec:", "Socket errors:")):
            is_last = index == len(lines) - 1 and (request.truncate_last or not text.endswith(("\n", "\r")))
            if not is_last:
                raise bad_line(name, index, line, "a line of wrk with its numbers")
    if any("per_s" not in run.numbers and (run.is_started or run.latency_ms) for run in runs):
        builder.warn("cut", "a run ends before its Requests/sec line: there is no result of it")
    return [run for run in runs if "per_s" in run.numbers]


def _take(run: _WrkRun, line: str) -> bool:
    """Put one line into its run; whether it was of a known kind."""
    if shape := _SHAPE.match(line):
        run.workload |= {"threads": int(shape[1]), "connections": int(shape[2])}
    elif head := _HEAD.match(line):
        run.third = "max" if head[1] == "Max" else "p99"
    elif latency := _LATENCY.match(line):
        values = (_ms(latency[1], latency[2]), _ms(latency[3], latency[4]), _ms(latency[5], latency[6]))
        pairs = zip(("mean", "stddev", run.third), values, strict=True)
        run.latency_ms |= {statistic: value for statistic, value in pairs if value == value}  # noqa: PLR0124 - NaN
    elif _UNCORRECTED.match(line) or _RECORDED.match(line):
        run.is_wrk2, run.keeps = run.is_wrk2 or "Hdr" in line, _UNCORRECTED.match(line) is None
    elif percentile := _PERCENTILE.fullmatch(line):
        value = _ms(percentile[2], percentile[3])
        share = float(percentile[1])
        if run.keeps and value == value and share <= 100.0:  # noqa: PLR0124 - NaN
            run.latency_ms["max" if share == 100.0 else f"p{share:g}"] = value
    elif row := _SPECTRUM.fullmatch(line):
        if run.keeps:
            run.spectrum_ms.append(float(row[1]))
            run.spectrum_counts.append(int(row[3]))
    else:
        return _take_total(run, line)
    return True


def _take_total(run: _WrkRun, line: str) -> bool:
    """Put a line of the totals into its run; whether it was one."""
    if _WRK2.match(line):
        run.is_wrk2 = True
    elif total := _TOTAL.match(line):
        run.numbers |= {"requests": float(total[1]), "seconds": float(total[2]) * _TIMES[total[3]]}
        run.numbers["bytes"] = _scaled(total[4], total[5], 1024)
    elif sockets := _SOCKETS.match(line):
        names = (error for error in ERRORS if error != "status")
        run.errors |= {error: int(count) for error, count in zip(names, sockets.groups(), strict=True)}
    elif status := _STATUS.match(line):
        run.errors["status"] = int(status[1])
    elif rate := _RATE.match(line):
        run.numbers["per_s"] = float(rate[1])
    elif transfer := _TRANSFER.match(line):
        run.numbers["bytes_per_s"] = _scaled(transfer[1], transfer[2], 1024)
    else:
        return False
    return True


def _ms(number: str, unit: str) -> float:
    """Milliseconds; NaN where nothing was measured."""
    return NAN if "nan" in number else float(number) * _TIMES[unit] * factor("s", "ms")


def _scaled(number: str, prefix: str, base: int) -> float:
    return float(number) * float(base) ** _POWERS[prefix.casefold()]


def _printed(run: _WrkRun, name: str) -> Result:
    """Return the result of a run; its seconds are requests by rate, which have more digits than what is printed."""
    tool = "wrk2" if run.is_wrk2 else "wrk"
    per_s, requests = run.numbers["per_s"], run.numbers.get("requests", NAN)
    seconds = requests / per_s if per_s > 0 and requests > 0 else run.numbers.get("seconds", NAN)
    moved = run.numbers.get("bytes_per_s", NAN)
    latency = {} if requests == 0 else run.latency_ms
    operation = Operation(REQUEST, per_s, moved, requests, latency, _histogram(run))
    errors = {f"{error}_error_count": count for error, count in run.errors.items() if count}
    workload = {**({"url": run.url} if run.url else {}), **run.workload, **errors}
    error_count = sum(run.errors.values())
    return Result(
        tool, run.url or "web", (operation,), seconds, workload=workload, error_count=error_count, source=name
    )


def _histogram(run: _WrkRun) -> Histogram | None:
    """Return the spectrum as buckets: each row says how many took at most so long; None where that cannot be."""
    lower, upper, counts = [], [], []
    last_ms, last_count = 0.0, 0
    for value_ms, count in zip(run.spectrum_ms, run.spectrum_counts, strict=True):
        if value_ms < last_ms or count < last_count:
            return None
        if count > last_count:
            lower.append(min(last_ms, value_ms * CLOSEST) if last_count else value_ms * CLOSEST)
            upper.append(value_ms)
            counts.append(count - last_count)
        last_ms, last_count = value_ms, count
    return Histogram.of(lower, upper, counts, "ms") if counts else None
