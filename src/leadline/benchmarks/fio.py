"""I/O load by fio: every stream of a workload is a job, every latency is kept in fio's own buckets.

Measures:
    Operations, throughput and the latency of each request from submission to completion, per stream and direction, on
    files, block devices, NBD exports and DAX devices. Rates are offered whatever the device does (``rate_iops`` with
    Poisson arrivals), bursts pause between (``thinktime``).

Does not:
    Know what lies between fio and the medium: with ``buffered: true`` it is mostly the page cache. Latencies are those
    of the completion queue being looked at, not of the device.

Warm-up and stopping:
    Files are filled with random data first, so that no layer can answer from holes. The warm-up is a run of its own,
    ended when the operations per second are steady; every round is a run of its own with its own seed.

Misleads when:
    The working set fits a cache that production's does not. fio needs the CPU: at hundreds of thousands of operations
    per second on few cores it measures itself. With ``oio`` above 1 and the engines psync and mmap, jobs are multiplied
    instead.

Sources:
    fio HOWTO: ioengine, iodepth, rwmixread, percentage_random, bssplit, rate_iops, rate_process, thinktime_iotime,
    buffer_compress_percentage, dedupe_percentage, status-interval, JSON+ output.
"""

from __future__ import annotations

import json
import signal
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol

from leadline.core.benchmark import BenchmarkMeta, Measured, Place, Plan, Said, Step, Target, Tick, Watch
from leadline.core.errors import ToolError, UsageError
from leadline.core.histogram import Histogram
from leadline.core.kernel import io_uring_usable
from leadline.core.processes import POLL_S, running, wait
from leadline.core.safety import require_named, require_space, usable_size
from leadline.core.tools import TOOLS, examine
from leadline.core.workload import Stream, Workload
from leadline.formats.fio import bins_histogram, moment_ms

META = BenchmarkMeta(program="fio", kind="io")

ALIGN = 1024**2
LATE_S = 30.0  # Judgement: how long fio may take to end and write its report after its time is over
_SPECIAL = {"nbd": "nbd", "nbd+unix": "nbd", "rbd": "rbd", "dax": "dev-dax", "pmem": "libpmem"}
_ONE_AT_A_TIME = ("psync", "mmap")
_ARRIVALS = {"poisson": "poisson", "even": "linear"}
_FAILED = "fio failed"


def plan(workload: Workload, target: Target) -> Plan:
    """Where each stream works; files are made in folders, other targets must be named to be overwritten.

    Raises:
        UsageError: the target holds data nobody named, is mounted, or does not exist.
        ToolError: there is not enough space.
    """
    # Only what is there can be read without being filled; a folder or a new file holds nothing yet.
    there = "://" in target.name or (Path(target.name).exists() and not Path(target.name).is_dir())
    read_only = there and all(stream.read_pct == 100.0 for stream in workload.io)
    places = {s.name: _place(workload, s, target, read_only=read_only) for s in workload.io}
    engine = chosen_engine(workload)
    notes = []
    if engine in _ONE_AT_A_TIME and any(stream.oio > 1 for stream in workload.io):
        notes.append(f"{engine} has one request at a time per job, so jobs are multiplied by oio")
    made: dict[str, int] = {}
    for place in places.values():
        if place.made:
            made[place.path] = place.size_bytes
    if made:
        folder = str(Path(next(iter(made))).parent)
        require_space(folder, sum(made.values()))
    return Plan(workload, target, places, tuple(notes), engine, read_only)


def chosen_engine(workload: Workload) -> str:
    """The engine asked for, else what is there.

    Raises:
        UsageError: io_uring is asked for and may not be used here.
    """
    own = workload.io_settings
    if own.engine == "io_uring" and not io_uring_usable():
        raise UsageError(
            "io_settings.engine: io_uring",
            found="a kernel, or a container, that does not allow it",
            expected="an engine there is",
            advice="Leave engine out for what is there, or take libaio.",
        )
    if own.engine != "auto":
        return own.engine
    if io_uring_usable():
        return "io_uring"
    return "psync" if own.buffered else "libaio"


