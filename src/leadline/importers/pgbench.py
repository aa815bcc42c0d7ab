"""pgbench's own output: the summary of a run, its progress lines and per-statement latencies.

Reads:
    What ``pgbench`` 9.0 to 18 prints (standard output and standard error together or alone), one or many runs in one
    file, other lines between them; ``-P`` progress with and without ``--progress-timestamp``; ``--rate`` and
    ``--latency-limit``; ``--max-tries``; ``-r`` per-statement latencies; several scripts; the output of ``pgbench -i``;
    numbers with decimal commas (pgbench follows LC_NUMERIC).

Sample:
    .. code-block:: text

        progress: 1.0 s, 2388.9 tps, lat 1.347 ms stddev 0.720, 0 failed, lag 0.683 ms, 35 skipped
        number of transactions above the 3.0 ms latency limit: 250/14802 (1.689%)
        tps = 2468.379824 (without initial connection time)

Lost:
    Percentages pgbench derives from counts, weights of scripts, partitioning. A progress line of an interval without a
    transaction prints latency 0: that is read as "not measured".

Units:
    Latency and lag in milliseconds; progress counts (failed, skipped) are per interval and become rates.

Sources:
    PostgreSQL documentation, pgbench; pgbench.c ``printProgressReport`` and ``printResults``.
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
from leadline.core.model.errors import InputError
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import ELAPSED_S_MAX, EPOCH_S_MIN, NAN, Elapsed, add_columns, bad_line, epoch_ns, placed

META = ImporterMeta(
    tool="pgbench",
    marks=("progress: ", "transaction type", "pgbench (", " tuples ("),
    layers=(Layer.DATABASE,),
    fields={
        "tps": Field("db_tps", "per_s"),
        "lat": Field("db_latency_ms", "ms"),
        "stddev": Field("db_latency_ms_stddev", "ms"),
        "lag": Field("db_schedule_lag_ms", "ms"),
        "failed": Field("db_failed_per_s", "per_s"),
    },
    record="pgbench -P 1 --progress-timestamp -r -c 16 -j 4 -T 600 bench >pgbench.txt 2>&1",
)
DATABASE = Entity(EntityKind.DATABASE, "postgresql", UNNAMED_GUEST)
ROWS_PER_SCALE = 100_000  # rows of pgbench_accounts per unit of scale; pgbench.c naccounts

_N = r"(-?\d+[.,]\d+|-?nan)"
_PROGRESS = re.compile(
    rf"progress: (\d+[.,]\d+) s, {_N} tps(?:, lat {_N} ms stddev {_N})?(?:, (?P<failed>\d+) failed)?"
    rf"(?:, lag (?P<lag>-?\d+[.,]\d+|-?nan) ms)?(?:, (?P<skipped>\d+) skipped)?"
    r"(?:, (?P<retried>\d+) retried, (?P<retries>\d+) retries)?\s*",
    re.IGNORECASE,
)
_SUMMARY = re.compile(
    r"(transaction type|scaling factor|query mode|number of clients|number of threads|maximum number of tries|duration"
    r"|number of transactions per client|number of transactions actually processed|number of failed transactions"
    r"|number of transactions skipped|number of transactions above the .* latency limit|number of transactions retried"
    r"|total number of retries|latency average(?: \(including failures\))?|latency stddev|rate limit schedule lag"
    r"|initial connection time|average connection time)\s*[:=]\s*(.*)"
)
_TPS = re.compile(r"tps = (\d+[.,]\d+|-?nan|inf) \((.*)\)\s*")
_SCRIPT = re.compile(r"(?:SQL )?script (\d+): (.*)")
_SCRIPT_COUNT = re.compile(r"(\d+) transactions \(.*tps = (\d+[.,]\d+|-?nan)\)")
_STATEMENT = re.compile(r"\s+(\d+[.,]\d+)((?:\s+\d+){0,2})\s+(\S.*)")
_BANNER = re.compile(r"pgbench \((.*)\)\s*$")
_ABORTED = re.compile(r"\bclient \d+\b.*aborted|Run was aborted")
_LOADED = re.compile(r"(\d+) of (\d+) tuples \(\d+ ?%\).* done \(elapsed (\d+[.,]\d+) s")
_LOAD_DONE = re.compile(r"done in (\d+[.,]\d+) s(?: \((.*)\))?")
_STEP = re.compile(r"(?<![a-z-])([a-z][a-z-]*+(?: [a-z-]++){0,5}+) (\d++[.,]\d++) s")
_MARK = re.compile(
    r"^progress: [\d.,]+ s, [\d.,na-]+ tps|^transaction type: .*\n(?:.*\n)?scaling factor: |^pgbench \(\d"
    r"|^\d+ of \d+ tuples \(\d+ ?%\)[^\n\r]* done \(elapsed",
    re.MULTILINE,
)
_COUNTED = {
    "number of transactions skipped": "transactions skipped",
    "number of transactions retried": "transactions retried",
    "total number of retries": "retries",
}
_WHOLE_KEYS = {
    "scaling factor": "scale",
    "number of clients": "client_count",
    "number of threads": "thread_count",
    "number of transactions per client": "transactions_per_client_count",
    "maximum number of tries": "tries_count_max",
}


@dataclass
class _Script:
    """What is printed of one script: its numbers and its statements with their latencies."""

    name: str
    count: float = NAN
    per_s: float = NAN
    latency_ms: dict[str, float] = field(default_factory=dict)
    statements: list[tuple[str, float]] = field(default_factory=list)


@dataclass
class _Run:
    """One run as it is collected: progress rows, summary lines by key, scripts."""

    version: str | None = None
    progress: list[tuple[float, ...]] = field(default_factory=list)
    summary: dict[str, str] = field(default_factory=dict)
    tps: dict[str, float] = field(default_factory=dict)
    scripts: list[_Script] = field(default_factory=list)
    aborted: bool = False

    @property
    def used(self) -> bool:
        return bool(self.progress or self.summary)


def sniff(source: Source) -> int:
    """Sure by a progress line, the summary's first lines, the banner or the load's progress."""
    return 92 if _MARK.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the progress lines on the database, one result per summary.

    Raises:
        InputError: no run in it, or a damaged line before the last.
    """
    builder = CaptureBuilder(source.name, "pgbench", META.tool)
    text = source.text()
    lines = text.splitlines()
    runs = _runs(lines, source.name, builder, whole=text.endswith(("\n", "\r")))
    load = _load_result(lines, source.name)
    if load is not None:
        builder.results.append(load)
    if not runs and load is None:
        raise bad_line(source.name, 0, "no progress line and no summary", "the output of pgbench")
    clock_known = _add_series(builder, source, request, runs)
    for run in runs:
        if run.tps:
            builder.results.append(_result(run, source.name))
        elif run.summary:
            builder.warn("cut", "a summary ends before its tps line: no result is made of it")
        else:
            builder.warn("no-summary", "a run has progress lines but no summary: there is no result of it")
        if run.aborted:
            builder.warn("aborted", "clients were aborted during a run: its numbers are of the remaining clients")
    version = next((run.version for run in runs if run.version), None)
    return builder.build(clock_known=clock_known, tool_version=version)


