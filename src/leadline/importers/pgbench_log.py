"""pgbench's log files (``-l``): one line per transaction, or per interval with ``--aggregate-interval``.

Reads:
    ``pgbench_log.PID`` and ``pgbench_log.PID.THREAD`` of versions 9.0 to 18, also with ``--rate`` (lag),
    ``--latency-limit`` (skipped), ``--max-tries`` (failures, retries) and ``--sampling-rate``. Which kind it is, is
    decided by where the seconds since 1970 stand and by the number of columns.

Sample:
    .. code-block:: text

        0 3 1139 0 1795215384 599981
        1 1 serialization 0 1795215391 234212 2
        1795215403 278 165628 125907428 281 4617 23644 3523076 0 668 0 0 0 0 0

Lost:
    Which client ran a transaction. Every thread writes a file of its own, so each file is a job of its own and the
    rates of all must be added. Transactions per second of the first and last second of a per-transaction log (they are
    covered in part); of a sampled log all of them. The first and last interval of an aggregate log may be cut short
    by the run and are kept as they are.

Units:
    Latency and lag in microseconds. An aggregate line begins with the start of its interval; sums of squares are
    in square microseconds.

Sources:
    PostgreSQL documentation, pgbench, "Per-Transaction Logging" and "Aggregated Logging"; pgbench.c ``doLog`` and
    ``accumStats`` (before 15, skipped transactions are among those counted).
"""

from __future__ import annotations

import io
from collections import Counter
from math import sqrt
from pathlib import PurePath
from typing import TYPE_CHECKING

import numpy as np

from leadline._core import CoreError, PgbenchLog
from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import share_text
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import EPOCH_S_MAX, EPOCH_S_MIN, NAN, add_columns, bad_line, bucket_histogram, where

if TYPE_CHECKING:
    from numpy.typing import NDArray

    # count, mean, sum of squared distances from the mean, lowest, highest, buckets by their lowest, their counts
    _Statistics = tuple[int, float, float, float, float, NDArray[np.uint64], NDArray[np.uint64]]

META = ImporterMeta(
    tool="pgbench log",
    layers=(Layer.DATABASE,),
    fields={
        "transactions": Field("db_tps", "per_s"),
        "time": Field("db_latency_ms", "us"),
        "time (stddev)": Field("db_latency_ms_stddev", "us"),
        "min_latency": Field("db_latency_ms_min", "us"),
        "max_latency": Field("db_latency_ms_max", "us"),
        "schedule_lag": Field("db_schedule_lag_ms", "us"),
        "failures": Field("db_failed_per_s", "per_s"),
    },
    record="pgbench -l --log-prefix=pgbench_log -c 16 -j 4 -T 600 bench",
)
US_PER_MS = 1000.0
SCRIPT_COUNT_MAX = 100  # Judgement: more scripts than this is a damaged column
SPAN_S_MAX = 40 * 86_400  # Judgement: a log over more than 40 days has a damaged time in it
RETRY_COUNT_MAX = 31  # Judgement: more tries than this are not asked for; lag is tens of microseconds at least
SOUND_MIN = 0.7  # Judgement: of the first 20 lines; the others may be torn, or messages
SAMPLED_SHARE_MAX = 0.98  # Judgement: failures at the end of a run leave fewer gaps than this

_FAILURES = ("skipped", "failed", "serialization", "deadlock", "other")
_EACH_WIDTHS = (6, 7, 8)
_AGGREGATE_WIDTHS = (6, 10, 11, 15, 16)
# columns of an aggregate line
_START, _COUNT, _SUM, _SQUARES, _LOW, _HIGH, _LAG_SUM, _SKIPPED, _RETRIED, _RETRIES, _FAILED = *range(7), 10, 11, 12, 13


