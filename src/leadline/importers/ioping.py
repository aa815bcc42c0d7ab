"""ioping: the time of single requests, one after the other.

Reads:
    The text of versions 0.5 to 1.3 (each request, the summary, ``-I`` times, several runs with their prompts in one
    file), raw periods (``-p``, ``-P``) and batch lines (``-B``) of eight or ten numbers, and JSON (``-J``).

Sample:
    .. code-block:: text

        Nov 20 22:53:46 4 KiB <<< . (ext4 /dev/vda 252.0 GiB): request=1 time=89.6 us (warmup)
        5 1097668 4555 18657736 195261 219534 244074 19153 6 500384835

Lost:
    Warm-up requests, as in ioping's own statistics. Requests that it left out as too slow or too fast are kept, since
    they were measured. Operations per second are those made; what the disk would do if asked without pause (ioping's
    "iops") is kept as ``busy_iops``. Raw lines do not say whether they read or wrote, nor where, unless the command
    stands before them (``$ ioping -q -p 1 -W ...``). Those of single requests (``-p 1``) give a histogram.

Units:
    Text: the unit behind each number, sizes in powers of 1024. Raw lines and JSON: nanoseconds and bytes.

Sources:
    ioping(1), "RAW STATISTICS" and "JSON OUTPUT"; ioping.c (``print_statistics``).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.clock import rolled_over, synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.ioping_raw import (
    COLUMNS,
    LINE,
    OLD_COUNT,
    PROMPT,
    agree,
    asked,
    histogram,
    is_raw,
    parts,
    rates,
    row_of,
)
from leadline.formats.json_documents import NUMBER_MAX, json_array, number_in, object_in
from leadline.formats.loadtool import add_columns, bad_line, epoch_ns, sample_histogram, where
from leadline.formats.printed import bytes_of, moment_printed, printed_ns, scaled, seconds_of, year_printed

if TYPE_CHECKING:
    from numpy.typing import NDArray

META = ImporterMeta(
    tool="ioping",
    layers=(Layer.STORAGE_PATH,),
    fields={
        "io.time read": Field("job_latency_ms_read", "ns"),
        "io.time write": Field("job_latency_ms_write", "ns"),
        "stat.avg": Field("job_latency_ms", "ns"),
        "stat.max": Field("job_latency_ms_max", "ns"),
        "stat.mdev": Field("job_latency_ms_stddev", "ns"),
        "load.iops": Field("job_iops", "per_s"),
        "load.bps": Field("job_mib_per_s", "bytes_per_s"),
    },
    record="ioping -J -D -c 600 DIRECTORY > ioping.json",
)

_SIZE = r"[\d.]{1,24} ?(?:[KMGTP]i?B|B|bytes|[kKMGTP])"
_REQUEST = re.compile(
    rf"^(?P<when>.{{0,80}}?)\s{{0,8}}(?P<size>{_SIZE}) (?P<way><<<|>>>|from|to) (?P<target>.+?): request=(?P<n>\d+) "
    r"time=(?P<time>[\d.]+) ?(?P<unit>ns|us|ms|s|min|hour|day)s?(?: \((?P<note>[^)]*)\))?\s*$"
)
_SUMMARY = re.compile(r"^--- (?P<target>.+?) ioping statistics ---\s*$")
_DONE = re.compile(r"^(?P<count>[\d.]+(?: [kMGT])?) requests completed in (?P<spent>[\d.]+ \w+)(?P<rest>,.*)?$")
_MADE = re.compile(
    r"^(?:[\d.]+(?: [kMGT])? too (?:slow|fast), )*generated (?P<count>[\d.]+(?: [kMGT])?) requests "
    rf"in (?P<spent>[\d.]+ \w+), {_SIZE}, "
    rf"(?P<iops>[\d.]+(?: [kMGT])?) iops, (?P<rate>{_SIZE})/s"
)
_SPREAD = re.compile(r"^min/avg/max/mdev = (?P<values>[\d.]+ \w+(?: / [\d.]+ \w+){3})")
_WAYS = {"<<<": "read", "from": "read", ">>>": "write", "to": "write"}
_JSON = re.compile(r'"(?:stat|io)"\s*:\s*\{')
_ASSUMED = {
    "no-times": "no time for each request; placed by their distance up to the file's last change",
    "no-date": "no year and no zone; taken in the year of the file's last change or --date, and as UTC or --timezone",
    "no-zone": "the times are local, without a zone; taken in the zone asked for, else as UTC",
}


def sniff(source: Source) -> int:
    """Sure by the request and summary lines or the JSON; likely by raw lines whose numbers agree with one another."""
    text = source.head_text
    if text.lstrip().startswith("[{") and '"target"' in text and _JSON.search(text):
        return 93
    lines = text.splitlines()[:400]
    if any(_SUMMARY.match(line) or ("request=" in line and _REQUEST.match(line)) for line in lines):
        return 93
    raw = [line.strip() for line in lines[:20] if line.strip() and not PROMPT.fullmatch(line)]
    whole = raw[: max(1, len(raw) - 1)]
    return 65 if all(is_raw(line) for line in whole) and any(not line.startswith("0 ") for line in whole) else 0


@dataclass(slots=True)
class _Run:
    """One run of ioping: its requests, the raw statistics of its periods, and its summary.

    ``moments`` are printed times (None: none), ``periods`` tables of raw statistics, as `row_of` makes them.
    """

    target: str = ""
    way: str = ""
    size: str = ""
    command: str = ""
    moments: list[datetime | int | None] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    periods: list[NDArray[np.float64]] = field(default_factory=list)
    period_ends_ns: list[int] = field(default_factory=list)
    whole: dict[str, float] = field(default_factory=dict)
    warmup_count: int = 0

    @property
    def is_empty(self) -> bool:
        return not (self.latencies_ms or self.periods or self.whole or self.warmup_count)

    @property
    def table(self) -> NDArray[np.float64]:
        """Raw statistics [n, 10]."""
        return np.concatenate(self.periods) if self.periods else np.empty((0, len(COLUMNS)))

    @property
    def request_count(self) -> int:
        return len(self.latencies_ms) + self.warmup_count


def read(source: Source, request: Request) -> Capture:
    """The latency of each request or period, and a result for each run.

    Raises:
        InputError: the file holds no request and no statistics, or a damaged line.
    """
    builder = CaptureBuilder(source.name, "ioping", META.tool)
    text = source.text()
    is_json = text.lstrip().startswith("[{")
    runs = _json_runs(builder, text, source.name) if is_json else _text_runs(builder, text, source)
    if not runs:
        expected = "the output of ioping, as `ioping -D -c 60 DIRECTORY > ioping.txt` records it"
        raise bad_line(source.name, 0, "no request, period or summary", expected)
    targets = [run.target or "ioping" for run in runs]
    end_ns = source.mtime_ns
    assumed: set[str] = set()
    for number, run in reversed(list(enumerate(runs, 1))):
        job = targets[number - 1] if targets.count(targets[number - 1]) == 1 else f"{targets[number - 1]}#{number}"
        times, code = _times(run, source, request, end_ns)
        assumed.add(code)
        _add(builder, request, run, Entity(EntityKind.JOB, job), times)
        builder.results.insert(0, _result(run, job, source.name, times))
        if len(times):
            end_ns = int(times[0])
    for code in sorted(assumed & _ASSUMED.keys()):
        builder.warn(code, _ASSUMED[code])
    skipped = sum(run.warmup_count for run in runs)
    if skipped:
        builder.warn("warmup", "warm-up requests are left out, as in ioping's own statistics", skipped)
    return builder.build(clock_known=assumed == {""})


def _text_runs(builder: CaptureBuilder, text: str, source: Source) -> list[_Run]:
    runs = [_Run()]
    for index, part in parts(text):
        line = part if isinstance(part, str) else ""
        if isinstance(part, str) and not LINE.fullmatch(line.strip()):
            if not _take_line(runs, line):
                if index + 1 < text.count("\n") + (not text.endswith("\n")):
                    raise bad_line(source.name, index, line.strip(), "a request or a summary of ioping")
                builder.warn("cut", "the last line was cut while it was written and is left out")
            continue
        table = row_of(line) if isinstance(part, str) else part
        sound = agree(table)
        if not sound.all():
            bad = int(np.argmin(sound))
            shown = line.strip() or " ".join(f"{value:.0f}" for value in table[bad])
            raise bad_line(source.name, index + bad, shown, "statistics that agree with one another")
        runs[-1].periods.append(table)
    return [run for run in runs if not run.is_empty]


def _take_line(runs: list[_Run], line: str) -> bool:
    """Take in a line of text; False when it is damaged."""
    run = runs[-1]
    if request := _REQUEST.match(line):
        if run.whole or (request["n"] == "1" and run.request_count):
            runs.append(run := _Run())
        return _take_request(run, request)
    elif prompt := PROMPT.fullmatch(line):
        if not run.is_empty:
            runs.append(run := _Run())
        run.command = prompt["command"]
    elif "request=" in line or line.startswith("min/avg") or " requests in " in line or _SUMMARY.match(line):
        return _take_summary(runs, line)
    elif done := _DONE.match(line):
        run.whole |= {"count": scaled(done["count"]), "spent": seconds_of(done["spent"])}
        _take_done(run, done["rest"] or "")
    return True


def _take_request(run: _Run, asked: re.Match[str]) -> bool:
    """Take in a request; False when its time is none that any disk takes."""
    latency_ms = seconds_of(f"{asked['time']} {asked['unit']}") * 1e3
    run.target = run.target or _target(asked["target"])
    run.way, run.size = _WAYS[asked["way"]], asked["size"]
    if asked["note"] == "warmup":
        run.warmup_count += 1
    else:
        run.moments.append(moment_printed(asked["when"]))
        run.latencies_ms.append(latency_ms)
    return latency_ms < NUMBER_MAX


def _take_done(run: _Run, rest: str) -> None:
    """What stands behind the count and the time: before 1.0 the time was that of the run, pauses included."""
    rate = re.search(r"(?<![\d.])([\d.]++(?: [kMGT])?) iops", rest)
    run.whole["busy_iops"] = scaled(rate[1]) if rate else math.nan
    if moved := re.search(r" (read|written),", rest):
        run.way = run.way or ("read" if moved[1] == "read" else "write")
    elif rate is not None and run.whole["spent"] > 0:
        per_s = run.whole["count"] / run.whole["spent"]
        run.whole |= {"ran": run.whole["spent"], "made": run.whole["count"], "iops": per_s}
        run.whole["bps"] = per_s * bytes_of(run.size)


def _take_summary(runs: list[_Run], line: str) -> bool:
    """Take in a line of the summary; False when it is none."""
    run = runs[-1]
    if head := _SUMMARY.match(line):
        if "count" in run.whole:
            runs.append(run := _Run())
        run.target = run.target or _target(head["target"])
    elif generated := _MADE.match(line):
        rate_bytes = bytes_of(generated["rate"])
        run.whole |= {"iops": scaled(generated["iops"]), "bps": rate_bytes, "ran": seconds_of(generated["spent"])}
        run.whole["made"] = scaled(generated["count"])
    elif spread := _SPREAD.match(line):
        names = ("min", "mean", "max", "stddev")
        values = (seconds_of(part) * 1e3 for part in spread["values"].split(" / "))
        run.whole |= dict(zip(names, values, strict=True))
    else:
        return False
    return True


def _target(text: str) -> str:
    """``/data`` of ``/data (ext4 /dev/sdb 2 TiB)``."""
    return re.sub(r" \([^()]*\)$", "", text)


def _times(run: _Run, source: Source, request: Request, end_ns: int) -> tuple[NDArray[np.int64], str]:
    """When requests (or else periods) ended, UTC nanoseconds, and the code of what is assumed (empty: nothing)."""
    if run.period_ends_ns:
        return np.array(run.period_ends_ns, dtype=np.int64), ""
    if run.periods and not run.latencies_ms:
        spent, ran = run.table[:, COLUMNS.index("time")], run.table[:, COLUMNS.index("ran")]
        lengths = np.where(np.isnan(ran), spent, ran)
        after = np.cumsum(lengths[::-1])[::-1] - lengths
        return end_ns - np.round(after).astype(np.int64), "no-times"
    printed = [moment for moment in run.moments if moment is not None]
    if printed and len(printed) == len(run.latencies_ms):
        times = rolled_over([printed_ns(moment, source, request) for moment in printed])
        if bool(np.all(np.diff(times) >= 0)):
            first = printed[0]
            zoned = isinstance(first, int) or first.tzinfo is not None
            return times, "" if zoned else "no-zone" if year_printed(first) else "no-date"
    return synthetic_times(len(run.latencies_ms), _pace_s(run) or 1.0, end_ns), "no-times"


def _add(builder: CaptureBuilder, request: Request, run: _Run, job: Entity, times: NDArray[np.int64]) -> None:
    if run.latencies_ms:
        interval_s = None if run.period_ends_ns else _pace_s(run)
        metric = f"job_latency_ms_{run.way or 'read'}"
        add_columns(builder, request, job, times[: len(run.latencies_ms)], {metric: run.latencies_ms}, interval_s)
        return
    if not run.periods:
        return
    column = dict(zip(COLUMNS, run.table.T, strict=True))
    with np.errstate(divide="ignore", invalid="ignore"):  # a period without requests has no size
        per_s = column["made"] / (column["ran"] * factor("ns", "s"))
        size_bytes = column["bps"] / column["iops"]
    to_ms = factor("ns", "ms")
    values = {
        "job_latency_ms": where(column["count"] > 0, column["avg"] * to_ms),
        "job_latency_ms_max": where(column["count"] > 0, column["max"] * to_ms),
        "job_latency_ms_stddev": where(column["count"] > 0, column["mdev"] * to_ms),
        "job_iops": per_s,
        "job_mib_per_s": per_s * size_bytes * factor("bytes_per_s", "mib_per_s"),
    }
    add_columns(builder, request, job, times, values)


def _pace_s(run: _Run) -> float | None:
    """The distance of requests by the summary, or None."""
    pace_s = run.whole.get("ran", math.nan) / max(run.whole.get("made", math.nan) - 1, 1)
    return pace_s if 0 < pace_s < 1e6 else None


def _result(run: _Run, job: str, source: str, times: NDArray[np.int64]) -> Result:
    statistics = {key: run.whole[key] for key in ("mean", "min", "max", "stddev") if key in run.whole}
    per_s, bytes_per_s, ran_s = (run.whole.get(key, math.nan) for key in ("iops", "bps", "ran"))
    samples = sample_histogram(np.array(run.latencies_ms) * factor("ms", "ns"), "ns") if run.latencies_ms else None
    target, way = run.target, run.way
    if run.periods and not run.whole and not run.latencies_ms:
        per_s, bytes_per_s, ran_s = rates(run.table)
        samples = histogram(run.table)
        # The job's name stays without this target, so that runs on two targets have results of the same name.
        target, way = (run.target, run.way) if run.target or not run.command else asked(run.command)
    count = run.whole.get("count", math.nan)
    if not count > 0:  # ioping prints zeros when it left out every request as too slow
        statistics = {}
    if not statistics and run.latencies_ms:
        spent_ms = np.array(run.latencies_ms)
        statistics = {"mean": spent_ms.mean(), "min": spent_ms.min(), "max": spent_ms.max(), "stddev": spent_ms.std()}
        count = float(len(spent_ms))
    elif not statistics and run.periods:
        table = run.table
        count = float(table[:, 0].sum())
        scale = factor("ns", "ms")
        statistics = {"mean": table[:, 1].sum() / count * scale, "min": table[:, 4].min() * scale}
        statistics["max"] = table[:, 6].max() * scale
    operation = Operation(
        way or "request",
        per_s,
        bytes_per_s,
        count,
        {key: float(value) for key, value in statistics.items()},
        samples,
    )
    start_ns = None if not len(times) or not ran_s > 0 else int(times[-1]) - round(ran_s * 1e9)
    known = {"target": target, "size": run.size, "busy_iops": run.whole.get("busy_iops")}
    workload = {key: value for key, value in known.items() if value}
    return Result("ioping", job, (operation,), ran_s, start_ns, workload=workload, source=source)


def _json_runs(builder: CaptureBuilder, text: str, name: str) -> list[_Run]:
    """The one run of a ``-J`` file: its requests, its periods, and last the statistics of the whole."""
    items, cut = json_array(text, name)
    if cut:
        builder.warn("cut", "the last entry was cut while it was written and is left out")
    run = _Run()
    stats: list[tuple[int, dict[str, Any], dict[str, Any]]] = []
    ends: list[int] = []
    for document in items:
        item = document.value
        if not isinstance(item, dict):
            raise bad_line(name, document.line - 1, f"{item!r}", "objects with a timestamp and io, stat or load")
        end_ns = epoch_ns(number_in(item, "timestamp"), name, document.line - 1)
        target, asked = object_in(item, "target"), object_in(item, "io")
        run.target = run.target or str(target.get("path", ""))
        if asked:
            run.way = "write" if asked.get("operation") == "write" else "read"
            run.size = f"{number_in(asked, 'size'):g} B"
            if asked.get("ignored") is True and not run.latencies_ms:
                run.warmup_count += 1
            else:
                if math.isnan(number_in(asked, "time")):
                    raise bad_line(name, document.line - 1, "a request without its time", "nanoseconds under time")
                run.latencies_ms.append(number_in(asked, "time") * factor("ns", "ms"))
                ends.append(end_ns)
        elif object_in(item, "stat"):
            stats.append((end_ns, object_in(item, "stat"), object_in(item, "load")))
    if stats and (len(stats) > 1 or run.latencies_ms) and not cut:
        _take_whole(run, *stats.pop()[1:])
    run.periods = [np.array([_period(stat, load)]) for _, stat, load in stats]
    run.period_ends_ns = ends if run.latencies_ms else [end_ns for end_ns, _, _ in stats]
    if any(later < before for before, later in pairwise(run.period_ends_ns)):
        raise bad_line(name, 0, "a timestamp before the one before it", "ascending timestamps")
    return [] if run.is_empty else [run]


def _take_whole(run: _Run, stat: dict[str, Any], load: dict[str, Any]) -> None:
    to_ms = factor("ns", "ms")
    pairs = (("min", "min"), ("mean", "avg"), ("max", "max"), ("stddev", "mdev"))
    run.whole |= {key: number_in(stat, name) * to_ms for key, name in pairs}
    run.whole |= {"count": number_in(stat, "count"), "busy_iops": number_in(stat, "iops")}
    run.whole |= {"iops": number_in(load, "iops"), "bps": number_in(load, "bps"), "made": number_in(load, "count")}
    run.whole["ran"] = number_in(load, "time") * factor("ns", "s")


def _period(stat: dict[str, Any], load: dict[str, Any]) -> tuple[float, ...]:
    return (*(number_in(stat, key) for key in COLUMNS[:OLD_COUNT]), number_in(load, "count"), number_in(load, "time"))
