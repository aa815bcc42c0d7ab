"""Tables of vdbench's intervals: their times, their columns as metrics, their averages as results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta, timezone, tzinfo
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.io.clock import assumed_date, to_ns
from leadline.core.io.source import Source
from leadline.core.model.result import Operation, Result
from leadline.formats.loadtool import NAN, bad_line, epoch_ns, zone_named

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Field, Request
    from leadline.core.model.capture import CaptureBuilder

BYTES_PER_MIB = 1024.0**2
UNLIMITED = {"77": "curve", "88": "max", "99": "max"}  # how 999977, 9999988 … end: rates vdbench uses as words
DAY = timedelta(days=1)
CREATED = re.compile(
    r"created (\d\d:\d\d:\d\d) (\w{3} \d\d \d{4}) (\S+)(?: \((\d\d:\d\d:\d\d \w{3} \d\d \d{4}) UTC\))?"
)

_TIME = re.compile(r"(\d\d):(\d\d):(\d\d)[.,](\d{3})")
_AVERAGE = re.compile(r"avg_(\d{1,9})-(\d{1,9})")
_STATISTICS = (("mean", "resp"), ("max", "resp_max"), ("stddev", "resp_std"))
# columns that repeat what was asked for, and what they are called in a result's workload
ASKED = {
    "threads": "thread_count", "xfersize": "block_size_bytes", "rdpct": "read_pct", "rhpct": "read_hit_pct",
    "whpct": "write_hit_pct", "seekpct": "seek_pct", "lunsize": "lun_size_gib", "compratio": "compression_ratio",
    "dedupratio": "dedup_ratio", "reqrate": "rate_per_s",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Moment:
    """When a row was printed: the time of day, the date and the zone's abbreviation if they stand with it."""

    time: timedelta
    day: date | None = None
    zone: str = ""


@dataclass
class VdbenchTable:
    """Intervals and averages of a flat file or report, values by column name in vdbench's units."""

    columns: list[str]
    moments: list[Moment] = field(default_factory=list)
    runs: list[str] = field(default_factory=list)
    values: list[list[float]] = field(default_factory=list)
    averages: list[tuple[str, int, list[float]]] = field(default_factory=list)

    def put(self, run: str, step: str, moment: Moment, numbers: list[float]) -> None:
        """Keep an interval, or an average with the count of intervals it is of; other statistics are passed over."""
        average = _AVERAGE.fullmatch(step)
        if average:
            self.averages.append((run, int(average[2]) - int(average[1]) + 1, numbers))
        elif step.isdecimal():
            self.moments.append(moment)
            self.runs.append(run)
            self.values.append(numbers)


def time_of_day(text: str) -> timedelta:
    """The time of day a row begins with.

    Raises:
        ValueError: it is none.
    """
    match = _TIME.fullmatch(text.strip())
    if match is None or int(match[1]) > 23 or int(match[2]) > 59 or int(match[3]) > 59:
        message = f"{text!r} is no time of day"
        raise ValueError(message)
    hour, minute, second, milli = (int(group) for group in match.groups())
    return timedelta(hours=hour, minutes=minute, seconds=second, milliseconds=milli)


def cell(text: str, *, decimal_comma: bool) -> float:
    """The number of a cell; NaN for ``n/a``.

    Raises:
        ValueError: it is neither.
    """
    text = text.strip()
    if text == "n/a":
        return NAN
    if not re.fullmatch(r"-?\d{1,18}([.,]\d+)?|NaN", text):
        message = f"{text!r} is no number"
        raise ValueError(message)
    return float(text.replace(",", ".") if decimal_comma else text)


def report_date(text: str) -> date | None:
    """The date of ``Mar 08, 2019``; None when the month is written in another language."""
    try:
        return datetime.strptime(text, "%b %d, %Y").date()  # noqa: DTZ007 - only the date is used
    except ValueError:
        return None


def sibling_head(source: Source) -> str:
    """The beginning of the folder's summary, which says when the run was; empty when there is none."""
    path = source.path.with_name("summary.html")
    return Source(str(path), path).head_text if path.is_file() else ""


def interval_times(
    table: VdbenchTable, source: Source, request: Request, builder: CaptureBuilder
) -> tuple[NDArray[np.int64], bool]:
    """UTC nanoseconds of the intervals [n], and whether date and zone are known.

    Raises:
        InputError: times go back, or are not of this age.
    """
    if not table.moments:
        return np.zeros(0, dtype=np.int64), True
    created = CREATED.search(source.head_text) or CREATED.search(sibling_head(source))
    zone_text = table.moments[0].zone or (created[3] if created else "")
    zone = _zone(zone_text, created)
    day = table.moments[0].day or (report_date(f"{created[2][:6]},{created[2][6:]}") if created else None)
    dated = day is not None
    if day is None:
        day = assumed_date(source, request)
        builder.warn("no-date", f"times have no date; taken as {day}")
        if request.date is None:  # the file was last written on the last day
            times = [moment.time for moment in table.moments]
            day -= DAY * sum(_passes_midnight(a, b) for a, b in pairwise(times))
    if zone is None:
        assumed = request.timezone or "UTC"
        builder.warn("no-zone", f"zone {zone_text or 'is not printed'}: times are taken as {assumed}")
    times_ns = _on_days(table, datetime(day.year, day.month, day.day, tzinfo=zone), source.name, request)
    return times_ns, dated and (zone is not None or request.timezone is not None)


