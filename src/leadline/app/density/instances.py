"""The instances of a density run: where each works, and their processes, started together and ended together.

Each instance is a process of fio with a place and a histogram of its own. What is made in a folder lies in a folder of
ours with a lock: a killed run leaves one whose lock can be taken.
"""

from __future__ import annotations

import contextlib
import os
import secrets
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import IO, Any, TypeVar

from leadline.app.density.model import Instance, Second
from leadline.app.measure.honouring import broken_or_none
from leadline.app.measure.recording import recording
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.workload import Workload
from leadline.core.system.cgroups import NOT_ENTERED, ControlGroup, Groups
from leadline.core.system.following import ToolCommand, started
from leadline.core.system.locks import lock_file
from leadline.core.system.opened import Targets
from leadline.core.system.processes import GRACE_S, POLL_S, wait
from leadline.core.system.safety import require_space, usable_space
from leadline.formats.fio.load import last_report, loads_of
from leadline.formats.fio.results import after_ramp, bins_histogram, moment_ms
from leadline.formats.json_documents import json_documents

T = TypeVar("T")
PREFIX = "leadline-density-"
LOCK = ".leadline-density.lock"
NUMBER = "{n}"  # in a target: the number of the instance
START_S = 0.06  # Judgement: what starting one more process may put off the last
_TICK_MS_MIN = 500  # fio's report at the end covers what is left of a second
_TOO_LONG = "it did not end in time"


@dataclass(frozen=True, slots=True)
class InstanceSite:
    """Where instances work: ``kind`` is ``folder``, ``stretch`` (of one device, file or export) or ``each``.

    ``capacity`` is how many fit there, None where that is not known; ``each_bytes`` is what one needs; ``is_apart``
    whether each has namespaces of its own.
    """

    kind: str
    plan: LoadPlan
    each_bytes: int
    capacity: int | None
    is_apart: bool = False