def sniff(source: Source) -> int:
    """By shape: whole numbers, seconds since 1970 in the fifth column (per transaction) or the first (aggregate)."""
    lines = source.head_text.splitlines()
    if len(source.head) >= 1 << 16:
        lines = lines[:-1]
    rows = [line.split(" ") for line in lines[:20]]
    whole = rows[: max(len(rows) - 1, 1)]
    forms = Counter((_kind(row), len(row)) for row in whole)
    (kind, _), count = forms.most_common(1)[0] if forms else ((None, 0), 0)
    if kind is None or _kind(rows[0]) != kind or count < SOUND_MIN * len(whole):
        return 0
    return 85 if "pgbench" in PurePath(source.name).name else 60


def _kind(row: list[str]) -> str | None:
    """``each`` or ``aggregate`` as a line's columns say, None when it is neither."""
    if not all(cell.isascii() and (cell.isdigit() or (i == 2 and cell in _FAILURES)) for i, cell in enumerate(row)):
        return None
    if len(row) in _AGGREGATE_WIDTHS and _is_epoch(row[0]) and row[2].isdigit() and _is_ordered(row):
        return "aggregate"
    if len(row) in _EACH_WIDTHS and _is_epoch(row[4]) and len(row[5]) <= 6:
        return "each"
    return None


def _is_epoch(cell: str) -> bool:
    return len(cell) in (9, 10) and cell >= "1" and float(cell) >= EPOCH_S_MIN


def _is_ordered(row: list[str]) -> bool:
    """Whether the lowest latency is at most the highest, and both fit the sum."""
    low, high, total = float(row[4]), float(row[5]), float(row[2])
    return low <= high <= max(total, high if row[1] == "0" else 0.0)


def read(source: Source, request: Request) -> Capture:
    """Series of one job named as the file, and for a per-transaction log a result with a latency histogram.

    Raises:
        InputError: a line before the last is damaged.
    """
    builder = CaptureBuilder(source.name, "pgbench-log", META.tool)
    line, end, _ = source.head.partition(b"\n")
    first = (line if end else b"").decode("ascii", errors="replace").rstrip("\r").split(" ")
    kind = _kind(first)
    if kind is None:
        raise bad_line(source.name, 0, " ".join(first), "a whole line of a pgbench log")
    job = Entity(EntityKind.JOB, PurePath(source.name.replace("!", "/")).name, UNNAMED_GUEST)
    if kind == "aggregate":
        data = source.content()
        kept = data[: data.rfind(b"\n") + 1]
        _warn_if_cut(builder, len(kept) < len(data))
        _add_aggregate(builder, request, job, _intervals(kept, len(first), source))
    else:
        log = _sums(source, len(first))
        _warn_if_cut(builder, log.is_cut)
        _add_each(builder, request, job, log, len(first))
    return builder.build()


def _warn_if_cut(builder: CaptureBuilder, is_cut: bool) -> None:
    if is_cut:
        builder.warn("cut", "the last line has no end and was dropped")


def _sums(source: Source, width: int) -> PgbenchLog:
    """What a per-transaction log adds up to.

    Raises:
        InputError: a line has another number of columns, is not of numbers, or its time is out of range.
    """
    try:
        log = PgbenchLog.open(source.path, source.name, width, (EPOCH_S_MIN, EPOCH_S_MAX, SPAN_S_MAX, SCRIPT_COUNT_MAX))
    except CoreError as error:
        raise InputError(error.where, found=error.found, expected=error.expected, advice=error.advice) from error
    if log.damaged_line is not None:
        raise _damage(source, width, "each")
    if log.wrong_time is not None:
        raise _wrong_time(source.name, *log.wrong_time)
    return log


def _wrong_time(name: str, line_index: int, second: float) -> InputError:
    return bad_line(name, line_index, f"a time of {second:g}", "seconds since 1970, near those of the first line")


