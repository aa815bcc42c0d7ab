"""fio's JSON and json+ output: what each job did, and its latencies with all their buckets.

Reads:
    ``--output-format=json`` and ``json+`` of fio 2 and 3: one or many jobs, ``--client`` output, several documents in
    a row (``--status-interval``, or files put together), with any other text around them.

Sample:
    .. code-block:: text

        fio: failed to create dir (/proc/leadline): No such file or directory
        {
          "fio version" : "fio-3.33",
          "timestamp_ms" : 1795215220228,

Lost:
    Distributions in percent (``latency_us``, ``iodepth_level``), CPU use and context switches. The sum over "All
    clients" that fio adds is left out, because its parts are there. Reports of ``--status-interval`` become series of
    what happened between them; only the last is a result. Reports of a ramp time are left out.

Units:
    By the name of the field, not by the version: ``lat_ns`` is nanoseconds (fio 3), ``lat`` microseconds (fio 2);
    ``bw`` is KiB/s, ``bw_bytes`` bytes/s, ``runtime`` ms. ``io_bytes`` of fio 2 is KiB and not used.

Sources:
    fio, HOWTO, "JSON output" and "JSON+ output"; ``stat.c`` (``show_thread_status_json``).
"""

from __future__ import annotations

import math
import re
from collections import Counter
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.fio.results import (
    DIRECTIONS,
    Statistics,
    bins_histogram,
    ceiling_ms,
    is_after_ramp,
    latency_of,
    moment_of,
    percentile_key,
)
from leadline.formats.json_documents import Document, json_documents, number_in, object_in
from leadline.formats.loadtool import add_columns

META = ImporterMeta(
    tool="fio",
    marks=('"fio version"', '"client_stats"'),
    layers=(Layer.STORAGE_PATH,),
    fields={
        **{f"{way}.total_ios": Field(f"job_iops_{way}", "per_s") for way in DIRECTIONS},
        **{f"{way}.io_kbytes": Field(f"job_mib_per_s_{way}", "kib_per_s") for way in DIRECTIONS},
        **{f"{way}.lat_ns": Field(f"job_latency_ms_{way}", "ns") for way in DIRECTIONS},
        "steadystate.data.iops": Field("job_iops", "per_s"),
    },
    record="fio --output-format=json+ --output=fio.json JOBFILE",
)

_PARTS = {"lat_ns": ("lat", "ns"), "clat_ns": ("clat", "ns"), "slat_ns": ("slat", "ns")}
_PARTS |= {"lat": ("lat", "us"), "clat": ("clat", "us"), "slat": ("slat", "us")}
_TIME_NS_MIN, _TIME_NS_MAX = 631_152_000 * 10**9, 4_102_444_800 * 10**9  # 1990 and 2100: outside is a damaged number
_SIGNATURE = re.compile(r'"fio version"\s*:|"client_stats"\s*:')


def sniff(source: Source) -> int:
    """Sure by the key every report of fio begins with."""
    return 96 if _SIGNATURE.search(source.head_text) and "{" in source.head_text else 0


@dataclass(frozen=True, slots=True)
class _Report:
    """One JSON document: its jobs by their distinct names, and when it was printed (None: it does not say)."""

    jobs: dict[str, dict[str, Any]]
    document: dict[str, Any]
    line: int
    end_ns: int | None
    zone_known: bool


def read(source: Source, request: Request) -> Capture:
    """A result for each job, and series where the file has several reports of the same run.

    Raises:
        InputError: no report of fio, or one that is damaged.
    """
    builder = CaptureBuilder(source.name, "fio", META.tool)
    parsed = json_documents(source.text(), source.name)
    documents = [d for d in parsed.documents if isinstance(d.value, dict) and _jobs_of(d.value) is not None]
    if not documents:
        raise _damaged(f"{source.name}:1", "no complete report of fio")
    if parsed.cut:
        builder.warn("cut", "the last report was cut while it was written and is left out")
    for line in parsed.other_text.splitlines():
        if line.startswith("fio:"):
            builder.warn("tool-message", line[:200])
    reports = [_report(document, source.name, request) for document in documents]
    for run in _counted(_runs(reports)):
        _add_series(builder, run, request)
        builder.results.extend(_results(builder, run[-1], source.name))
    return _built(builder, reports)


