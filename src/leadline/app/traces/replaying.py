"""Use case: a trace replayed by fio, and how like the original the replay was.

fio replays an iolog in one thread: it issues a request, waits for it, sleeps until the next. So the trace is dealt out
to lanes in turn, each a job with an iolog of its own, and the more lanes there are, the less a slow request delays the
next. fio's log tells the time of a request to a millisecond; the original is compared no finer.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from leadline._core import CoreError, TraceProfile, trace_write_lanes
from leadline.app.traces.punctuality import Punctuality, punctuality
from leadline.app.traces.tracing import DiskTrace
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.system.direct_io import takes_direct_io
from leadline.core.system.following import ToolCommand, started
from leadline.core.system.opened import Identity, Targets, printable
from leadline.core.system.processes import POLL_S, wait
from leadline.core.system.safety import refuse_mounted, require_space, require_usable, usable
from leadline.formats.traces import (
    SAMPLE_KEYS,
    Step,
    TraceFiles,
    as_input_error,
    bytes_step,
    choose_disk,
    find_traces,
    read_trace,
)

LANES = 64  # Judgement: 64 requests under way are more than a disk's trace has, nearly always
LANES_MAX = 1024
LINK = "t0"  # the target, as fio knows it
ALIGN = 1024**2
SIZE_DEFAULT = 1024**3
SPEED_MAX = 10_000
SPEED_FACTOR_MAX = 20.0  # Judgement: a plain number above it is a percentage, more likely than a factor
_SPEED = re.compile(r"(\d{1,6}(?:\.\d{1,6})?)([x%]?)")
SECTOR_BYTES = 512
LATE_S = 120.0  # Judgement: how much longer than the trace a replay may take before it is ended
# What the replay decides itself; the others are the target's answer.
LOAD = ("size", "seek distance", "interarrival", "read share", "sequential share", "burstiness")
COMPARED = (*LOAD, "latency", "outstanding")
FAITHFUL, CLOSE = 0.05, 0.15  # Judgement: largest differences of cumulative shares that are called so

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class ReplayAsk:
    """What the user wants: target, the very same again if its data may go, speed, how much, how many at a time.

    ``mapping`` says how offsets of a larger disk become offsets of the target.
    """

    target: str
    destroy: str | None = None
    disk: str | None = None
    speed_pct: int = 100
    flat_out: bool = False
    seconds: float | None = None
    size_bytes: int | None = None
    lanes: int = LANES
    mapping: Literal["wrap", "scale"] = "wrap"


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay will do, before anything is touched."""

    ask: ReplayAsk
    files: TraceFiles
    disk: DiskTrace
    disk_index: int
    path: str
    size_bytes: int
    is_made: bool  # a file of our own, filled first and removed again
    read_only: bool
    direct: bool
    unit_bytes: int
    identity: Identity  # of the target, or of the folder it is made in

    @property
    def expected_s(self) -> float:
        """How long the trace is at the speed asked for; NaN when it has no times or they are not kept."""
        if self.ask.flat_out:
            return float("nan")
        whole = min(self.disk.duration_s, self.ask.seconds or float("inf"))
        return whole * 100.0 / self.ask.speed_pct

    @property
    def disk_bytes(self) -> int:
        """End of the highest byte the trace uses."""
        return int(self.disk.facts["end_bytes"])

    @property
    def is_smaller(self) -> bool:
        """Whether the trace uses more than the target has."""
        return self.disk_bytes > self.size_bytes

    @property
    def mapping_sentence(self) -> str:
        """How offsets of the trace become offsets on the target."""
        if not self.is_smaller:
            return "offsets as in the trace"
        sizes = f"the trace uses {self.disk_bytes / 2**20:,.0f} MiB, the target has {self.size_bytes / 2**20:,.0f}"
        if self.ask.mapping == "scale":
            factor = self.size_bytes / self.disk_bytes
            return f"{sizes}: offsets times {factor:.3g}, aligned to 4 KiB; lengths as in the trace"
        return f"{sizes}: offsets beyond its end wrap around to its start; lengths as in the trace"


@dataclass(frozen=True, slots=True)
class Likeness:
    """One characteristic of original and replay: 0 is alike, 1 as different as can be, NaN not compared."""

    name: str
    distance: float
    is_load: bool

    @property
    def word(self) -> str:
        """For people."""
        if self.distance != self.distance:
            return "not compared"
        return "faithful" if self.distance <= FAITHFUL else "close" if self.distance <= CLOSE else "different"