def _place(workload: Workload, stream: Stream, target: Target, *, read_only: bool) -> Place:
    name = target.roles.get(stream.role or "", target.name)
    size = -(-workload.working_set_bytes(stream) // ALIGN) * ALIGN
    if "://" in name:
        if not read_only:
            require_named(name, target.destroy)
        return Place(name, size, made=False)
    path = Path(name).absolute()  # fio runs in a folder of its own
    if path.is_dir():
        return Place(str(path / f"leadline-bench-{stream.name}.dat"), size, made=True)
    if not path.exists():
        if not path.parent.is_dir():
            raise UsageError(name, found="no such folder", expected="a folder, file or device", advice="Make it first.")
        return Place(str(path), size, made=True)
    there, is_device = usable_size(path, target.destroy, writes=not read_only)
    if there < ALIGN:
        raise UsageError(name, found=f"{there} bytes", expected="at least 1 MiB", advice="Name a larger target.")
    return Place(str(path), min(size, there // ALIGN * ALIGN), made=False, is_device=is_device)


def prepare(plan: Plan, folder: Path, say: Said) -> None:
    """Fill every place with random data, of the share that can be compressed or deduplicated as the workload says.

    Raises:
        ToolError: fio is missing or fails.
    """
    if plan.read_only:
        return
    for place in {place.path: place for place in plan.places.values()}.values():
        say(f"filling {place.path} with {place.size_bytes / 2**30:.2f} GiB of random data")
        output = folder / "fill.txt"
        with running(fill_words(plan, place), output=output, folder=folder) as process:
            wait(process, float("inf"))
            if process.returncode:
                raise failed(output, place.path)


def fill_words(plan: Plan, place: Place) -> list[str]:
    """The command that fills a place."""
    own = plan.workload.io_settings
    words = ["fio", "--name=fill", "--rw=write", "--bs=1m", "--iodepth=8", "--end_fsync=1", "--refill_buffers=1"]
    engine = _engine(plan, place)
    words += [f"--ioengine={'psync' if engine == 'mmap' else engine}", "--direct=1", f"--size={place.size_bytes}"]
    return [*words, _name_option(place), *_contents(own.compress_pct, own.dedupe_pct)]


def _contents(compress_pct: float, dedupe_pct: float) -> list[str]:
    words = []
    if compress_pct:
        words.append(f"--buffer_compress_percentage={compress_pct:.0f}")
    if dedupe_pct:
        words.append(f"--dedupe_percentage={dedupe_pct:.0f}")
    return words


def measure(plan: Plan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of fio with a job per stream.

    Raises:
        ToolError: fio is missing or fails.
    """
    job, report, talk = (folder / f"{step.label}.{end}" for end in ("fio", "json", "txt"))
    job.write_text(job_file(plan, step), encoding="utf-8")
    report.unlink(missing_ok=True)  # what an earlier step of that name left would be read before fio replaces it
    words = ["fio", "--output-format=json+", "--status-interval=1", f"--output={report}", str(job)]
    with running(words, output=talk, folder=folder) as process:
        ticks, ended_early = followed(process, report, step, watch, talk)
    version = examine(next(tool for tool in TOOLS if tool.name == "fio")).version
    return Measured((report,), tuple(ticks), (tuple(words),), version, ended_early)


class Process(Protocol):
    """What is asked of a running fio, wherever it runs."""

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""

    def send_signal(self, sig: int, /) -> None:
        """Send it a signal."""


def followed(process: Process, report: Path, step: Step, watch: Watch, talk: Path) -> tuple[list[Tick], bool]:
    """The seconds of a step as fio reports them, and whether ``watch`` ended it before its time.

    Raises:
        ToolError: it fails, or does not end in time; ``talk`` holds what it said.
    """
    ticks: list[Tick] = []
    ended_early = False
    reader = _Reports(report)
    deadline = time.monotonic() + step.duration_s + LATE_S
    while process.poll() is None:
        time.sleep(POLL_S)
        for tick in reader.ticks():
            ticks.append(tick)
            if not watch(tick) and not ended_early:
                ended_early = True
                process.send_signal(signal.SIGINT)
        if time.monotonic() > deadline:
            raise failed(talk, "it did not end in time")
    ticks += reader.ticks()
    status = process.poll()
    if status and not ended_early:
        raise failed(talk, f"exit status {status}")
    return ticks, ended_early


def clean(plan: Plan) -> None:
    """Remove the files that were made."""
    for place in plan.places.values():
        if place.made:
            Path(place.path).unlink(missing_ok=True)


def job_file(plan: Plan, step: Step) -> str:
    """The job file of a step, as fio reads it."""
    own = plan.workload.io_settings
    common = {
        "direct": int(not own.buffered),
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
    common |= dict(word.lstrip("-").split("=", 1) for word in _contents(own.compress_pct, own.dedupe_pct))
    if own.verify:
        common |= {"verify": "crc32c", "verify_fatal": 1, "norandommap": 0}
    lines = ["[global]", *(f"{key}={value}" for key, value in common.items())]
    for stream in plan.workload.io:
        place = plan.places[stream.name]
        engine = _engine(plan, place)
        if own.engine == "auto":
            engine = _keeps_depth(engine, stream, buffered=own.buffered)
        options = _stream_options(stream, replace(place), engine)
        lines += ["", f"[{stream.name}]", "new_group=1", _name_option(place).lstrip("-")]
        lines += [f"{key}={value}" for key, value in options.items()]
    return "\n".join([*lines, ""])


def _keeps_depth(engine: str, stream: Stream, *, buffered: bool) -> str:
    """The engine that keeps as many requests in flight as asked.

    fio 3.33 makes an io_uring as long as the next power of two and keeps 114 in flight at ``iodepth=100``, 122 at 116
    (rate times mean latency on a disk held at 200/s); libaio keeps 99.9 and 115.9.
    """
    exact = stream.oio & (stream.oio - 1) == 0
    return "libaio" if engine == "io_uring" and not exact and not buffered else engine


def _stream_options(stream: Stream, place: Place, engine: str) -> dict[str, Any]:
    mixed, random = 0.0 < stream.read_pct < 100.0, stream.random_pct > 0.0
    ways = "rw" if mixed else "read" if stream.read_pct == 100.0 else "write"
    jobs, depth = stream.jobs, stream.oio
    if engine in _ONE_AT_A_TIME:
        jobs, depth = stream.jobs * stream.oio, 1
    options: dict[str, Any] = {
        "ioengine": engine,
        "rw": f"rand{ways}" if random else ways,
        "iodepth": depth,
        "numjobs": jobs,
        "size": place.size_bytes,
    }
    if mixed:
        options["rwmixread"] = f"{stream.read_pct:.0f}"
    if random and stream.random_pct < 100.0:
        options["percentage_random"] = f"{stream.random_pct:.0f}"
    if len(stream.block) == 1:
        options["bs"] = next(iter(stream.block))
    else:
        options["bssplit"] = ":".join(f"{size}/{share}" for size, share in _whole_percents(stream.block).items())
    if stream.rate_iops is not None:
        # fio keeps a rate in bytes of the smallest size; but for Poisson arrivals it waits for the bytes really done.
        size = stream.mean_block_bytes / min(stream.block) if stream.arrivals == "even" else 1.0
        rates = (stream.rate_iops.read, stream.rate_iops.write)
        each = [max(round(rate / jobs * size), 1) if rate > 0 else 0 for rate in rates]
        options |= {"rate_iops": ",".join(map(str, each)), "rate_process": _ARRIVALS[stream.arrivals]}
    if stream.burst is not None:
        options |= {"thinktime": f"{stream.burst.off_s}s", "thinktime_iotime": f"{stream.burst.on_s}s"}
    elif stream.think_time_s:
        options["thinktime"] = f"{round(stream.think_time_s * 1e6)}us"
    if stream.sync_every:
        options["fdatasync"] = stream.sync_every
    return options


def _whole_percents(shares: dict[int, float]) -> dict[int, int]:
    """Shares as the whole percents fio takes, 100 in all; what was more than nothing is at least 1."""
    total = sum(shares.values())
    exact = {size: share * 100.0 / total for size, share in shares.items()}
    whole = {size: max(int(share), 1) for size, share in exact.items()}
    by_remainder = sorted(exact, key=lambda size: whole[size] - exact[size])
    for index in range(max(100 - sum(whole.values()), 0)):
        whole[by_remainder[index % len(by_remainder)]] += 1
    while sum(whole.values()) > 100 and max(whole.values()) > 1:
        whole[max(whole, key=lambda size: whole[size] - exact[size] if whole[size] > 1 else -101.0)] -= 1
    return whole


def _engine(plan: Plan, place: Place) -> str:
    scheme, mark, _ = place.path.partition("://")
    if mark:
        if scheme not in _SPECIAL:
            raise UsageError(
                place.path,
                found=f"a target of kind {scheme}",
                expected=f"one of {', '.join(_SPECIAL)}, or a path",
                advice="For example nbd://127.0.0.1:10809/disk",
            )
        return _SPECIAL[scheme]
    return plan.engine


def _name_option(place: Place) -> str:
    scheme, mark, rest = place.path.partition("://")
    if scheme.startswith("nbd"):
        return f"--uri={place.path}"
    if scheme == "rbd":
        return f"--rbdname={rest}"
    return f"--filename={(rest if mark else place.path).replace(':', chr(92) + ':')}"


def failed(talk: Path, where: str) -> ToolError:
    """That fio failed, and what it said."""
    lines = [line for line in talk.read_text(errors="replace").splitlines() if line.strip()] if talk.exists() else []
    said = next((line for line in lines if "err" in line.lower() or "fio:" in line), lines[-1] if lines else "nothing")
    return ToolError(
        where, found=f"{_FAILED}: {said[:160]}", expected="a whole run", advice="Look at the target and at free space."
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
        self._first_ms: int | None = None

    def ticks(self) -> Iterator[Tick]:
        """What was added since the last call."""
        for document in self._documents():
            self._first = document if self._first is None else self._first
            stamp = moment_ms(document, self._first)
            count, size, parts = 0.0, 0.0, []
            for job in document["jobs"]:
                for way in ("read", "write"):
                    own = job[way]
                    count, size = count + own["total_ios"], size + own["io_bytes"]
                    found = bins_histogram(own.get("clat_ns", {}).get("bins", {}), "ns")
                    if found is not None:
                        parts.append(found)
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