def _built(builder: CaptureBuilder, reports: list[_Report]) -> Capture:
    if any(not report.zone_known for report in reports):
        builder.warn("no-zone", "the reports have local times without a zone; taken in the zone asked for, else as UTC")
    ends = [report.end_ns for report in reports if report.end_ns is not None]
    starts = [result.start_ns for result in builder.results if result.start_ns is not None]
    if not ends:
        builder.warn("no-times", "the reports do not say when they were made")
    known = bool(ends) and all(report.zone_known for report in reports)
    version = reports[-1].document.get("fio version")
    return builder.build(
        tool_version=version if isinstance(version, str) else None,
        start_ns=min(starts, default=None),
        end_ns=max(ends, default=None),
        clock_known=known,
    )


def _damaged(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="JSON as `fio --output-format=json` writes it",
        advice="Copy the file again, or record it again with --output=FILE.",
    )


def _jobs_of(document: dict[str, Any]) -> list[Any] | None:
    jobs = document.get("jobs", document.get("client_stats"))
    return jobs if isinstance(jobs, list) else None


def _report(document: Document, name: str, request: Request) -> _Report:
    where = f"{name}:{document.line}"
    value = document.value
    listed = _jobs_of(value) or []
    if not all(isinstance(job, dict) and isinstance(job.get("jobname"), str) for job in listed):
        raise _damaged(where, "a job without a name")
    parts = [job for job in listed if not ("client_stats" in value and job["jobname"] == "All clients")]
    often = Counter(job["jobname"] for job in parts)
    seen: Counter[str] = Counter()
    jobs: dict[str, dict[str, Any]] = {}
    for job in parts:
        base = job["jobname"]
        seen[base] += 1
        jobs[base if often[base] == 1 else f"{base}.{seen[base]}"] = job
    end_ns, zone_known = _end_ns(value, request)
    return _Report(jobs, value, document.line, end_ns, zone_known)


def _end_ns(document: dict[str, Any], request: Request) -> tuple[int | None, bool]:
    for key, scale in (("timestamp_ms", 10**6), ("timestamp", 10**9)):
        stamp = document.get(key)
        if isinstance(stamp, int) and _TIME_NS_MIN < stamp * scale < _TIME_NS_MAX:
            return stamp * scale, True
    moment = moment_of(document["time"]) if isinstance(document.get("time"), str) else None
    return (None, True) if moment is None else (to_ns(moment, request), False)


def _runs(reports: list[_Report]) -> list[list[_Report]]:
    """Reports put together by run: the reports of ``--status-interval`` count on from one to the next."""
    runs = [[reports[0]]]
    for before, after in pairwise(reports):
        if before.end_ns is not None and after.end_ns is not None and _goes_on(before, after):
            runs[-1].append(after)
        else:
            runs.append([after])
    return runs


def _counted(runs: list[list[_Report]]) -> list[list[_Report]]:
    """Runs without those that were fio's ramp time: it counts anew afterwards."""
    ramps = {n for n, (one, other) in enumerate(pairwise(runs)) if _is_ramp(one[-1], other[0])}
    return [run for n, run in enumerate(runs) if n not in ramps]


def _is_ramp(before: _Report, after: _Report) -> bool:
    if before.jobs.keys() != after.jobs.keys() or before.end_ns is None or after.end_ns is None:
        return False
    elapsed = [
        max((number_in(job, "elapsed") for job in report.jobs.values()), default=math.nan) for report in (before, after)
    ]
    same = all(job.get("job options") == after.jobs[name].get("job options") for name, job in before.jobs.items())
    return same and elapsed[0] <= elapsed[1] and is_after_ramp(before.document, after.document)


def _goes_on(before: _Report, after: _Report) -> bool:
    """Whether nothing but the counters changed, and those forward and by no more than the time that passed.

    A job that thinks holds up fio's report until it is over, so that two reports are printed one right after the other.
    """
    if before.jobs.keys() != after.jobs.keys():
        return False
    passed_ms = ((after.end_ns or 0) - (before.end_ns or 0)) / 1e6
    for name, job in before.jobs.items():
        later = after.jobs[name]
        if job.get("job options") != later.get("job options"):
            return False
        paused_ms_max = number_in(later, "elapsed") * 1e3 if "thinktime" in object_in(later, "job options") else 0.0
        for way in DIRECTIONS:
            one, other = object_in(job, way), object_in(later, way)
            ran_ms = number_in(other, "runtime") - number_in(one, "runtime")
            longest_ms = max(passed_ms, paused_ms_max) + 1000
            if number_in(other, "total_ios") < number_in(one, "total_ios") or not -1 <= ran_ms <= longest_ms:
                return False
    return passed_ms > 0