def site_of(workload: Workload, target: Target) -> InstanceSite:
    """Where instances will work; nothing is touched.

    Raises:
        UsageError: the target may not be used.
        ToolError: not even one instance has space.
    """
    name = target.name
    if NUMBER in name:
        plan = _each_plan(workload, target, 1)
        if plan.places and next(iter(plan.places.values())).is_made:
            raise UsageError(
                name, found="paths that are not there", expected="exports or devices by number", advice="Name a folder."
            )
        return InstanceSite("each", plan, _stretch_bytes(plan), None)
    plan = fio.plan(workload, target)
    each = _stretch_bytes(plan)
    path = Path(name)
    if not target.is_address and path.is_dir():
        total = sum({place.path: place.size_bytes for place in plan.places.values()}.values())
        return InstanceSite("folder", plan, total, usable_space(name) // total)
    if target.is_address:
        return InstanceSite("stretch", plan, each, None)
    with path.open("rb") as stream:
        there = stream.seek(0, os.SEEK_END)
    return InstanceSite("stretch", plan, each, int(there // each))


def _stretch_bytes(plan: LoadPlan) -> int:
    return max(place.size_bytes for place in plan.places.values())


def _each_plan(workload: Workload, target: Target, number: int) -> LoadPlan:
    name = target.name.replace(NUMBER, str(number))
    # Naming the pattern names each of its targets.
    return fio.plan(workload, Target(name, name if target.destroy == target.name else target.destroy))


@dataclass(slots=True)
class InstancePlace:
    """One instance: its plan, and where in the target its stretch begins."""

    number: int
    plan: LoadPlan
    offset_bytes: int = 0
    group: ControlGroup | None = None

    def job(self, step: Step) -> str:
        """Its job file of a step."""
        text = fio.job_file(self.plan, step)
        return text.replace("[global]\n", f"[global]\noffset={self.offset_bytes}\n", 1) if self.offset_bytes else text


@dataclass(slots=True)
class Instances:
    """The instances made so far; `close` removes everything, safe to call twice."""

    workload: Workload
    target: Target
    site: InstanceSite
    groups: Groups | None
    places: list[InstancePlace] = field(default_factory=list)
    _base: Path | None = None
    _targets: Targets = field(default_factory=Targets)  # the folder of a folder's instances
    _lock: IO[bytes] | None = None

    def grow(self, count: int, folder: Path, say: Callable[[str], None]) -> None:
        """Make and fill what is missing up to ``count`` instances; what is there is kept.

        Raises:
            ToolError: there is no space, or filling fails.
        """
        if len(self.places) < count and not self.site.plan.read_only:
            size = (count - len(self.places)) * self.site.each_bytes
            say(f"filling {size / 2**20:,.0f} MiB of {self.target.name}")
        while len(self.places) < count:
            place = self._place(len(self.places) + 1)
            if self.groups is not None:
                place.group = limited(place.number, self.groups.make)
            self.places.append(place)
            try:
                if self.site.kind == "stretch" and not place.plan.read_only:
                    _fill_stretch(place, folder)
                else:
                    fio.prepare(place.plan, folder, lambda _: None)
            except BaseException:
                self.places.pop()
                if self.site.kind != "stretch":
                    fio.clean(place.plan)
                raise

    def _place(self, number: int) -> InstancePlace:
        if self.site.kind == "each":
            return InstancePlace(number, _each_plan(self.workload, self.target, number))
        if self.site.kind == "stretch":
            return InstancePlace(number, self.site.plan, (number - 1) * self.site.each_bytes)
        require_space(self.target.name, self.site.each_bytes)
        instance_folder = self._folder() / f"i{number:04}"
        instance_folder.mkdir(exist_ok=True)  # filling it may have failed before
        return InstancePlace(number, fio.plan(self.workload, Target(str(instance_folder))))

    def _folder(self) -> Path:
        if self._base is None:
            parent = next(iter(self.site.plan.places.values())).identity
            base = Path(self.target.name).absolute() / f"{PREFIX}{secrets.token_hex(4)}"
            self._targets.make_folder(str(base), "instances", parent)
            self._base = base
            self._lock = (self._base / LOCK).open("wb")
            lock_file(self._lock)
        return self._base

    def measure(self, count: int, step: Step, warm_up_s: float, folder: Path) -> InstancesMeasured:
        """One round of the first ``count``: see `measure`."""
        return measure(self.places[:count], step, warm_up_s, folder)

    def recording(self, count: int, folder: Path) -> AbstractContextManager[list[str]]:
        """What is recorded while they are loaded: this machine."""
        del count
        return recording({"linux": ""}, folder)

    def close(self) -> list[Path]:
        """Remove what was made; returns what could not be removed."""
        left = [] if self.groups is None else self.groups.remove()
        for place in self.places:
            fio.clean(place.plan)
        left += map(Path, self._targets.close())
        self._base = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None
        return left


def limited(number: int, setting: Callable[[int], T]) -> T:
    """What ``setting`` gives of the control group of an instance.

    Raises:
        ToolError: the kernel refuses it.
    """
    try:
        return setting(number)
    except OSError as error:
        raise ToolError(
            f"control group of instance {number}",
            found=str(error),
            expected="limits the kernel takes",
            advice="Leave out --cpus, --memory or --iops.",
        ) from error


def left_behind(parent: Path) -> list[Path]:
    """Folders of killed runs: ours by name and lock, and nobody holds the lock."""
    folders = []
    for folder in sorted(parent.glob(f"{PREFIX}*")) if parent.is_dir() else []:
        with contextlib.suppress(OSError), (folder / LOCK).open("rb") as lock:
            lock_file(lock)
            folders.append(folder)
    return folders


def offered_per_s(workload: Workload) -> float:
    """Operations per second one instance asks for, as fio is told them; NaN for a closed loop or with bursts."""
    return sum(fio.offered_per_s(stream) for stream in workload.io)


def _fill_stretch(place: InstancePlace, folder: Path) -> None:
    """Fill one stretch with random data of the share that can be compressed or deduplicated as the workload says."""
    plan = place.plan
    whole = replace(next(iter(plan.places.values())), size_bytes=_stretch_bytes(plan))
    one_stream = plan.workload.model_copy(update={"io": plan.workload.io[:1]})
    # One sequential writer over the stretch; what else the workload says of its contents stays in [global].
    stream = one_stream.io[0].model_copy(
        update={
            **{"read_pct": 0.0, "random_pct": 0.0, "oio": 8, "jobs": 1, "block": {1024**2: 100.0}},
            **{"rate_iops": None, "burst": None, "request_burst": None, "think_time_s": 0.0, "sync_every": 0},
        }
    )
    filler = replace(plan, workload=one_stream.model_copy(update={"io": (stream,)}), places={stream.name: whole})
    text = InstancePlace(place.number, filler, place.offset_bytes).job(Step("fill", 1.0, place.number))
    text = "\n".join(line for line in text.splitlines() if not line.startswith(("time_based", "runtime", "verify")))
    job, talk = folder / "fill.fio", folder / "fill.txt"
    job.write_text(f"{text}\nend_fsync=1\n", encoding="utf-8")
    fio.reach(plan)
    with started(ToolCommand(["fio", str(job.absolute())], talk, targets=plan.targets)) as (process, look):
        wait(process, float("inf"), look)
        if process.returncode:
            raise _failed(f"instance {place.number}", talk)
    plan.targets.require_linked()


@dataclass(frozen=True, slots=True)
class InstancesMeasured:
    """One round of all instances: what each did in the seconds in which all of them ran."""

    seconds: tuple[tuple[Second, ...], ...]
    results: tuple[tuple[Result, ...], ...]
    errors: dict[int, str]
    commands: tuple[tuple[str, ...], ...]


def measure(places: Sequence[InstancePlace], step: Step, warm_up_s: float, folder: Path) -> InstancesMeasured:
    """One round; seconds of the warm-up, and those in which some instance did not run yet or any more, do not count.

    Raises:
        ToolError: fio is missing.
        KeyboardInterrupt: passed on after every process was ended.
    """
    length = warm_up_s + step.duration_s + 1.0 + START_S * len(places)
    late_s = max((fio.late_s(place.plan.workload) for place in places), default=fio.LATE_S)
    reports: dict[int, Path] = {}
    errors: dict[int, str] = {}
    commands = []
    with ExitStack() as stack:
        live: list[tuple[InstancePlace, Path, subprocess.Popen[bytes]]] = []
        looks: list[Callable[[], None]] = []
        try:
            for place in places:
                base = folder / f"i{place.number:04}-{step.label}"
                job, report, talk = (base.with_name(f"{base.name}.{end}") for end in ("fio", "json", "txt"))
                instance_step = Step(step.label, length, step.seed + place.number)
                job.write_text(place.job(instance_step), encoding="utf-8")
                words = [*fio.REPORTING, f"--output={report.absolute()}"]
                words += [*(["--readonly"] if place.plan.read_only else []), str(job.absolute())]
                commands.append(tuple(words))
                reports[place.number] = report
                entered = words if place.group is None else place.group.enter(words)
                fio.reach(place.plan)
                process, look = stack.enter_context(started(ToolCommand(entered, talk, targets=place.plan.targets)))
                live.append((place, talk, process))
                looks.append(look)
            followed = [(place, talk, process) for place, talk, process in live]
            errors |= wait_for(followed, length + late_s + START_S * len(places), looks)
        finally:
            _end_together([process for *_, process in live])
    for place in places:
        place.plan.targets.require_linked()
    return collected(
        places, {n: InstanceReport(path) for n, path in reports.items()}, errors, warm_up_s, tuple(commands)
    )


@dataclass(frozen=True, slots=True)
class InstanceReport:
    """What an instance's fio wrote, and by how much the clock it was written by is ahead of this machine's."""

    path: Path
    ahead_s: float = 0.0


def collected(
    places: Sequence[InstancePlace],
    reports: Mapping[int, InstanceReport],
    errors: dict[int, str],
    warm_up_s: float,
    commands: tuple[tuple[str, ...], ...],
) -> InstancesMeasured:
    """One round of the reports of all instances, by number; what is missing is added to ``errors``."""
    snapshots = {}
    for number, report in reports.items():
        try:
            snapshots[number] = _snapshots(report)
        except LeadlineError as error:
            errors.setdefault(number, f"its report: {error.found}")
        if len(snapshots.get(number, ())) < 2:
            errors.setdefault(number, "it measured nothing")
            continue
        place = next(instance_place for instance_place in places if instance_place.number == number)
        last = last_report(report.path)
        broken = broken_or_none(place.plan.workload, () if last is None else loads_of(last))
        if broken is not None:
            errors.setdefault(number, f"another load ran: {broken}")
    return _common(places, snapshots, errors, warm_up_s, commands)


def wait_for(
    live: Sequence[tuple[InstancePlace, Path, fio.Process]], seconds: float, looks: Sequence[Callable[[], None]] = ()
) -> dict[int, str]:
    """Until all have ended or one has failed: why, by number; ``looks`` are called meanwhile, again and again."""
    deadline = time.monotonic() + seconds
    while True:
        for look in looks:
            look()
        states = [(place, talk, process.poll()) for place, talk, process in live]
        failed = {place.number: _failure_text(talk, code) for place, talk, code in states if code}
        if failed or all(code == 0 for *_, code in states):
            return failed
        if time.monotonic() > deadline:
            return {place.number: _TOO_LONG for place, _, code in states if code is None}
        time.sleep(POLL_S)


def _end_together(processes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Ask all to end at once, and kill those that have not within a second: one after the other would take n."""
    for number, patience_s in ((signal.SIGINT, GRACE_S), (signal.SIGKILL, 0.0)):
        alive = [process for process in processes if process.poll() is None]
        for process in alive:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, number)
        deadline = time.monotonic() + patience_s
        for process in alive:
            wait(process, max(deadline - time.monotonic(), 0.0))


@dataclass(frozen=True, slots=True)
class _Count:
    """What one stream did in one direction until a moment."""

    count: float
    size_bytes: float
    mean_ms: float
    histogram: Histogram | None


_Snapshot = tuple[int, dict[tuple[str, str], _Count]]


def _snapshots(report: InstanceReport) -> list[_Snapshot]:
    """The reports fio appended about once a second: ms since 1970, and what was done until then."""
    text = report.path.read_text(encoding="utf-8", errors="replace")
    values = [document.value for document in json_documents(text, report.path.name).documents]
    reports = after_ramp([value for value in values if isinstance(value, dict) and "jobs" in value])
    ahead_ms = round(report.ahead_s * 1000.0)
    return [(moment_ms(value, reports[0]) - ahead_ms, _counts(value["jobs"])) for value in reports]


def _counts(jobs: Sequence[dict[str, Any]]) -> dict[tuple[str, str], _Count]:
    counts = {}
    for job in jobs:
        for way in ("read", "write"):
            way_report, latency = job[way], job[way].get("clat_ns", {})
            histogram = bins_histogram(latency.get("bins", {}), "ns")
            mean = float(latency.get("mean", 0.0)) / 1e6
            counts[job["jobname"], way] = _Count(
                float(way_report["total_ios"]), float(way_report["io_bytes"]), mean, histogram
            )
    return counts


def _common(
    places: Sequence[InstancePlace],
    snapshots: dict[int, list[_Snapshot]],
    errors: dict[int, str],
    warm_up_s: float,
    commands: tuple[tuple[str, ...], ...],
) -> InstancesMeasured:
    """What each did between the start of the last, with the warm-up after it, and the end of the first."""
    good = {number: reports for number, reports in snapshots.items() if number not in errors}
    start = max((reports[0][0] for reports in good.values()), default=0) + max(warm_up_s - 1.0, 0.0) * 1000.0
    end = min((reports[-1][0] for reports in good.values()), default=0)
    seconds, results = [], []
    for place in places:
        inside = [s for s in good.get(place.number, ()) if start <= s[0] <= end]
        pairs = [(a, b) for a, b in pairwise(inside) if b[0] - a[0] >= _TICK_MS_MIN]
        seconds.append(tuple(_second(a, b) for a, b in pairs))
        results.append(_results(place.number, inside) if len(inside) > 1 else ())
    return InstancesMeasured(tuple(seconds), tuple(results), errors, commands)


def _second(before: _Snapshot, after: _Snapshot) -> Second:
    passed = (after[0] - before[0]) / 1000.0
    count = sum(now.count - before[1][key].count for key, now in after[1].items())
    parts = [h for key, now in after[1].items() if (h := _newer(now.histogram, before[1][key].histogram)) is not None]
    return Second(count / passed, Histogram.merged(parts) if parts else None)


def _newer(now: Histogram | None, before: Histogram | None) -> Histogram | None:
    newer = now if now is None or before is None else now.minus(before)
    return None if newer is None or not newer.total else newer


def _results(number: int, inside: Sequence[_Snapshot]) -> tuple[Result, ...]:
    """The instance's streams as results: what they did within the common seconds."""
    first, last = inside[0], inside[-1]
    passed = (last[0] - first[0]) / 1000.0
    by_job: dict[str, list[Operation]] = {}
    for (job, way), now in last[1].items():
        before = first[1][job, way]
        count = now.count - before.count
        if count <= 0:
            continue
        mean = (now.count * now.mean_ms - before.count * before.mean_ms) / count
        size = now.size_bytes - before.size_bytes
        histogram = _newer(now.histogram, before.histogram)
        operation = Operation(way, count / passed, size / passed, count, {"mean": mean}, histogram)
        by_job.setdefault(job, []).append(operation)
    return tuple(
        Result("fio", f"i{number:04} {job}", tuple(operations), duration_s=passed, start_ns=first[0] * 1_000_000)
        for job, operations in by_job.items()
    )


def bytes_per_s(results: Sequence[Result]) -> float:
    """Throughput of several results together."""
    return float(sum(operation.bytes_per_s for result in results for operation in result.operations))


def instances_of(places: Sequence[InstancePlace], rounds: Sequence[InstancesMeasured]) -> list[Instance]:
    """What each instance did over the rounds."""
    errors: dict[int, str] = {}
    for part in rounds:
        errors |= part.errors
    return [
        Instance(place.number, tuple(part.seconds[index] for part in rounds), errors.get(place.number))
        for index, place in enumerate(places)
    ]


def _failure_text(talk: Path, code: int) -> str:
    if code == NOT_ENTERED:
        return "it could not enter its control group"
    if code in (-signal.SIGKILL, 128 + signal.SIGKILL):
        return "it was killed; with a memory limit that is most often too low a limit"
    lines = [line for line in talk.read_text(errors="replace").splitlines() if line.strip()] if talk.exists() else []
    error_line = next((line for line in lines if "err" in line.lower() or "fio:" in line), lines[-1] if lines else "")
    return f"fio failed: {error_line[:160]}" if error_line else f"fio ended with {code}"


def _failed(where: str, talk: Path) -> ToolError:
    return ToolError(
        where, found=_failure_text(talk, 1), expected="a target that can be filled", advice="Look at its size."
    )
