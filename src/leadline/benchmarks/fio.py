"""I/O load by fio: every stream of a workload is a job, every latency is kept in fio's own buckets.

Measures:
    Operations, throughput and the latency of each request from submission to completion, per stream and direction, on
    files, block devices, NBD exports and DAX devices. Rates are offered whatever the device does (``rate_iops`` with
    Poisson arrivals), bursts by time or by number of requests pause between (``thinktime``).

Does not:
    Know what lies between fio and the medium: with ``buffered: true`` it is mostly the page cache. Latencies are those
    of the completion queue being looked at, not of the device. Where requests went is not in its report.

Warm-up and stopping:
    Files are filled with random data first, so that no layer can answer from holes. The warm-up is a separate run,
    ended when the operations per second are steady; every round is a separate run with its own seed. fio's first
    burst is as long as a burst and a pause together, so with bursts it begins one pause before it is counted.

Misleads when:
    The working set fits a cache that production's does not. fio needs the CPU: at hundreds of thousands of operations
    per second on few cores it measures itself. With ``oio`` above 1 and psync, mmap, libpmem or dev-dax, jobs are
    multiplied instead. Jobs of a sequential stream all begin at the target's start, where a cache can answer all but
    the first.

Sources:
    fio HOWTO: ioengine, iodepth, rwmixread, percentage_random, bssplit, rate_iops, rate_process, thinktime_iotime,
    buffer_compress_percentage, dedupe_percentage, ramp_time, write_iops_log, status-interval, JSON+ output; fio 3.33,
    ``parse.c`` (``str_to_decimal``), ``backend.c`` (``handle_thinktime``, ``usec_for_io``), ``io_u.c``.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from leadline.benchmarks._fio import binding, dax
from leadline.benchmarks._fio.kernel import io_uring_usable
from leadline.benchmarks._fio.places import (
    ALIGN,
    ENGINES,
    every_way,
    named_plainly,
    place_of,
    plain_name,
    reach,
    require_plain_uri,
    require_roles_apart,
    where,
)
from leadline.benchmarks._fio.shares import arrivals_of, contents, rates_of_jobs, whole_percent, whole_percents
from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import RequestBurst, Stream, Workload
from leadline.core.system.following import ToolCommand, started
from leadline.core.system.opened import is_uri, printable, require_free
from leadline.core.system.processes import POLL_S, wait
from leadline.core.system.safety import require_space, require_usable
from leadline.core.system.tools import TOOLS, examine
from leadline.formats.fio.load import last_report, loads_of, log_step_ms, over_time_of, ticks_of
from leadline.formats.fio.results import bins_histogram, is_after_ramp, moment_ms

__all__ = ["ALIGN", "LATE_S", "META", "Process", "chosen_engine", "clean", "failed", "fill_words", "followed"]
__all__ += ["job_file", "measure", "named_plainly", "plain_name", "plan", "prepare", "reach", "where"]

META = BenchmarkMeta(program="fio", kind="io")

LATE_S = 30.0  # Judgement: how long fio may take to end and write its report after its time is over
_ONE_AT_A_TIME = ("psync", "mmap", "libpmem", dax.ENGINE)
_FAILED = "fio failed"
REPORTING = ("fio", "--output-format=json+", "--status-interval=1")
_THINK_LONG_S = 0.1  # Judgement: a tenth of a second between two reports is not seen in them
_PAUSE_S_MAX = 2147.0  # fio 3.33 keeps microseconds of a pause in 32 bits
_SIZE_OFF_PCT = 5.0  # Judgement: how far whole percents may move the mean size; what `honoured` allows
_RATE_OFF_PCT = 2.5  # Judgement: how far whole rates may be off; half of what `honoured` allows


def plan(workload: Workload, target: Target) -> LoadPlan:
    """Where each stream works; files are made in folders, other targets must be named to be overwritten.

    Raises:
        UsageError: the target holds data nobody named, is mounted, or does not exist.
        ToolError: there is not enough space.
    """
    # Only what is there can be read without being filled; a folder holds nothing yet.
    named = (target.of_role(stream.role) for stream in workload.io)
    there = all(place.is_address or not require_usable(place.name).is_dir() for place in named)
    read_only = there and all(stream.read_pct == 100.0 for stream in workload.io)
    places = named_plainly({s.name: place_of(workload, s, target, read_only=read_only) for s in workload.io})
    require_roles_apart(target, workload, places)
    engines = {place.engine or chosen_engine(workload) for place in places.values()}
    engine = engines.pop() if len(engines) == 1 else chosen_engine(workload)
    binding.require_processors(workload.io_settings)
    notes = [note for stream in workload.io for note in _checked(stream, places[stream.name], workload)]
    if engine in _ONE_AT_A_TIME and any(stream.oio > 1 for stream in workload.io):
        notes.append(f"{engine} has one request at a time per job, so jobs are multiplied by oio")
    notes += binding.node_notes(workload.io_settings, {place.path: place for place in places.values()}.values())
    new_files = {place.path: place.size_bytes for place in places.values() if place.is_made}
    if new_files:
        folder = str(Path(next(iter(new_files))).parent)
        require_space(folder, sum(new_files.values()))
    for path in new_files:
        require_free(*os.path.split(path))
    return LoadPlan(workload, target, places, tuple(notes), engine, read_only)


def _checked(stream: Stream, place: Place, workload: Workload) -> list[str]:
    """What fio rounds in a stream.

    Raises:
        UsageError: fio cannot do what the stream asks for.
    """
    _require_possible(stream, workload)
    notes = []
    for key in ("read_pct", "random_pct"):
        share = getattr(stream, key)
        if whole_percent(share) != share and not (key == "read_pct" and stream.rate_iops is not None):
            notes.append(f"stream {stream.name}: {key} is {whole_percent(share)} %, as fio takes whole percents")
    if place.size_bytes < workload.working_set_bytes(stream):
        notes.append(f"stream {stream.name}: working_set is {place.size_bytes / 2**20:,.0f} MiB, all the target has")
    return notes


def _require_possible(stream: Stream, workload: Workload) -> None:
    """Refuse a stream that fio would load otherwise than asked.

    Raises:
        UsageError: it would.
    """
    refused = _refused(stream, workload)
    if refused is not None:
        key, problem, expected, advice = refused
        raise UsageError(f"stream {stream.name}: {key}", found=problem, expected=expected, advice=advice)


def _refused(stream: Stream, workload: Workload) -> tuple[str, str, str, str] | None:
    """Return key, problem, expectation and advice where fio would not load as asked; None where it would."""
    mean = sum(size * part for size, part in whole_percents(stream.block).items()) / 100.0
    if abs(mean - stream.mean_block_bytes) > _SIZE_OFF_PCT / 100.0 * stream.mean_block_bytes:
        fault = f"shares of which fio's whole percents make {mean:,.0f} bytes on average"
        expected = f"{stream.mean_block_bytes:,.0f} bytes on average"
        return "block", fault, expected, "Put the rare size into a second stream."
    if stream.sync_every and 0.0 < stream.read_pct < 100.0:
        fault = "reads and writes in one stream, where fio flushes after reads as well"
        return "sync_every", fault, "a stream of writes", "Make two streams, one of reads and one of writes."
    if stream.sync_every and stream.oio > 1 and workload.io_settings.engine == "io_uring":
        fault = "io_uring with several requests in flight, where fio flushes more often"
        return "sync_every", fault, "another engine", "Leave engine out, or take libaio or psync."
    if workload.io_settings.verify and stream.read_pct > 0.0:
        fault = "reads, of data that was filled without checksums"
        return "verify", fault, "a stream of writes", "Make read_pct 0: what is written is read again."
    pauses = _refused_pauses(stream, workload.io_settings.engine)
    if pauses is not None:
        return pauses
    if stream.rate_iops is not None and arrivals_of(stream) == "poisson":
        if stream.sync_every:
            fault = "Poisson arrivals in a stream with sync_every, whose first flush ends fio before 3.42"
            return "arrivals", fault, "even ones, which such a stream has by itself", "Leave arrivals out."
        for rate in (stream.rate_iops.read, stream.rate_iops.write):
            if rate > 0 and abs(max(round(rate), 1) - rate) > _RATE_OFF_PCT / 100.0 * rate:
                fault = f"{rate:g} requests per second with Poisson arrivals, which fio rounds to {max(round(rate), 1)}"
                return "rate_iops", fault, "a whole number in each direction", "Change it, or take arrivals: even."
    return None


def _refused_pauses(stream: Stream, engine: str) -> tuple[str, str, str, str] | None:
    if stream.burst is not None and stream.think_time_s:
        return "burst", "a think time as well", "one of them", "Leave think_time_s out: fio pauses in one way only."
    if stream.request_burst is not None and engine in _ONE_AT_A_TIME:
        fault = f"{engine}, which has one request at a time"
        return "request_burst", fault, "an engine with many", "Leave engine out, or take io_uring or libaio."
    if max(stream.think_time_s, stream.gap_s, 0.0 if stream.burst is None else stream.burst.off_s) > _PAUSE_S_MAX:
        return "burst", "a longer pause", f"at most {_PAUSE_S_MAX:.0f} s", "Make the pause shorter."
    return None


def chosen_engine(workload: Workload) -> str:
    """The engine asked for, else what is there.

    Raises:
        UsageError: io_uring is asked for and may not be used here.
    """
    settings = workload.io_settings
    if settings.engine == "io_uring" and not io_uring_usable():
        raise UsageError(
            "io_settings.engine: io_uring",
            found="a kernel, or a container, that does not allow it",
            expected="an engine there is",
            advice="Leave engine out for what is there, or take libaio.",
        )
    if settings.engine != "auto":
        return settings.engine
    if io_uring_usable():
        return "io_uring"
    return "psync" if settings.buffered else "libaio"


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Fill every place with random data, of the share that can be compressed or deduplicated as the workload says.

    Raises:
        ToolError: fio is missing or fails.
    """
    places = {place.path: place for place in plan.places.values()}.values()
    reach(plan)
    for place in () if plan.read_only else places:
        say(f"filling {printable(place.path)} with {place.size_bytes / 2**30:.2f} GiB of random data")
        output = folder / "fill.txt"
        with started(ToolCommand(fill_words(plan, place), output, targets=plan.targets)) as (process, look):
            wait(process, float("inf"), look)
            if process.returncode:
                raise failed(output, printable(place.path))
    plan.targets.require_linked()