def _add_series(builder: CaptureBuilder, run: list[_Report], request: Request) -> None:
    for name, last in run[-1].jobs.items():
        entity = Entity(EntityKind.JOB, name)
        if request.wants("job_iops"):
            _add_steady_state(builder, entity, last, run[-1].end_ns)
        if len(run) < 2:
            continue
        states = [(report.end_ns or 0, report.jobs[name]) for report in run]
        steps = [pair for pair in pairwise([(0, {}), *states]) if _spans(pair[0][1], pair[1][1])]
        times = np.array([after[0] for _, after in steps], dtype=np.int64)
        for way in DIRECTIONS:
            if len(times) == 0 or not number_in(object_in(last, way), "total_ios") > 0:
                continue
            columns = np.array([_step(object_in(one, way), object_in(other, way)) for (_, one), (_, other) in steps])
            names = (f"job_{metric}_{way}" for metric in ("iops", "mib_per_s", "latency_ms"))
            add_columns(builder, request, entity, times, dict(zip(names, columns.T, strict=True)))


def _spans(before: dict[str, Any], after: dict[str, Any]) -> bool:
    """Whether enough time lies between two reports; the last comes right after the one before it."""
    ran_ms = max(_ran_ms(after), default=0.0) - max(_ran_ms(before), default=0.0)
    return ran_ms >= 100  # Judgement: a tenth of fio's shortest useful --status-interval


def _ran_ms(job: dict[str, Any]) -> list[float]:
    return [runtime for way in DIRECTIONS if (runtime := number_in(object_in(job, way), "runtime")) > 0]


def _step(before: dict[str, Any], after: dict[str, Any]) -> tuple[float, float, float]:
    """Operations per second, MiB/s and mean latency (ms) between two reports of one direction."""

    def grown(key: str) -> float:
        earlier = number_in(before, key)
        return number_in(after, key) - (0.0 if math.isnan(earlier) else earlier)

    seconds, count = grown("runtime") / 1e3, grown("total_ios")
    if not seconds > 0:
        return math.nan, math.nan, math.nan
    sums = [_mean_latency_ms(state) * number_in(state, "total_ios") for state in (before, after)]
    latency = (sums[1] - (0.0 if math.isnan(sums[0]) else sums[0])) / count if count > 0 else math.nan
    size = grown("io_kbytes" if "io_kbytes" in after else "io_bytes")  # fio 2 says bytes and means KiB
    return count / seconds, size / seconds * factor("kib_per_s", "mib_per_s"), latency


def _mean_latency_ms(state: dict[str, Any]) -> float:
    unit = "ns" if "lat_ns" in state else "us"
    return number_in(object_in(state, "lat_ns" if unit == "ns" else "lat"), "mean") * factor(unit, "ms")


def _add_steady_state(builder: CaptureBuilder, entity: Entity, job: dict[str, Any], end_ns: int | None) -> None:
    """The last seconds fio judged the steady state by: one value a second up to the end."""
    iops = object_in(object_in(job, "steadystate"), "data").get("iops")
    if end_ns is None or not isinstance(iops, list) or not all(isinstance(v, int | float) for v in iops) or not iops:
        return
    times = end_ns - np.arange(len(iops) - 1, -1, -1, dtype=np.int64) * 10**9
    builder.add_series("job_iops", entity, times, np.array(iops, dtype=np.float64), interval_s=1.0)


def _results(builder: CaptureBuilder, report: _Report, source: str) -> list[Result]:
    version = report.document.get("fio version")
    ends = _ends_ns(report)
    results = []
    for name, job in report.jobs.items():
        operations, of = _operations(job, f"{source}:{report.line}")
        if not operations:
            builder.warn("no-io", f"job {name} did no I/O")
        duration_s = max(_ran_ms(job), default=math.nan) / 1e3
        began_ms, end_ns = job.get("job_start"), ends[name]
        start_ns = None if end_ns is None or math.isnan(duration_s) else end_ns - round(duration_s * 1e9)
        if isinstance(began_ms, int) and _TIME_NS_MIN < began_ms * 10**6 < _TIME_NS_MAX:
            start_ns = began_ms * 10**6
        host = job.get("hostname")
        results.append(
            Result(
                tool=META.tool,
                job=name,
                operations=tuple(replace(operation, ceiling_ms=ceiling_ms(str(version))) for operation in operations),
                duration_s=duration_s,
                start_ns=start_ns,
                tool_version=version if isinstance(version, str) else None,
                host=host if isinstance(host, str) else None,
                workload=_workload(report.document, job, of),
                error_count=_error_count(job),
                source=source,
            )
        )
    return results