def _runs(lines: list[str], name: str, builder: CaptureBuilder, *, whole: bool) -> list[_Run]:
    """Every run of the file; a damaged or unended last line is dropped with a warning."""
    runs = [_Run()]
    version: str | None = None
    for index, line in enumerate(lines):
        banner = _BANNER.match(line)
        if banner:
            version = banner[1]
        if runs[-1].used and (banner or _begins_run(line, runs[-1])):
            runs.append(_Run())
        runs[-1].version = version
        is_last = index == len(lines) - 1
        try:
            if is_last and not whole and line.startswith("progress"):
                raise bad_line(name, index, f"cut line {line!r}", "a whole line")
            _take(line, runs[-1], name, index)
        except InputError as error:
            if not is_last:
                raise
            builder.warn("cut", f"the last line is cut and was dropped: {error.found}")
    return [run for run in runs if run.used]


def _begins_run(line: str, run: _Run) -> bool:
    """Whether a line can only be of a new run: progress that starts again, or anything after a summary."""
    match = _PROGRESS.fullmatch(line)
    if match is not None:
        return bool(run.summary) or _number(match[1]) <= run.progress[0][0]
    return line.startswith("transaction type: ") and "transaction type" in run.summary


def _take(line: str, run: _Run, name: str, index: int) -> None:
    """Put one line into the run it belongs to; lines of other programs are passed over."""
    if line.startswith("progress: "):
        run.progress.append(_progress_row(line, run, name, index))
    elif line.startswith("tps = "):
        match = _TPS.fullmatch(line)
        if match is None:
            raise bad_line(name, index, line, "tps = NUMBER (what is counted)")
        run.tps[match[2]] = _number(match[1])
    elif line.startswith((" - ", "SQL script ", "script ")):
        _take_script(line, run)
    elif line.startswith((" ", "\t")):
        statement = _STATEMENT.fullmatch(line)
        if statement and run.summary:
            run.scripts = run.scripts or [_Script("")]
            run.scripts[-1].statements.append((statement[3].strip(), _number(statement[1])))
    else:
        summary = _SUMMARY.match(line)
        if summary:
            if summary[1] not in {"transaction type", "query mode"} and not re.search(r"\d|nan", summary[2]):
                raise bad_line(name, index, line, f"a number after {summary[1]!r}")
            run.summary[summary[1]] = summary[2].strip()
        run.aborted = run.aborted or bool(_ABORTED.search(line))


