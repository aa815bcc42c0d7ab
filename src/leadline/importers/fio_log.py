"""fio's log files: bandwidth, IOPS and latencies of one job over time.

Reads:
    ``NAME_bw.1.log``, ``_iops``, ``_lat``, ``_clat``, ``_slat`` and ``_clat_hist`` of fio 2 and 3: four columns, and
    with offset, priority, issue time or maximum up to eight; windowed (``log_avg_msec``) or one row for each I/O;
    several jobs in one file (``per_job_logs=0``); times since the start or since 1970 (``log_unix_epoch``).

Sample:
    .. code-block:: text

        500, 46182, 0, 0, 0
        500, 50954, 1, 0, 0

Lost:
    Offsets, priorities and issue times. Whether windowed latencies are means or maxima (``log_max_value``): the file
    does not say, means are assumed. Rows of single I/Os become one sample a second (rate; mean and highest latency)
    and, for lat and clat, a result with the histogram of all of them. Rows of one direction with the same time become
    their mean.

Units:
    bw KiB/s, iops 1/s, times ms. Latencies are microseconds before fio 3 and nanoseconds since, and the file does not
    say which: it is inferred (`leadline.formats.fio.logs.latency_unit` states the rules), with a warning.

Sources:
    fio, HOWTO, "Log File Formats", ``log_avg_msec``, ``log_hist_coarseness``, ``per_job_logs``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.fio.logs import (
    EPOCH_MS_MIN,
    LogName,
    Rows,
    job_starts,
    latency_unit,
    log_name,
    looks_like_rows,
    read_rows,
    runs_of,
)
from leadline.formats.fio.results import BUCKET_COUNT_NS, BUCKET_COUNT_US, DIRECTIONS, bucket_histogram
from leadline.formats.loadtool import sample_histogram

if TYPE_CHECKING:
    from numpy.typing import NDArray

_LATENCY_METRIC = {"lat": "job_latency_ms", "clat": "job_completion_latency_ms", "slat": "job_submission_latency_ms"}
META = ImporterMeta(
    tool="fio log",
    layers=(Layer.STORAGE_PATH,),
    fields={
        **{f"bw {i}": Field(f"job_mib_per_s_{way}", "kib_per_s") for i, way in enumerate(DIRECTIONS)},
        **{f"iops {i}": Field(f"job_iops_{way}", "per_s") for i, way in enumerate(DIRECTIONS)},
        **{
            f"{kind} {i}": Field(f"{metric}_{way}", "ns")
            for kind, metric in _LATENCY_METRIC.items()
            for i, way in enumerate(DIRECTIONS)
        },
    },
    record="fio --write_bw_log=NAME --write_iops_log=NAME --write_lat_log=NAME --log_avg_msec=1000 JOBFILE",
)

_BIN_MS = 1000  # Judgement: a second, as iostat's and fio's own reports usually have
_SPAN_MS_MAX = 100 * 86_400_000  # Judgement: longer than any run of fio; a series has a value for each second
_SINGLE_STEP_MS = 100  # Judgement: rows with a block size but further apart are the 500 ms means of fio before 2.2
_PERCENTILES = (50.0, 95.0, 99.0, 99.9)


def sniff(source: Source) -> int:
    """Sure by the name and a row of numbers; an empty log (slat of a synchronous engine) by its name."""
    if log_name(source.name) is None:
        return 0
    if not source.head.strip():
        return 40
    return 90 if looks_like_rows(source.head) else 0


@dataclass(frozen=True, slots=True)
class _Log:
    """One log with what its name and its rows say; ``mean`` and ``size_bytes`` int64 [n], ``ways`` 0 to 2 [n]."""

    name: LogName
    rows: Rows
    mean: NDArray[np.int64]
    highest: NDArray[np.int64] | None
    ways: NDArray[np.int64]
    size_bytes: NDArray[np.int64]
    offset_ns: int

    def times_ns(self, times_ms: NDArray[np.int64]) -> NDArray[np.int64]:
        return times_ms * 1_000_000 + self.offset_ns


def read(source: Source, request: Request) -> Capture:
    """Series for each job and direction, and the histogram of the latencies where the log holds every one.

    Raises:
        InputError: the name is none of fio's, or a line is damaged.
    """
    builder = CaptureBuilder(source.name, "fio-log", META.tool)
    name = log_name(source.name)
    if name is None:
        raise InputError(
            source.name,
            found="a name that does not tell what is logged",
            expected="NAME_bw.1.log, NAME_lat.1.log and the like",
            advice="Give the file the name fio gave it.",
        )
    rows = read_rows(source, None) if name.kind == "clat_hist" else read_rows(source)
    if rows.cut:
        builder.warn("cut", "the last line was cut while it was written and is left out")
    if not len(rows.times_ms):
        builder.warn("empty", "the log has no rows; with a synchronous engine fio does not measure submission (slat)")
        return builder.build(clock_known=False)
    since_1970 = int(rows.times_ms.min()) >= EPOCH_MS_MIN
    if int(rows.times_ms.max()) >= (1 << 62) // 10**6:
        raise _not_a_log(source.name, "a time beyond the year 2100")
    if int(rows.times_ms.max()) - (int(rows.times_ms.min()) if since_1970 else 0) > _SPAN_MS_MAX:
        raise _not_a_log(source.name, f"rows more than {_SPAN_MS_MAX // 86_400_000} days apart")
    offset_ns = 0 if since_1970 else source.mtime_ns - int(rows.times_ms.max()) * 1_000_000
    if not since_1970:
        builder.warn("no-times", "times count from the job's start; the file's last change is taken as its end")
    if name.kind == "clat_hist":
        _read_histogram_log(builder, source, name, rows)
    else:
        _read_value_log(builder, request, _log(source.name, name, rows, offset_ns))
    ends_ns = rows.times_ms * 1_000_000 + offset_ns
    return builder.build(clock_known=since_1970, start_ns=int(ends_ns.min()), end_ns=int(ends_ns.max()))


def _not_a_log(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="time, value, direction (0, 1 or 2), block size and what newer versions add",
        advice="Name a log written by fio's write_bw_log, write_lat_log or write_iops_log.",
    )


def _log(where: str, name: LogName, rows: Rows, offset_ns: int) -> _Log:
    columns = rows.columns
    if rows.column_count < 4:
        raise _not_a_log(where, f"{rows.column_count} columns")
    both = rows.column_count >= 5 and int(columns[1].max()) > 2 and int(columns[2].max()) <= 2
    way = 2 if both else 1  # log_window_value=both writes the mean and the maximum before the direction
    wrong = np.flatnonzero(columns[way] > 2)
    if len(wrong):
        raise _not_a_log(f"{where}:{int(wrong[0]) + 1}", f"direction {int(columns[way][wrong[0]])}")
    highest = columns[1] if both else None
    return _Log(name, rows, columns[0], highest, columns[way], columns[way + 1], offset_ns)


def _read_value_log(builder: CaptureBuilder, request: Request, log: _Log) -> None:
    starts = job_starts(log.rows.times_ms)
    if len(starts) > 1:
        builder.warn("merged-jobs", f"the log holds {len(starts)} jobs one after the other; they are kept apart")
    single = _holds_single_ios(log)
    unit = ""
    if log.name.kind in _LATENCY_METRIC:
        unit, why = latency_unit(log.name.kind, log.rows, log.mean, windowed=not single)
        builder.warn("unit-inferred", f"latencies are taken as {'nano' if unit == 'ns' else 'micro'}seconds: {why}")
    if single:
        builder.warn("single-ios", "the log has a row for each I/O; they become one sample a second")
    for number, (begin, end) in enumerate(pairwise([*starts.tolist(), len(log.mean)]), 1):
        job = log.name.job if len(starts) == 1 else f"{log.name.job}#{number}"
        operations: list[Operation] = []
        for way, direction in enumerate(DIRECTIONS):
            rows = _by_time(log, begin + np.flatnonzero(log.ways[begin:end] == way))
            if len(rows):
                series = _Series(log, rows, direction, unit)
                _add(builder, request, job, series, series.per_second() if single else series.windowed(builder))
                if single and log.name.kind in ("lat", "clat"):
                    operations.append(series.operation())
        if log.name.kind == "lat" and (single or log.highest is not None):
            series = _Series(log, _by_time(log, np.arange(begin, end)), "", unit)
            _add(builder, request, job, series, series.maxima(single=single))
        if operations:
            builder.results.append(_result(log, builder.info.name, job, operations, (begin, end)))


def _by_time(log: _Log, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    times = log.rows.times_ms[rows]
    return rows[np.argsort(times, kind="stable")] if np.any(np.diff(times) < 0) else rows


def _holds_single_ios(log: _Log) -> bool:
    """Whether each row is one I/O: it has a block size, and IOPS are 1 or rows are close together."""
    if not np.any(log.size_bytes > 0):
        return log.name.kind == "iops" and len(log.mean) > 2 and bool(np.all(log.mean <= 1))
    if log.name.kind in _LATENCY_METRIC:
        return True
    if log.name.kind == "iops":
        return bool(np.all(log.mean <= 1))
    return float(np.median(np.diff(log.rows.times_ms))) < _SINGLE_STEP_MS if len(log.mean) > 1 else False


Columns = tuple[str, "NDArray[np.int64]", "NDArray[np.float64]", float | None]  # metric, times ms, values, interval


def _add(builder: CaptureBuilder, request: Request, job: str, series: _Series, columns: Columns) -> None:
    metric, times_ms, values, interval_s = columns
    if len(times_ms) and request.wants(metric):
        times_ns = series.log.times_ns(times_ms)
        builder.add_series(metric, Entity(EntityKind.JOB, job), times_ns, values, interval_s=interval_s)


@dataclass(frozen=True, slots=True)
class _Series:
    """The rows of one job and direction, by time; ``unit`` is that of latencies, empty for rates."""

    log: _Log
    rows: NDArray[np.intp]
    direction: str
    unit: str

    @property
    def times_ms(self) -> NDArray[np.int64]:
        return self.log.rows.times_ms[self.rows]

    @property
    def metric(self) -> str:
        prefix = {"bw": "job_mib_per_s", "iops": "job_iops", **_LATENCY_METRIC}[self.log.name.kind]
        return f"{prefix}_{self.direction}"

    @property
    def scale(self) -> float:
        return {"bw": factor("kib_per_s", "mib_per_s"), "iops": 1.0}.get(self.log.name.kind) or factor(self.unit, "ms")

    def windowed(self, builder: CaptureBuilder) -> Columns:
        """Rows as samples."""
        times, first, often = runs_of(self.times_ms)
        values = np.add.reduceat(self.log.mean[self.rows].astype(np.float64), first) / often * self.scale
        if len(times) < len(self.rows):
            count = len(self.rows) - len(times)
            builder.warn("same-time", "rows of one direction with the same time are replaced by their mean", count)
        return self.metric, times, values, None

    def per_second(self) -> Columns:
        """Single I/Os put together by second; a last piece shorter than half a second has no rate of its own."""
        seconds, first, count, ends = self._seconds()
        if self.log.name.kind in _LATENCY_METRIC:
            sums = np.add.reduceat(self.log.mean[self.rows].astype(np.float64), first)
            return self.metric, ends + self._origin_ms, sums / count * self.scale, _BIN_MS / 1e3
        sizes = count.astype(np.float64)
        if self.log.name.kind == "bw":
            sizes = np.add.reduceat(self.log.size_bytes[self.rows].astype(np.float64), first)
            sizes *= factor("bytes_per_s", "mib_per_s")
        rates = np.zeros(int(seconds[-1]) + 1)  # a second without completions has the rate 0, measured
        moments = np.arange(1, len(rates) + 1, dtype=np.int64) * _BIN_MS
        moments[-1] = ends[-1]
        rates[seconds] = sizes * 1e3 / (ends - seconds * _BIN_MS)
        if len(rates) > 1 and moments[-1] - moments[-2] < _BIN_MS / 2:
            rates, moments = rates[:-1], moments[:-1]
        return self.metric, moments + self._origin_ms, rates, _BIN_MS / 1e3

    def maxima(self, *, single: bool) -> Columns:
        """The highest latency of every second, or of every window where the log has it."""
        if single:
            _, first, _, ends = self._seconds()
            highest = np.maximum.reduceat(self.log.mean[self.rows], first)
            return "job_latency_ms_max", ends + self._origin_ms, highest * self.scale, _BIN_MS / 1e3
        values = self.log.mean if self.log.highest is None else self.log.highest
        times, first, _ = runs_of(self.times_ms)
        return "job_latency_ms_max", times, np.maximum.reduceat(values[self.rows], first) * self.scale, None

    @property
    def _origin_ms(self) -> int:
        """What seconds are counted from: the job's start, or the log's first row where times are since 1970."""
        return int(self.log.rows.times_ms.min()) if int(self.times_ms[0]) >= EPOCH_MS_MIN else 0

    def _seconds(self) -> tuple[NDArray[np.int64], NDArray[np.intp], NDArray[np.intp], NDArray[np.int64]]:
        """Seconds with rows: their numbers, first rows, row counts, and ends in ms (the last where the rows end)."""
        times = self.times_ms - self._origin_ms
        seconds, first, count = runs_of(times // _BIN_MS)
        return seconds, first, count, np.minimum((seconds + 1) * _BIN_MS, int(times[-1]) + 1)

    def operation(self) -> Operation:
        """All single latencies of the direction: exact statistics, and the histogram."""
        values = self.log.mean[self.rows]
        ran_s = _ran_s(self.log, self.times_ms)
        counted = sample_histogram(values.astype(np.float64), self.unit)
        histogram = Histogram(counted.lower * self.scale, counted.upper * self.scale, counted.counts, "ms")
        spread: dict[str, Any] = {
            "mean": values.mean(),
            "min": values.min(),
            "max": values.max(),
            "stddev": values.std(),
        }
        percentiles = np.percentile(values, _PERCENTILES, method="inverted_cdf")
        spread |= {f"p{share:g}": value for share, value in zip(_PERCENTILES, percentiles, strict=True)}
        latency_ms = {key: float(value) * self.scale for key, value in spread.items()}
        size = float(self.log.size_bytes[self.rows].sum())
        return Operation(self.direction, len(values) / ran_s, size / ran_s, len(values), latency_ms, histogram)


def _ran_s(log: _Log, times_ms: NDArray[np.int64]) -> float:
    """Seconds from the job's start to the last of its times; NaN when that is not known."""
    since_1970 = int(times_ms[-1]) >= EPOCH_MS_MIN
    length_ms = int(times_ms[-1]) - (int(log.rows.times_ms.min()) if since_1970 else 0)
    return length_ms / 1e3 if length_ms > 0 else math.nan