def fill_words(plan: LoadPlan, place: Place) -> list[str]:
    """The command that fills a place."""
    settings = plan.workload.io_settings
    words = ["fio", "--name=fill", "--rw=write", "--bs=1m", "--iodepth=8", "--end_fsync=1", "--refill_buffers=1"]
    words.append("--allow_file_create=0")
    engine = _engine(plan, place)
    is_mapped = engine == dax.ENGINE
    engine = "psync" if engine in _ONE_AT_A_TIME and not is_mapped else engine
    words += [f"--ioengine={engine}", f"--direct={int(not is_mapped)}", f"--size={place.size_bytes}"]
    return [*words, f"--{where(place)}", *contents(settings.compress_pct, settings.dedupe_pct)]


def _us(seconds: float) -> str:
    """A duration as fio reads it: whole, with its unit. fio 3.33 reads ``3.0s`` as 3 us, without a word."""
    return f"{max(round(seconds * 1e6), 1)}us"


def lead_s(workload: Workload) -> float:
    """How long a step with bursts runs before it is counted: fio's first burst is longer by a pause."""
    return max((stream.burst.off_s for stream in workload.io if stream.burst is not None), default=0.0)


def late_s(workload: Workload) -> float:
    """How long fio may take beyond a step's time: it also ends its last pause."""
    return LATE_S + 2.0 * max([lead_s(workload), *(stream.gap_s for stream in workload.io)])


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of fio with a job per stream.

    Raises:
        ToolError: fio is missing or fails.
    """
    job, report, talk = (folder / f"{step.label}.{end}" for end in ("fio", "json", "txt"))
    job.write_text(logged_job_file(plan, step), encoding="utf-8")
    report.unlink(missing_ok=True)  # what an earlier step of that name left would be read before fio replaces it
    reach(plan)
    words = [*command(plan.workload), f"--output={report.absolute()}"]
    words += [*(["--readonly"] if plan.read_only else []), str(job.absolute())]
    with started(ToolCommand(words, talk, targets=plan.targets)) as (process, look):
        patience_s = late_s(plan.workload)
        ticks, ended_early = followed(process, (report, talk), step, watch, look=look, late_s=patience_s)
    plan.targets.require_linked()
    version = examine(next(tool for tool in TOOLS if tool.name == "fio")).version
    measured = Measured((report,), tuple(ticks), (tuple(words),), version, ended_early)
    return with_loads(plan, measured, plan.targets.folder, step)


def command(workload: Workload) -> list[str]:
    """The words every run of fio begins with.

    fio reports each second, but for jobs that pause: a report waits until the pause is over, and all other jobs stop
    with it (fio 3.33: a job beside one that paused for 10 s did 178 requests in 9 s). Logs tell the seconds then.
    """
    return list(REPORTING[:-1] if _log_step_ms(workload) is not None else REPORTING)


def logged_job_file(plan: LoadPlan, step: Step, folder: str = "") -> str:
    """The job file of a step; where jobs pause fio keeps their operations over time, a line each tenth of a pause."""
    text = job_file(plan, step)
    step_ms = _log_step_ms(plan.workload)
    if step_ms is None:
        return text
    return text.replace("[global]\n", f"[global]\nwrite_iops_log={folder}{step.label}\nlog_avg_msec={step_ms}\n", 1)


def _log_step_ms(workload: Workload) -> int | None:
    """Milliseconds between two lines of the logs; None where no job pauses for long and fio keeps none."""
    phases = [s for stream in workload.io if stream.burst for s in (stream.burst.on_s, stream.burst.off_s)]
    if phases:
        return log_step_ms(min(phases))
    pauses = (max(stream.think_time_s, stream.gap_s) for stream in workload.io)
    return 1000 if any(pause >= _THINK_LONG_S for pause in pauses) else None


def with_loads(plan: LoadPlan, measured: Measured, folder: Path, step: Step) -> Measured:
    """A measured step with the load that was there; where jobs pause, its seconds come from fio's logs."""
    report = last_report(measured.files[0])
    if report is None:
        return measured
    step_ms = _log_step_ms(plan.workload)
    if step_ms is None:
        return replace(measured, loads=loads_of(report))
    threads = _threads(job_file(plan, step))
    over_time, logs = over_time_of(folder / step.label, threads, step_ms)
    loads = loads_of(report, over_time)
    for path in logs:
        path.unlink()
    return replace(measured, loads=loads, ticks=ticks_of(loads) if logs else measured.ticks)