def _take_script(line: str, run: _Run) -> None:
    script = _SCRIPT.match(line)
    if script:
        run.scripts.append(_Script(script[2].strip()))
        return
    if not run.scripts:
        return
    current, body = run.scripts[-1], line[3:]
    counted = _SCRIPT_COUNT.match(body)
    if counted:
        current.count, current.per_s = float(counted[1]), _number(counted[2])
    for key, statistic in (("latency average", "mean"), ("latency stddev", "stddev")):
        if body.startswith(key):
            current.latency_ms[statistic] = _number(body)


def _progress_row(line: str, run: _Run, name: str, index: int) -> tuple[float, ...]:
    """(seconds, tps, latency, stddev, failed, lag, skipped, retried, retries); NaN is not printed."""
    match = _PROGRESS.fullmatch(line)
    if match is None:
        raise bad_line(name, index, line, "progress: SECONDS s, NUMBER tps, lat …")
    seconds, tps = _number(match[1]), _number(match[2])
    if seconds >= EPOCH_S_MIN:
        epoch_ns(seconds, name, index)
    if run.progress and (seconds < run.progress[-1][0] or seconds - run.progress[-1][0] > ELAPSED_S_MAX):
        raise bad_line(name, index, f"{seconds:g} s after {run.progress[-1][0]:g} s", "times that rise")
    latency = [_number(match[group]) if tps > 0 else NAN for group in (3, 4)]
    lag = _number(match["lag"]) if tps > 0 else NAN
    counts = [_number(match[group]) for group in ("failed", "skipped", "retried", "retries")]
    return (seconds, tps, *latency, counts[0], lag, *counts[1:])


def _number(text: str | None) -> float:
    """The first number of a text, decimal comma or point; NaN when there is none."""
    match = re.search(r"-?\d+(?:[.,]\d+)?", text or "")
    return float(match[0].replace(",", ".")) if match else NAN


def _add_series(builder: CaptureBuilder, source: Source, request: Request, runs: list[_Run]) -> bool:
    """Add the progress series; whether their clock is known."""
    tables = [np.array(run.progress, dtype=np.float64).T for run in runs if run.progress]
    elapsed = [Elapsed(t[0], t[0][-1]) for t in tables if t[0][-1] < EPOCH_S_MIN]
    starts = iter(placed(elapsed, source.mtime_ns))
    for table in tables:
        seconds = table[0]
        known = seconds[-1] >= EPOCH_S_MIN
        times = np.round(seconds * 1e6).astype(np.int64) * 1000 if known else next(starts)
        steps = np.diff(seconds, prepend=NAN if known else 0.0)
        interval = float(np.median(steps[1:])) if len(steps) > 1 else float(steps[0])
        steps[0] = interval if known else steps[0]
        steps = np.where(steps > 0, steps, NAN)
        columns = {
            "db_tps": table[1],
            "db_latency_ms": table[2],
            "db_latency_ms_stddev": table[3],
            "db_failed_per_s": table[4] / steps,
            "db_schedule_lag_ms": table[5],
            "raw.pgbench.skipped_per_s": table[6] / steps,
            "raw.pgbench.retried_per_s": table[7] / steps,
            "raw.pgbench.retries_per_s": table[8] / steps,
        }
        add_columns(builder, request, DATABASE, times, columns, interval_s=interval)
    if elapsed:
        message = "progress lines have no date: the last is taken to be of when the file was last written"
        builder.warn("no-times", f"{message}; record with --progress-timestamp")
    return not elapsed