def _ends_ns(report: _Report) -> dict[str, int | None]:
    """When each job ended: with the report, but for groups that waited for one another (``stonewall``).

    Groups ran one after the other when together they fit into the time that passed; fio does not say it otherwise.
    """
    ran: dict[float, float] = {}
    for job in report.jobs.values():
        group = number_in(job, "groupid")
        ran[group] = max([ran.get(group, 0.0), *_ran_ms(job)])
    elapsed_ms = max((number_in(job, "elapsed") for job in report.jobs.values()), default=math.nan) * 1e3
    serial = len(ran) > 1 and sum(ran.values()) <= elapsed_ms
    ends: dict[str, int | None] = {}
    for name, job in report.jobs.items():
        later_ms = sum(ms for group, ms in ran.items() if group > number_in(job, "groupid")) if serial else 0.0
        ends[name] = None if report.end_ns is None else report.end_ns - round(later_ms * 1e6)
    return ends


def _operations(job: dict[str, Any], where: str) -> tuple[tuple[Operation, ...], str | None]:
    """The operations a job did, and which latency (lat or clat) its percentiles are of."""
    operations: list[Operation] = []
    of: str | None = None
    for way in (*DIRECTIONS, "mixed"):
        counters = object_in(job, way)
        if not (number_in(counters, "total_ios") > 0 or number_in(counters, "io_bytes") > 0):
            continue
        latency_ms, histogram, percentiles_of = latency_of(_statistics(counters, where))
        of = of or percentiles_of
        bytes_per_s = number_in(counters, "bw_bytes")
        if math.isnan(bytes_per_s):
            bytes_per_s = number_in(counters, "bw") * factor("kib_per_s", "bytes_per_s")
        per_s, count = number_in(counters, "iops"), number_in(counters, "total_ios")
        operations.append(Operation(way, per_s, bytes_per_s, count, latency_ms, histogram))
    flush = object_in(job, "sync")
    count = number_in(object_in(flush, "lat_ns"), "N")
    if count > 0:
        latency_ms, histogram, _ = latency_of(_statistics(flush, where))
        per_s = count / max(_ran_ms(job), default=math.nan) * 1e3
        operations.append(Operation("sync", per_s, count=count, latency_ms=latency_ms, histogram=histogram))
    return tuple(operations), of


def _statistics(counters: dict[str, Any], where: str) -> dict[str, Statistics]:
    parts: dict[str, Statistics] = {}
    for key, (part, unit) in _PARTS.items():
        given = object_in(counters, key)
        if not given or number_in(given, "N") == 0 or number_in(given, "max") == 0:
            continue
        to_ms = factor(unit, "ms")
        values = {name: number_in(given, name) * to_ms for name in ("mean", "min", "max", "stddev")}
        for share in (percentiles := object_in(given, "percentile")):
            if re.fullmatch(r"\d+(\.\d*)?", share) and 0 < float(share) <= 100 and number_in(percentiles, share) >= 0:
                values[percentile_key(float(share))] = number_in(percentiles, share) * to_ms
        try:
            histogram = bins_histogram(object_in(given, "bins"), unit)
        except (TypeError, ValueError, OverflowError) as error:
            raise _damaged(where, f"bins of {key} that are no counts ({error})") from error
        parts[part] = Statistics(values, histogram)
    return parts


def _workload(document: dict[str, Any], job: dict[str, Any], percentiles_of: str | None) -> dict[str, Any]:
    """What was asked for, under fio's own option names, and the facts around it."""
    asked: dict[str, Any] = {**object_in(document, "global options"), **object_in(job, "job options")}
    disks = document.get("disk_util")
    host = job.get("hostname")
    utils = {
        disk["name"]: number_in(disk, "util")
        for disk in (disks if isinstance(disks, list) else [])
        if isinstance(disk, dict) and isinstance(disk.get("name"), str) and disk.get("hostname", host) == host
    }
    steady = object_in(job, "steadystate")
    facts = {
        "jobname": job["jobname"],
        "port": job.get("port"),
        "percentiles_of": percentiles_of,
        "disk_util_pct": utils,
        "steadystate": {key: value for key, value in steady.items() if key != "data"},
    }
    return asked | {key: value for key, value in facts.items() if value}


def _error_count(job: dict[str, Any]) -> int:
    total = number_in(job, "total_err")
    failed = number_in(job, "error")
    return int(total) if 0 < total < 1 << 62 else int(failed > 0 or failed < 0)