def log_names(plan: LoadPlan, step: Step) -> list[str]:
    """The logs of a step, one of each job."""
    if _log_step_ms(plan.workload) is None:
        return []
    count = sum(jobs for _, jobs in _threads(job_file(plan, step)))
    return [f"{step.label}_iops.{number}.log" for number in range(1, count + 1)]


def _threads(text: str) -> list[tuple[str, int]]:
    """The sections of a job file, and how many jobs each has."""
    threads: list[tuple[str, int]] = []
    for line in text.splitlines():
        if line.startswith("[") and line != "[global]":
            threads.append((line[1:-1], 1))
        elif line.startswith("numjobs="):
            threads[-1] = (threads[-1][0], int(line.partition("=")[2]))
    return threads


class Process(Protocol):
    """What is asked of a running fio, wherever it runs."""

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal."""


def followed(
    process: Process,
    files: tuple[Path, Path],
    step: Step,
    watch: Watch,
    *,
    look: Callable[[], None] = lambda: None,
    late_s: float = LATE_S,
) -> tuple[list[Tick], bool]:
    """The seconds of a step as fio reports them, and whether ``watch`` ended it before its time.

    ``look`` is called all the while: it stops the run when fio has opened what it should not.

    Raises:
        ToolError: it fails, or does not end in time; ``talk`` holds what it said.
    """
    report, talk = files
    ticks: list[Tick] = []
    ended_early = False
    reader = _Reports(report)
    deadline = time.monotonic() + step.duration_s + late_s
    while process.poll() is None:
        time.sleep(POLL_S)
        look()
        for tick in reader.ticks():
            _append(ticks, tick)
            if not watch(tick) and not ended_early:
                ended_early = True
                process.send_signal(signal.SIGINT)
        if time.monotonic() > deadline:
            raise failed(talk, "it did not end in time")
    for tick in reader.ticks():
        _append(ticks, tick)
    status = process.poll()
    if status and not ended_early:
        raise failed(talk, f"exit status {status}", report)
    return ticks, ended_early


def _append(ticks: list[Tick], tick: Tick) -> None:
    """Add a second; those before fio began to count are dropped."""
    if ticks and tick.elapsed_s <= ticks[-1].elapsed_s:
        ticks.clear()
    ticks.append(tick)


def clean(plan: LoadPlan) -> None:
    """Let go of the targets and remove the files that were made."""
    plan.targets.close()


def job_file(plan: LoadPlan, step: Step) -> str:
    """The job file of a step, as fio reads it."""
    settings = plan.workload.io_settings
    common = {
        "direct": int(not settings.buffered),
        "time_based": 1,
        "runtime": f"{max(round(step.duration_s * 1000), 1)}ms",
        "group_reporting": 1,
        "randrepeat": 0,
        "randseed": step.seed,
        "norandommap": 1,
        "refill_buffers": 1,
        "thread": 1,
        "percentile_list": "50:90:95:99:99.9:99.99",
    }
    common |= dict(word.lstrip("-").split("=", 1) for word in contents(settings.compress_pct, settings.dedupe_pct))
    common |= binding.options_of(settings)
    if settings.verify:
        common |= {"verify": "crc32c", "verify_fatal": 1, "norandommap": 0}
    lines = ["[global]", *(f"{key}={value}" for key, value in common.items())]
    lead = lead_s(plan.workload)
    for stream in plan.workload.io:
        _require_possible(stream, plan.workload)  # on other machines there is no plan of this driver
        place = plan.places[stream.name]
        engine = _engine(plan, place)
        if settings.engine == "auto":
            engine = _keeps_depth(engine, stream, buffered=settings.buffered)
        ways = [[where(one), *(["allow_file_create=0"] if one.link else [])] for one in every_way(place)]
        group = ["new_group=1"]
        for options in _sections(stream, place, engine):
            for number, target in enumerate(ways):
                jobs = (options["numjobs"] + number) // len(ways)  # dealt out, all of them
                if jobs:
                    lines += ["", f"[{plain_name(stream.name)}]", *group, *target]
                    shared = {**options, "numjobs": jobs, **_begin(stream, lead)}
                    lines += [f"{key}={value}" for key, value in shared.items()]
                    group = []  # jobs whose rates or ways differ are one stream
    return "\n".join([*lines, ""])


def _begin(stream: Stream, lead: float) -> dict[str, Any]:
    """When a stream begins and when it is counted: all at the same time, bursts one pause before."""
    if not lead:
        return {}
    before = lead if stream.burst is None else stream.burst.off_s
    return {"ramp_time": _us(before)} | ({"startdelay": _us(lead - before)} if before < lead else {})


def _keeps_depth(engine: str, stream: Stream, *, buffered: bool) -> str:
    """The engine that keeps as many requests in flight as asked, and flushes as often.

    fio 3.33 makes an io_uring as long as the next power of two and keeps 114 in flight at ``iodepth=100``, 122 at 116
    (rate times mean latency on a disk held at 200/s); libaio keeps 99.9 and 115.9. With several requests in flight
    fio flushes an io_uring about twice as often as ``fdatasync`` says.
    """
    flushes = stream.sync_every > 0 and stream.oio > 1 and stream.read_pct < 100.0
    exact = stream.oio & (stream.oio - 1) == 0 and not flushes
    if engine != "io_uring" or exact:
        return engine
    return "libaio" if not buffered else "psync" if flushes else engine


def _sections(stream: Stream, place: Place, engine: str) -> list[dict[str, Any]]:
    """The options of a stream's jobs; several where their rates differ by one, as fio's are whole."""
    jobs, depth = stream.jobs, stream.oio
    if stream.request_burst is not None and engine in _ONE_AT_A_TIME:
        raise UsageError(
            f"stream {stream.name}: request_burst",
            found=f"{engine}, which has one request at a time",
            expected="an engine with many",
            advice="Take io_uring or libaio, without buffered.",
        )
    if engine in _ONE_AT_A_TIME or stream.think_time_s:  # a job that thinks waits for all it has in flight
        jobs, depth = stream.jobs * stream.oio, 1
    options = _stream_options(stream, place, engine) | {"iodepth": depth}
    return [{**options, "numjobs": count, **rates} for count, rates in rates_of_jobs(stream, jobs)]


def _stream_options(stream: Stream, place: Place, engine: str) -> dict[str, Any]:
    mixed, random = 0.0 < stream.read_pct < 100.0, stream.random_pct > 0.0
    ways = "rw" if mixed else "read" if stream.read_pct == 100.0 else "write"
    options: dict[str, Any] = {"ioengine": engine, "rw": f"rand{ways}" if random else ways, "size": place.size_bytes}
    if engine == dax.ENGINE:
        options["direct"] = 0  # its open refuses O_DIRECT, and no cache is passed by
    if mixed:
        options["rwmixread"] = whole_percent(stream.read_pct)
    if random and stream.random_pct < 100.0:
        options["percentage_random"] = whole_percent(stream.random_pct)
    if len(stream.block) == 1:
        options["bs"] = next(iter(stream.block))
    else:
        options["bssplit"] = ":".join(f"{size}/{share}" for size, share in whole_percents(stream.block).items())
    if stream.request_burst is not None:
        options |= _request_burst(stream.request_burst)
    elif stream.burst is not None:
        options |= {"thinktime": _us(stream.burst.off_s), "thinktime_iotime": _us(stream.burst.on_s)}
        if stream.rate_iops is not None:
            options["rate_ignore_thinktime"] = 1  # else fio makes up for the pause when it is over
    elif stream.think_time_s:
        options["thinktime"] = _us(stream.think_time_s)
    if stream.sync_every and stream.read_pct < 100.0:
        options["fdatasync"] = stream.sync_every
    return options


def _request_burst(burst: RequestBurst) -> dict[str, Any]:
    """The options of a burst of so many requests and a pause when all are complete.

    fio 3.33 waits for all that is in flight and then pauses. Counted when complete, which is its default, the first
    burst of 32 had 63 requests, with libaio and io_uring alike, since new ones are issued meanwhile; counted when
    issued, all bursts had 32. ``iodepth_batch`` hands them to the kernel together.
    """
    return {
        "thinktime": _us(burst.gap_s),
        "thinktime_blocks": burst.requests,
        "thinktime_blocks_type": "issue",
        "iodepth_batch": burst.requests,
    }


def offered_per_s(stream: Stream) -> float:
    """The rate in operations per second that fio is asked for; NaN for a closed loop or with bursts."""
    if stream.rate_iops is None or stream.burst is not None:
        return float("nan")
    rates = (stream.rate_iops.read, stream.rate_iops.write)
    return float(sum(rates) if stream.arrivals == "even" else sum(max(round(rate), 1) for rate in rates if rate > 0))


def _engine(plan: LoadPlan, place: Place) -> str:
    if place.engine or not is_uri(place.path):
        return place.engine or plan.engine
    require_plain_uri(place.path)
    return ENGINES[place.path.partition("://")[0]]


def failed(talk: Path, where: str, report: Path | None = None) -> ToolError:
    """Return the error of a fio that failed, with its message, which may stand before its report."""
    lines = [line for line in talk.read_text(errors="replace").splitlines() if line.strip()] if talk.exists() else []
    if not lines and report is not None and report.exists():
        lines = [line for line in report.read_text(errors="replace").splitlines() if line.startswith("fio: ")]
    cause = next((line for line in lines if "err" in line.lower() or "fio:" in line), lines[-1] if lines else "nothing")
    return ToolError(
        where, found=f"{_FAILED}: {cause[:160]}", expected="a whole run", advice="Look at the target and at free space."
    )


class _Reports:
    """The reports fio appends to its output about once a second, as what happened between them."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._text = ""
        self._position = 0
        self._decoder = json.JSONDecoder()
        self._before: tuple[int, float, float, Histogram | None] | None = None
        self._first: dict[str, Any] | None = None
        self._last: dict[str, Any] | None = None
        self._first_ms: int | None = None

    def ticks(self) -> Iterator[Tick]:
        """Yield the rates of each report since the last call."""
        for document in self._documents():
            if self._last is not None and is_after_ramp(self._last, document):
                self._before = self._first = self._first_ms = None
            self._last = document
            self._first = document if self._first is None else self._first
            stamp = moment_ms(document, self._first)
            count, size, parts = 0.0, 0.0, []
            for job in document["jobs"]:
                for way in ("read", "write"):
                    counters = job[way]
                    count, size = count + counters["total_ios"], size + counters["io_bytes"]
                    histogram = bins_histogram(counters.get("clat_ns", {}).get("bins", {}), "ns")
                    if histogram is not None:
                        parts.append(histogram)
            now = (stamp, count, size, Histogram.merged(parts) if parts else None)
            tick = self._between(now)
            self._before = now
            if tick is not None:
                yield tick

    def _between(self, now: tuple[int, float, float, Histogram | None]) -> Tick | None:
        before = self._before
        if self._first_ms is None:
            self._first_ms = now[0]
        if before is None or now[0] - before[0] < 500:  # the report at the end covers what is left of a second
            return None
        passed = (now[0] - before[0]) / 1000.0
        latency = now[3].minus(before[3]) if now[3] is not None and before[3] is not None else now[3]
        p99 = latency.quantile(0.99) if latency is not None and latency.total else float("nan")
        per_s, bytes_per_s = (now[1] - before[1]) / passed, (now[2] - before[2]) / passed
        return Tick((now[0] - self._first_ms) / 1000.0, per_s, bytes_per_s, p99)

    def _documents(self) -> Iterator[dict[str, Any]]:
        if self._path.exists():
            with self._path.open(encoding="utf-8", errors="replace") as stream:
                stream.seek(self._position)
                self._text += stream.read()
                self._position = stream.tell()
        while (begin := self._text.find("\n{" if self._text[:1] != "{" else "{")) >= 0:
            begin = self._text.index("{", begin)
            try:
                value, end = self._decoder.raw_decode(self._text, begin)
            except ValueError:
                return  # not whole yet
            self._text = self._text[end:]
            if isinstance(value, dict) and "jobs" in value:
                yield value