def _on_days(table: VdbenchTable, midnight: datetime, name: str, request: Request) -> NDArray[np.int64]:
    times_ns: list[int] = []
    before = timedelta(0)
    for index, moment in enumerate(table.moments):
        if index and _passes_midnight(before, moment.time):
            midnight += DAY
        before = moment.time
        nanoseconds = to_ns(midnight + moment.time, request)
        epoch_ns(nanoseconds / 1e9, name, 0)
        if times_ns and nanoseconds < times_ns[-1]:
            raise bad_line(name, 0, f"row {index + 1} of the intervals is before the one above it", "times that rise")
        times_ns.append(nanoseconds)
    return np.array(times_ns, dtype=np.int64)


def _passes_midnight(before: timedelta, after: timedelta) -> bool:
    return before - after > DAY / 2


def _zone(text: str, created: re.Match[str] | None) -> tzinfo | None:
    """The difference of the two times the summary of later versions begins with, else the zone of an abbreviation."""
    if created is not None and created[4]:
        try:
            local = datetime.strptime(f"{created[1]} {created[2]}", "%H:%M:%S %b %d %Y")  # noqa: DTZ007 - the zone is sought
            utc = datetime.strptime(created[4], "%H:%M:%S %b %d %Y")  # noqa: DTZ007 - as above
        except ValueError:
            return zone_named(text)
        if abs(local - utc) < DAY:
            return UTC if local == utc else timezone(local - utc)
    return zone_named(text)


def metric_columns(table: VdbenchTable, fields: Mapping[str, Field]) -> dict[str, NDArray[np.float64]]:
    """Metrics of the intervals [n]; response times of operations that did not happen are not measured."""
    data = np.array(table.values, dtype=np.float64).reshape(len(table.values), len(table.columns)).T
    by_name = dict(zip(table.columns, data, strict=True))
    done, share = by_name.get("rate", np.ones(len(table.values))), by_name.get("read%")
    if share is not None and "read_rate" not in by_name:
        by_name |= {"read_rate": done * share / 100, "write_rate": done * (100 - share) / 100}
    if "resp_max" not in by_name and {"read_max", "write_max"} <= by_name.keys():
        by_name["resp_max"] = np.fmax(by_name["read_max"], by_name["write_max"])
    metrics = {}
    for name, values in by_name.items():
        rate = by_name.get({"read_": "read_rate", "write": "write_rate"}.get(name[:5], "rate"), done)
        metric = fields[name].metric if name in fields else f"raw.vdbench.{name}"
        if name not in ASKED and name != "version":
            is_time = name.endswith(("resp", "_max", "_std"))
            metrics[metric] = np.where(rate > 0, values, NAN) if is_time else values
    return metrics


def results(table: VdbenchTable, times_ns: NDArray[np.int64], tool: str, part: str, name: str) -> Iterator[Result]:
    """One result per run definition's average; vdbench leaves the warm-up out of it.

    ``times_ns`` int64 [n] are those of the intervals; ``part`` names the host or definition a report is of, or "".
    """
    run_of = np.array(table.runs)
    for run, count, numbers in table.averages:
        run_times = times_ns[run_of == run] if len(table.runs) else times_ns
        interval_s = float(np.median(np.diff(run_times))) / 1e9 if len(run_times) > 1 else NAN
        start = int(run_times[-1]) - round(count * interval_s * 1e9) if len(run_times) > 1 else None
        row = dict(zip(table.columns, numbers, strict=True))
        if "resp_max" not in row and "read_max" in row:
            row["resp_max"] = max(row["read_max"], row.get("write_max", NAN))
        yield Result(
            tool=tool,
            job=f"{run} {part}".strip(),
            operations=_operations(row),
            duration_s=count * interval_s,
            start_ns=start,
            workload=_workload(row),
            source=name,
        )


def _operations(row: Mapping[str, float]) -> tuple[Operation, ...]:
    rate, share = row.get("rate", NAN), row.get("read%", NAN)
    reads, writes = row.get("read_rate", rate * share / 100), row.get("write_rate", rate * (100 - share) / 100)
    latency = {key: row[column] for key, column in _STATISTICS if not np.isnan(row.get(column, NAN))}
    moved = row.get("MB/sec", NAN) * BYTES_PER_MIB
    operations = [Operation("io", rate, moved, latency_ms=latency if rate > 0 else {})]
    for kind, per_s in (("read", reads), ("write", writes)):
        mean = row.get(f"{kind}_resp", NAN)
        known = {"mean": mean} if per_s > 0 and not np.isnan(mean) else {}
        operations.append(Operation(kind, per_s, row.get(f"{kind}_mb", NAN) * BYTES_PER_MIB, latency_ms=known))
    return tuple(operations)


def _workload(row: Mapping[str, float]) -> dict[str, Any]:
    asked: dict[str, Any] = {}
    for column, word in ASKED.items():
        number = row.get(column, NAN)
        if not np.isnan(number):
            asked[word] = int(number) if number.is_integer() else number
    rate = str(asked.get("rate_per_s", ""))
    if re.fullmatch(r"9{4,5}(77|88|99)", rate):
        asked["rate_per_s"] = UNLIMITED[rate[-2:]]
    return asked