@dataclass(frozen=True, slots=True, eq=False)
class Replayed:
    """A replay beside the original, both as sent to the target and told to a millisecond."""

    plan: ReplayPlan
    original: DiskTrace
    replay: DiskTrace
    likeness: tuple[Likeness, ...]
    punctuality: Punctuality
    notes: tuple[str, ...]

    @property
    def sentence(self) -> str:
        """How far the replay can be trusted."""
        known = [part for part in self.likeness if part.is_load and part.distance == part.distance]
        if not known:
            return "Nothing could be compared."
        worst = max(known, key=lambda part: part.distance)
        share = f"{worst.name} differs most, by {worst.distance:.2f} of 1"
        word = {"faithful": "The load was that of the trace", "close": "The load was close to the trace's"}
        return f"{word.get(worst.word, 'The load was not that of the trace')}: {share}."

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        return {
            "trace": self.plan.files.name,
            "target": self.plan.path,
            "fidelity": [
                {"name": p.name, "distance": p.distance, "load": p.is_load, "word": p.word} for p in self.likeness
            ],
            "sentence": self.sentence,
            "speed_pct": self.plan.ask.speed_pct,
            "offsets": self.plan.mapping_sentence,
            "punctuality": self.punctuality.to_dict(),
            "notes": list(self.notes),
            "original": self.original.to_dict(),
            "replay": self.replay.to_dict(),
        }


def speed_pct_of(text: str) -> int:
    """Percentage of the trace's speed, as fio takes it: of a factor (2, 0.5, 50x) or of a percentage (200%).

    Raises:
        UsageError: it is neither, or a plain number that is probably a percentage.

    >>> speed_pct_of("2"), speed_pct_of("0.5"), speed_pct_of("50x"), speed_pct_of("150%")
    (200, 50, 5000, 150)
    """
    match = _SPEED.fullmatch(text.strip())
    number = float(match[1]) if match else float("nan")
    if match is None or (not match[2] and number > SPEED_FACTOR_MAX):
        raise UsageError(
            "--speed",
            found=printable(text),
            expected="times the trace's speed: 2 is twice as fast, 0.5 half as fast",
            advice=f"Write {text}% for a percentage or {text}x for a factor." if match else "Write 2, 0.5 or 150%.",
        )
    return round(number if match[2] == "%" else 100.0 * number)


def plan_replay(trace: Path | list[Path], ask: ReplayAsk, step: Step | None = None) -> ReplayPlan:
    """What a replay will do; the trace is read once to know its size and whether it writes.

    Raises:
        UsageError: the target may not be used, or an option makes no sense.
        InputError: the trace cannot be read.
        ToolError: there is not enough space.
    """
    _check(ask)
    traces, _ = find_traces([trace] if isinstance(trace, Path) else trace)
    if len(traces) > 1:
        names = ", ".join(files.name for files in traces[:4])
        raise UsageError("replay", found=f"{len(traces)} traces ({names})", expected="one", advice="Name one of them.")
    read = read_trace(traces[0], step=step)
    index, profile = choose_disk(read, ask.disk)
    disk = DiskTrace(profile)
    facts = disk.facts
    read_only = not facts["write_count"]
    path, size_bytes, is_new_file, identity = _place(ask, int(facts["end_bytes"]), read_only=read_only)
    if is_new_file:
        require_space(str(Path(path).parent), size_bytes)
    direct = _takes_direct(Path(path).parent if is_new_file else Path(path))
    return ReplayPlan(
        ask, traces[0], disk, index, path, size_bytes, is_new_file, read_only, direct, _unit(path), identity
    )


def _check(ask: ReplayAsk) -> None:
    for option, value, most, unit in (
        ("--speed", ask.speed_pct, SPEED_MAX, "%"),
        ("--lanes", ask.lanes, LANES_MAX, ""),
    ):
        if not 1 <= value <= most:
            raise UsageError(
                option, found=f"{value}{unit}", expected=f"1{unit} to {most}{unit}", advice="Choose another."
            )
    if ask.seconds is not None and not 0 < ask.seconds < float("inf"):
        raise UsageError("--seconds", found=f"{ask.seconds:g}", expected="more than 0", advice="Choose another.")


