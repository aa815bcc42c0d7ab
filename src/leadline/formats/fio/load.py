"""The load that really was there, from what fio counted: its JSON report, and its logs of operations over time.

Source: fio, HOWTO, "JSON output" (``job_runtime`` is the time of all jobs of a group together, ``iodepth_level`` the
share of requests submitted at a depth from that power of two up), "Log File Formats"; ``stat.c``.
"""

from __future__ import annotations

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leadline.core.contracts.honoured import StreamLoad
from leadline.core.contracts.honoured_bursts import OverTime
from leadline.core.model.result import Tick
from leadline.core.model.units import factor
from leadline.formats.json_documents import number_in, object_in

LOG_STEPS_MS = (10, 20, 50, 100, 200, 250, 500, 1000)
DEPTH_TOP = 64  # fio counts no finer above


def log_step_ms(shortest_s: float) -> int:
    """Milliseconds between two lines of a log that shows phases of this length: a tenth of it.

    >>> log_step_ms(2.0), log_step_ms(0.3), log_step_ms(70.0)
    (200, 20, 1000)
    """
    fitting = [step for step in LOG_STEPS_MS if step <= shortest_s * 100.0]
    return fitting[-1] if fitting else LOG_STEPS_MS[0]


def last_report(path: Path) -> dict[str, Any] | None:
    """The last whole report of an output file; None when there is none."""
    text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
    at = len(text)
    while at > 0:
        at = text.rfind("\n{", 0, at)
        try:
            value, _ = json.JSONDecoder().raw_decode(text, at + 1)
        except ValueError:
            continue
        # fio's client writes the second: the jobs of all servers.
        return value if isinstance(value, dict) and not value.keys().isdisjoint(("jobs", "client_stats")) else None
    return None


def loads_of(
    report: dict[str, Any], over_time: Mapping[str, tuple[OverTime, ...]] | None = None
) -> tuple[StreamLoad, ...]:
    """What every job of a report did; jobs of fio's client by their own names."""
    jobs = report.get("jobs", report.get("client_stats", ()))
    parts = [job for job in jobs if not ("client_stats" in report and job.get("jobname") == "All clients")]
    return tuple(_load(job, (over_time or {}).get(str(job["jobname"]), ())) for job in parts)


def _load(job: dict[str, Any], over_time: tuple[OverTime, ...]) -> StreamLoad:
    read, write = object_in(job, "read"), object_in(job, "write")
    sync = object_in(object_in(job, "sync"), "lat_ns")
    reads, writes, syncs = (_count(part, key) for part, key in ((read, "total_ios"), (write, "total_ios"), (sync, "N")))
    spent = [reads * _mean_s(read, "lat_ns"), writes * _mean_s(write, "lat_ns")]
    spent.append(syncs * number_in(sync, "mean") * factor("ns", "s") if syncs else 0.0)
    runtime_ms = max(_count(read, "runtime"), _count(write, "runtime"))
    together_ms = number_in(job, "job_runtime")
    return StreamLoad(
        str(job["jobname"]),
        runtime_ms / 1e3,
        *(reads, writes, syncs),
        *(_count(read, "io_bytes"), _count(write, "io_bytes")),
        jobs=together_ms / runtime_ms if runtime_ms > 0 else math.nan,
        busy_s=sum(spent),
        depth=_depth(object_in(job, "iodepth_level")),
        cpu_pct=number_in(job, "usr_cpu") + number_in(job, "sys_cpu"),
        over_time=over_time,
    )


def _count(counters: dict[str, Any], key: str) -> float:
    value = number_in(counters, key)
    return 0.0 if math.isnan(value) else value


def _mean_s(counters: dict[str, Any], key: str) -> float:
    value = number_in(object_in(counters, key), "mean") * factor("ns", "s")
    return 0.0 if math.isnan(value) else value


def _depth(levels: dict[str, Any]) -> tuple[float, float]:
    """The least and the most the mean depth at submission may have been."""
    shares = {int(key.lstrip(">=")): float(share) for key, share in levels.items() if key != "0"}
    total = sum(shares.values())
    if total <= 0:
        return math.nan, math.nan
    least = sum(share * depth for depth, share in shares.items()) / total
    above = shares.get(DEPTH_TOP, 0.0) > 0
    most = sum(share * (2 * depth - 1) for depth, share in shares.items()) / total
    return least, math.inf if above else most


def over_time_of(
    prefix: Path, streams: Sequence[tuple[str, int]], step_ms: int
) -> tuple[dict[str, tuple[OverTime, ...]], list[Path]]:
    """Operations over time by stream, from ``PREFIX_iops.N.log`` of the N-th thread; and the files they were in.

    ``streams``: their names and numbers of jobs, in the order of the job file.
    """
    by_stream: dict[str, tuple[OverTime, ...]] = {}
    files, number = [], 0
    for name, jobs in streams:
        series = []
        for _ in range(jobs):
            number += 1
            path = prefix.with_name(f"{prefix.name}_iops.{number}.log")
            if path.exists():
                files.append(path)
                series.append(over_time(path.read_text(encoding="ascii", errors="replace"), step_ms))
        by_stream[name] = (*by_stream.get(name, ()), *series)
    return by_stream, files


def over_time(text: str, step_ms: int) -> OverTime:
    """Operations over time of one log: its lines are operations per second of the step before them."""
    counts: dict[float, float] = defaultdict(float)
    for stamp, per_s in log_lines(text):
        counts[stamp / 1e3] += per_s * step_ms / 1e3
    return OverTime(step_ms / 1e3, tuple(counts), tuple(counts.values()))


def log_lines(text: str) -> Iterator[tuple[float, float]]:
    """Milliseconds and value of each line; a damaged one is left out."""
    for line in text.splitlines():
        stamp, _, rest = line.partition(",")
        try:
            row = float(stamp), float(rest.partition(",")[0])
        except ValueError:
            continue
        yield row


def ticks_of(loads: Sequence[StreamLoad]) -> tuple[Tick, ...]:
    """What came out of each second, of all streams together, from their operations over time."""
    seconds: dict[int, float] = defaultdict(float)
    sizes: dict[int, float] = defaultdict(float)
    for load in loads:
        count = load.reads + load.writes
        mean = (load.read_bytes + load.write_bytes) / count if count else 0.0
        for job in load.over_time:
            for end_s, done in zip(job.ends_s, job.counts, strict=True):
                second = math.ceil(end_s - 0.5 * job.interval_s)
                seconds[second] += done
                sizes[second] += done * mean
    last = int(max((load.duration_s for load in loads), default=0.0) + 0.05)
    return tuple(Tick(float(n), seconds[n], sizes[n]) for n in range(1, last + 1))