def _intervals(data: bytes, width: int, source: Source) -> NDArray[np.float64]:
    """An aggregate log as float64 [width, n].

    Raises:
        InputError: a line has another number of columns, is not of numbers, or its time is out of range.
    """
    try:
        table = np.loadtxt(io.BytesIO(data), comments=None, delimiter=" ", encoding="ascii", ndmin=2).T
    except ValueError as error:
        raise _damage(source, width, "aggregate") from error
    if len(table) != width:
        raise _damage(source, width, "aggregate")
    if not (table >= 0).all():
        raise _damage(source, width, "aggregate")
    seconds = table[_START]
    wrong = np.flatnonzero((seconds < EPOCH_S_MIN) | (seconds >= EPOCH_S_MAX) | (seconds > seconds[0] + SPAN_S_MAX))
    if len(wrong) or seconds.max() - seconds.min() > SPAN_S_MAX:
        index = int(wrong[0]) if len(wrong) else int(seconds.argmin())
        raise _wrong_time(source.name, index, seconds[index])
    return table


def _damage(source: Source, width: int, kind: str) -> InputError:
    """The error that names the first damaged line."""
    with source.path.open("rb") as stream:
        for index, line in enumerate(stream):
            text = line.decode("utf-8", errors="replace").rstrip("\r\n")
            row = text.split(" ")
            if _kind(row) != kind or len(row) != width:
                return bad_line(source.name, index, text, f"{width} columns of whole numbers")
    return bad_line(source.name, 0, "a number too large to be one of pgbench's", "columns of whole numbers")


def _add_aggregate(builder: CaptureBuilder, request: Request, job: Entity, table: NDArray[np.float64]) -> None:
    """Series of interval lines; every second-order value comes from the sums pgbench prints."""
    table = table[:, np.argsort(table[_START], kind="stable")]
    steps = np.diff(table[_START])
    interval = float(np.median(steps)) if len(steps) and np.median(steps) > 0 else NAN
    if np.isnan(interval):
        builder.warn("no-interval", "one interval only: its length is not printed, so there are no rates")
    shift_ns = 0 if np.isnan(interval) else round(interval * 1e9)
    times = table[_START].astype(np.int64) * 1_000_000_000 + shift_ns
    count = table[_COUNT]
    if len(table) == 11:  # before 15 skipped transactions are counted, without a latency
        count = count - table[_SKIPPED]
    some = count > 0
    divisor = np.where(some, count, 1.0)
    mean = table[_SUM] / divisor
    variance = np.maximum(table[_SQUARES] / divisor - mean**2, 0.0)
    columns = {
        "db_tps": count / interval,
        "db_latency_ms": where(some, mean / US_PER_MS),
        "db_latency_ms_stddev": where(some, np.sqrt(variance) / US_PER_MS),
        "db_latency_ms_min": where(some, table[_LOW] / US_PER_MS),
        "db_latency_ms_max": where(some, table[_HIGH] / US_PER_MS),
    }
    if len(table) > _LAG_SUM and table[_LAG_SUM].any():
        columns["db_schedule_lag_ms"] = where(some, table[_LAG_SUM] / divisor / US_PER_MS)
    if len(table) > _SKIPPED and table[_SKIPPED].any():
        columns["raw.pgbench.skipped_per_s"] = table[_SKIPPED] / interval
    if len(table) > _FAILED:
        columns["db_failed_per_s"] = table[_FAILED:].sum(axis=0) / interval
        columns["raw.pgbench.retries_per_s"] = table[_RETRIES] / interval
        columns["raw.pgbench.retried_per_s"] = table[_RETRIED] / interval
    add_columns(builder, request, job, times, columns, interval_s=interval)
    total = float(count.sum())
    if total > 0:
        grand = {
            "mean": float(table[_SUM].sum()) / total,
            "min": table[_LOW][some].min(),
            "max": table[_HIGH][some].max(),
        }
        latency = {statistic: float(value) / US_PER_MS for statistic, value in grand.items()}
        length = interval * len(times)
        operation = Operation("transaction", total / length, count=total, latency_ms=latency)
        start = int(times[0]) - shift_ns
        builder.results.append(Result(META.tool, job.name, (operation,), length, start, source=builder.info.name))