def _result(log: _Log, source: str, job: str, operations: list[Operation], span: tuple[int, int]) -> Result:
    times = np.sort(log.rows.times_ms[slice(*span)])
    return Result(
        tool="fio",
        job=job,
        operations=tuple(operations),
        duration_s=_ran_s(log, times),
        start_ns=int(times[0]) * 1_000_000 if int(times[0]) >= EPOCH_MS_MIN else None,
        workload={"percentiles_of": log.name.kind},
        source=source,
    )


def _read_histogram_log(builder: CaptureBuilder, source: Source, name: LogName, rows: Rows) -> None:
    """Counts per bucket since the row before: all rows of a direction together are its histogram."""
    unit, width = _bucket_layout(rows.column_count - 3)
    if not unit or int(rows.columns[0].max()) > 2:
        raise _not_a_log(source.name, f"{rows.column_count} columns, which is no number of latency buckets")
    ways, bins = rows.columns[0], np.stack(rows.columns[2:], axis=1)
    operations = []
    for way, direction in enumerate(DIRECTIONS):
        counts = bins[ways == way].sum(axis=0)
        if counts.sum() > 0:
            histogram = bucket_histogram(np.arange(len(counts), dtype=np.int64) * width, counts, unit, width)
            operations.append(Operation(direction, count=float(counts.sum()), histogram=histogram))
    builder.results.append(
        Result("fio", name.job, tuple(operations), workload={"percentiles_of": "clat"}, source=source.name)
    )


def _bucket_layout(column_count: int) -> tuple[str, int]:
    """The unit and how many buckets were joined into one column, by the number of columns; empty when it is none."""
    for unit, bucket_count in (("ns", BUCKET_COUNT_NS), ("us", BUCKET_COUNT_US)):
        for coarseness in range(7):
            if column_count << coarseness == bucket_count:
                return unit, 1 << coarseness
    return "", 0