def _result(run: _Run, name: str) -> Result:
    """The result of a run whose summary is whole."""
    summary = run.summary
    without = next((v for k, v in run.tps.items() if not k.startswith("including conn")), next(iter(run.tps.values())))
    count = _number(summary.get("number of transactions actually processed"))
    asked_s = _number(summary.get("duration"))
    mean = summary.get("latency average", summary.get("latency average (including failures)"))
    latency = {"mean": _number(mean), "stddev": _number(summary.get("latency stddev"))}
    whole = Operation("transaction", without, count=count, latency_ms=_measured(latency))
    ran_s = asked_s if asked_s > 0 else count / without if without > 0 else NAN
    start = run.progress[0][0] if run.progress else 0.0
    failed = _number(summary.get("number of failed transactions"))
    return Result(
        tool=META.tool,
        job=summary.get("transaction type", "pgbench"),
        operations=(whole, *_further_operations(run)),
        duration_s=ran_s,
        start_ns=_start_ns(run) if start >= EPOCH_S_MIN else None,
        tool_version=run.version,
        workload=_workload(summary, asked_s),
        error_count=int(failed) if np.isfinite(failed) else 0,
        source=name,
    )


def _start_ns(run: _Run) -> int | None:
    """One interval before the first progress line, which has the time of its end."""
    if len(run.progress) < 2:
        return None
    return round((2 * run.progress[0][0] - run.progress[1][0]) * 1e6) * 1000


def _further_operations(run: _Run) -> list[Operation]:
    """Return the operations besides transactions: connecting, schedule lag, counts, scripts and statements."""
    operations = [
        Operation("transaction including connecting", per_s=v)
        for k, v in run.tps.items()
        if k.startswith("including conn")
    ]
    for key, text in run.summary.items():
        if key == "rate limit schedule lag":
            average, _, worst = text.partition("max")
            operations.append(Operation("schedule lag", latency_ms={"mean": _number(average), "max": _number(worst)}))
        elif key == "average connection time":
            operations.append(Operation("connect", latency_ms={"mean": _number(text)}))
        elif key == "initial connection time":
            operations.append(Operation("connect all clients", latency_ms={"total": _number(text)}))
        elif key in _COUNTED:
            operations.append(Operation(_COUNTED[key], count=_number(text)))
        elif key.startswith("number of transactions above"):
            operations.append(Operation("transactions above the latency limit", count=_number(text)))
    for position, script in enumerate(run.scripts, 1):
        prefix = f"script {position} " if len(run.scripts) > 1 else ""
        if script.name:
            operations.append(
                Operation(f"script {position}: {script.name}", script.per_s, NAN, script.count, script.latency_ms)
            )
        for step, (statement, mean) in enumerate(script.statements, 1):
            operations.append(Operation(f"{prefix}statement {step}: {statement}", latency_ms={"mean": mean}))
    return operations


def _workload(summary: dict[str, str], asked_s: float) -> dict[str, Any]:
    workload: dict[str, Any] = {"script": summary.get("transaction type"), "query_mode": summary.get("query mode")}
    workload |= {word: _number(summary.get(key)) for key, word in _WHOLE_KEYS.items()}
    limit = next((key for key in summary if key.startswith("number of transactions above")), "")
    workload |= {"duration_s": asked_s, "latency_limit_ms": _number(limit)}
    known = {key: v for key, v in workload.items() if v is not None and v == v}  # noqa: PLR0124 - leaves NaN out
    return {key: int(v) if isinstance(v, float) and v.is_integer() else v for key, v in known.items()}


def _measured(latency: dict[str, float]) -> dict[str, float]:
    return {statistic: value for statistic, value in latency.items() if not np.isnan(value)}


def _load_result(lines: list[str], name: str) -> Result | None:
    """The result of ``pgbench -i``: rows loaded, and how long each step took."""
    rows, seconds, total_rows = NAN, NAN, NAN
    steps: list[Operation] = []
    duration = NAN
    for line in lines:
        loaded = _LOADED.match(line)
        done = _LOAD_DONE.match(line)
        if loaded:
            rows, total_rows, seconds = float(loaded[1]), float(loaded[2]), _number(loaded[3])
        elif done and not np.isnan(rows):
            duration = _number(done[1])
            for step, text in _STEP.findall(done[2] or ""):
                steps.append(Operation(step.strip(" ,"), latency_ms={"total": _number(text) * 1000}))
    if np.isnan(rows):
        return None
    row = Operation("row", per_s=rows / seconds if seconds > 0 else NAN, count=rows)
    scale = total_rows / ROWS_PER_SCALE
    return Result(META.tool, "initialise", (row, *steps), duration, workload={"scale": scale}, source=name)