def _add_each(builder: CaptureBuilder, request: Request, job: Entity, log: PgbenchLog, width: int) -> None:
    """Series per second of completion, and the exact latencies as a histogram."""
    columns, sampled = _per_second(builder, log, width), _sampled_share(log)
    if sampled < 1.0:
        builder.warn(
            "sampled", f"about {share_text(sampled, 1)} of the transactions are logged: there are no rates per second"
        )
        columns = {metric: values for metric, values in columns.items() if not metric.endswith(("_tps", "_per_s"))}
    times = (np.arange(log.seconds[0], log.seconds[-1] + 1, dtype=np.int64) + 1) * 1_000_000_000
    add_columns(builder, request, job, times, columns, interval_s=1.0)
    if not log.whole[0]:
        builder.warn("none-done", "no transaction of the log was completed")
        return
    length = log.end_s - log.begin_s
    operations = [_operation("transaction", log.whole, length, sampled)]
    operations += [
        _operation(f"script {script + 1}", statistics, length, sampled)
        for script, statistics in log.scripts
        if statistics[0]
    ]
    result = Result(
        tool=META.tool,
        job=job.name,
        operations=tuple(operations),
        duration_s=length,
        start_ns=round(log.begin_s * 1e6) * 1000,
        workload={"client_count": log.client_count},
        error_count=int(dict(log.by_second)["failed"].sum()),
        source=builder.info.name,
    )
    builder.results.append(result)


def _per_second(builder: CaptureBuilder, log: PgbenchLog, width: int) -> dict[str, NDArray[np.float64]]:
    """Columns by second from the first to the last [k]; a second without a transaction has rate 0 and no latency."""
    at = log.seconds - log.seconds[0]
    length = int(at[-1]) + 1
    sums = {name: np.zeros(length) for name, _ in log.by_second}
    for name, values in log.by_second:
        sums[name][at] = values
    some, divisor = sums["count"] > 0, np.maximum(sums["count"], 1.0)
    covered = np.ones(length, dtype=bool)
    covered[[0, -1]] = False
    columns = {
        "db_tps": where(covered, sums["count"]),
        "db_latency_ms": where(some, sums["mean"] / US_PER_MS),
        "db_latency_ms_stddev": where(some, np.sqrt(sums["squares"] / divisor) / US_PER_MS),
        "db_latency_ms_min": where(some, sums["low"] / US_PER_MS),
        "db_latency_ms_max": where(some, sums["high"] / US_PER_MS),
        "db_failed_per_s": where(covered, sums["failed"]),
    }
    skips = bool(sums["skipped"].any())
    if skips:
        columns["raw.pgbench.skipped_per_s"] = where(covered, sums["skipped"])
    if _has_lag(builder, log, width, skips=skips):
        columns["db_schedule_lag_ms"] = where(some, sums["seventh_sum"] / divisor / US_PER_MS)
    return columns


def _has_lag(builder: CaptureBuilder, log: PgbenchLog, width: int, *, skips: bool) -> bool:
    """Whether the seventh column is the lag; of seven columns it may be the retries, which only the values tell."""
    if width != 7:
        return width == 8
    if skips or log.seventh_max > RETRY_COUNT_MAX:
        return True
    builder.warn("guessed-column", f"the seventh column is taken to be retries: none is above {RETRY_COUNT_MAX}")
    return False


def _sampled_share(log: PgbenchLog) -> float:
    """Which share of the transactions is logged, by the gaps in each client's numbering; 1 when there are none."""
    share = log.line_count / max(log.last_number_sum, 1.0)
    return share if share < SAMPLED_SHARE_MAX else 1.0


def _operation(name: str, statistics: _Statistics, length_s: float, share: float) -> Operation:
    """Exact statistics of latencies in microseconds; count and rate are of all transactions, logged or not."""
    logged, mean, squares, low, high, lowest, counts = statistics
    count = logged / share
    latency = {"mean": mean, "min": low, "max": high, "stddev": sqrt(squares / logged)}
    latency = {statistic: value / US_PER_MS for statistic, value in latency.items()}
    per_s = count / length_s if length_s > 0 else NAN
    return Operation(name, per_s, NAN, count, latency, bucket_histogram(lowest.astype(np.int64), counts, "us"))