def _place(ask: ReplayAsk, end_bytes: int, *, read_only: bool) -> tuple[str, int, bool, Identity]:
    """The path that is loaded, its size, whether it is made for the purpose, and the identity of it or its folder."""
    path = require_usable(ask.target)
    wanted = -(-min(ask.size_bytes or SIZE_DEFAULT, max(end_bytes, ALIGN)) // ALIGN) * ALIGN
    if path.is_dir():
        identity = Identity.of(path.stat())
        return str(path / f"leadline-replay-{os.getpid()}.dat"), wanted, True, identity
    if stat.S_ISBLK(path.stat().st_mode):
        refuse_mounted(ask.target)
    target = usable(path, ask.destroy, writes=not read_only)
    there = target.size_bytes
    if there < ALIGN:
        raise UsageError(
            printable(ask.target), found=f"{there} bytes", expected="at least 1 MiB", advice="Name a larger target."
        )
    return str(path), min(there, ask.size_bytes or there) // ALIGN * ALIGN, False, target.identity


def _takes_direct(path: Path) -> bool:
    try:
        return takes_direct_io(path)
    except OSError as error:
        raise UsageError(
            str(path), found=str(error.strerror), expected="a target that can be opened", advice="Name another."
        ) from error


def _unit(path: str) -> int:
    """The smallest length the device below takes, in bytes."""
    existing = Path(path) if Path(path).exists() else Path(path).parent
    state = existing.stat()
    number = state.st_rdev if stat.S_ISBLK(state.st_mode) else state.st_dev
    block = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    for queue in (block / "queue", block.resolve().parent / "queue"):
        try:
            return int((queue / "logical_block_size").read_text())
        except (OSError, ValueError):
            continue
    return SECTOR_BYTES


def replay(plan: ReplayPlan, say: Say, step: Step | None = None) -> Replayed:
    """Write the iologs, make the file if there is none, run fio, compare.

    What is made is removed, whatever ends it.

    Raises:
        ToolError: fio is missing or fails.
        InputError: the trace cannot be read.
    """
    with _opened(plan, say) as targets:
        folder = targets.folder
        lanes = [folder / f"lane-{index}.iolog" for index in range(plan.ask.lanes)]
        original, notes = _write(plan, lanes, step)
        say(f"replaying {DiskTrace(original).request_count:,} requests on {printable(plan.path)}")
        used = [lane for lane in lanes if _holds_requests(lane)]
        _run(plan, targets, used)
        logs = [folder / f"replay_lat.{number}.log" for number in range(1, len(used) + 1)]
        logs = [log for log in logs if log.exists()]
        if not any(log.stat().st_size for log in logs):
            raise _failed(folder / "fio.txt", plan.path)
        again = read_trace(TraceFiles(plan.path, "fio-lat-log", tuple(logs)))
        timely = Punctuality.unknown()
        if len(logs) == len(used) and not plan.ask.flat_out:
            timely = punctuality(used, logs, plan.ask.speed_pct)
        return _compared(plan, original, again.profiles[0], timely, notes)


@contextmanager
def _opened(plan: ReplayPlan, say: Say) -> Iterator[Targets]:
    """The target, open and locked; one that was made is filled with random data, and removed in the end."""
    targets = Targets()
    try:
        if not plan.is_made:
            targets.open(plan.path, LINK, plan.identity, writes=not plan.read_only)
        else:
            targets.make(plan.path, LINK, plan.identity, plan.size_bytes)
            say(f"filling {printable(plan.path)} with {plan.size_bytes / 2**20:,.0f} MiB of random data")
            words = ["fio", "--name=fill", "--rw=write", "--bs=1m", "--ioengine=psync", f"--direct={int(plan.direct)}"]
            words += [f"--size={plan.size_bytes}", f"--filename={LINK}", "--refill_buffers=1", "--end_fsync=1"]
            load = ToolCommand([*words, "--allow_file_create=0"], targets.folder / "fill.txt", targets=targets)
            with started(load) as (process, look):
                wait(process, float("inf"), look)
                if process.returncode:
                    raise _failed(load.output, plan.path)
            targets.require_linked()
        yield targets
    finally:
        targets.close()


def _write(plan: ReplayPlan, lanes: list[Path], step: Step | None) -> tuple[TraceProfile, list[str]]:
    ask = plan.ask
    longest = None if ask.seconds is None else int(ask.seconds * 1e9)
    size = plan.disk.request_count * 48
    if size > shutil.disk_usage(lanes[0].parent).free:
        raise ToolError(
            str(lanes[0].parent), found="too little space", expected=f"{size / 2**20:,.0f} MiB", advice="Set TMPDIR."
        )
    try:
        profile, moved, aligned, too_large, repairs = trace_write_lanes(
            plan.files.native,
            lanes,
            plan.disk_index,
            LINK,
            plan.size_bytes,
            plan.disk_bytes if ask.mapping == "scale" else None,
            plan.unit_bytes if plan.direct else 1,
            ask.speed_pct,
            longest,
            SAMPLE_KEYS,
            bytes_step(plan.files, step),
        )
    except CoreError as error:
        raise as_input_error(error) from error
    notes = [f"{count:,} {message}" for _, message, count in repairs]
    if moved and ask.mapping == "scale":
        notes.append(f"{moved:,} requests were moved, as the target is smaller than the traced disk")
    elif moved:
        notes.append(f"{moved:,} requests lay beyond the target's end and were folded into it")
    if too_large:
        notes.append(f"{too_large:,} requests are larger than the target and were left out")
    if aligned:
        notes.append(f"{aligned:,} requests were widened to blocks of {plan.unit_bytes} bytes")
    if not plan.direct:
        notes.append("the target cannot be used past the page cache: latencies are those of memory, partly")
    return profile, notes


def job_file(plan: ReplayPlan, lanes: list[Path]) -> str:
    """Return the text of fio's job file, which has a job for each lane."""
    common = {
        "ioengine": "psync",
        "direct": int(plan.direct),
        "thread": 1,
        "filename": LINK,
        "replay_redirect": LINK,
        "allow_file_create": 0,
        "replay_no_stall": int(plan.ask.flat_out),
        "replay_time_scale": plan.ask.speed_pct,
        "write_lat_log": "replay",
        "log_offset": 1,
        "disable_slat": 1,
        "disable_clat": 1,
        "refill_buffers": 1,
    }
    lines = ["[global]", *(f"{key}={value}" for key, value in common.items())]
    for index, lane in enumerate(lanes):
        lines += [f"[lane-{index}]", f"read_iolog={lane.name}"]
    return "\n".join([*lines, ""])


def _run(plan: ReplayPlan, targets: Targets, used: list[Path]) -> None:
    folder = targets.folder
    (folder / "replay.fio").write_text(job_file(plan, used), encoding="utf-8")
    words = ["fio", "--output=fio.json", "--output-format=json", *(["--readonly"] if plan.read_only else [])]
    expected = plan.expected_s
    late = time.monotonic() + (10 * expected + LATE_S if np.isfinite(expected) else float("inf"))
    with started(ToolCommand([*words, "replay.fio"], folder / "fio.txt", targets=targets)) as (process, look):
        while process.poll() is None:
            time.sleep(POLL_S)
            look()
            if time.monotonic() > late:
                raise ToolError(
                    plan.path,
                    found=f"a replay that takes more than ten times the {expected:.0f} s of the trace",
                    expected="a target that keeps up",
                    advice="Replay slower with --speed, or on a faster target.",
                )
        if process.returncode:
            raise _failed(folder / "fio.json", plan.path)  # where fio's complaints go, too
    targets.require_linked()


def _holds_requests(lane: Path) -> bool:
    """Whether a lane has a line below the three of its head."""
    with lane.open("rb") as stream:
        return sum(1 for _, _ in zip(range(4), stream, strict=False)) == 4


def _failed(talk: Path, where: str) -> ToolError:
    lines = [line for line in talk.read_text(errors="replace").splitlines() if line.strip()] if talk.exists() else []
    message = next(
        (line for line in lines if "err" in line.lower() or "fio:" in line), lines[-1] if lines else "nothing"
    )
    return ToolError(
        printable(where),
        found=f"fio failed: {message.strip()[:160]}",
        expected="a whole replay",
        advice="Look at the target and its size.",
    )


def _compared(
    plan: ReplayPlan, original: TraceProfile, again: TraceProfile, timely: Punctuality, notes: list[str]
) -> Replayed:
    nan = float("nan")
    distances = {name: nan if value is None else value for name, value in original.distances(again)}
    if plan.ask.flat_out:
        distances |= {"interarrival": nan, "burstiness": nan}
        notes.append("as fast as possible: times are not compared")
    likeness = tuple(Likeness(name, distances[name], name in LOAD) for name in COMPARED)
    first, second = DiskTrace(original), DiskTrace(again)
    if first.request_count != second.request_count:
        notes.append(f"{second.request_count:,} of {first.request_count:,} requests were replayed")
    stretch = second.duration_s / first.duration_s
    if stretch > 1.02 and not plan.ask.flat_out:  # the clock of the log is good for that
        notes.append(f"the replay took {stretch:.2f} times as long: the target is slower, or too few lanes")
    return Replayed(plan, first, second, likeness, timely, tuple(notes))
