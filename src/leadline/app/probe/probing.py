"""Use case: is it the disk? Watch the real workload, then pulse the disk with known load, and judge both together."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.measure.benching import driver_of
from leadline.app.measure.honouring import measured as measured_load
from leadline.app.measure.recording import recording
from leadline.app.measure.rounds import Talk
from leadline.app.probe.model import TRUE_LOAD_SHARE, Observed, ProbeVerdict, Pulse, judge
from leadline.app.read.importing import Imported, import_paths
from leadline.core.contracts.benchmark import Benchmark, LoadPlan, Step
from leadline.core.contracts.honoured import require_honoured
from leadline.core.contracts.importer import Request
from leadline.core.contracts.load_target import Target
from leadline.core.io.outputs import check_folder
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.finding import Diagnosis, Window
from leadline.core.model.result import Tick
from leadline.core.model.run import pool
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.workload import Workload

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

READ_PCT_UNKNOWN = 70.0
PAUSE_S = 2.0  # so that pulses show as humps on the time line
FACTS = "probe.json"
SAME_RATE_SHARE = 0.8  # Judgement: pulses of a minute on one disk differ by less
REACHED_SHARE = 0.5  # Judgement: of what the load tool did; the kernel counts whole seconds and joins requests
_WAYS = ("read", "write")
_UNKNOWN = (float("nan"), float("nan"))


@dataclass(frozen=True, slots=True)
class PulseShape:
    """Pulses where nothing else is asked for: size of a request, outstanding, length of each, how often they come."""

    block: str = "8k"
    outstanding: int = 32
    seconds: float = 30.0
    repeats: int = 1


ARTICLE = PulseShape("4k", 256, 90.0, 3)  # of the article: several pulses of one to two minutes within ten


@dataclass(frozen=True, slots=True)
class ProbePlan:
    """What a probe will do, before anything is touched; ``observed`` is the recording of the workload, if another."""

    target: str
    folder: Path
    observe_s: float
    pulse_s: float
    limit: float | None
    outstanding: int
    load: LoadPlan | None  # None: only observe, or judge what was recorded before
    shape: PulseShape = PulseShape()
    observed: Path | None = None


@dataclass(frozen=True, slots=True)
class Probed:
    """What a probe found; ``verdict`` is None when it only observed."""

    observed: Observed | None
    pulses: tuple[Pulse, ...]
    verdict: ProbeVerdict | None
    diagnosis: Diagnosis | None
    read_pct: float
    notes: tuple[str, ...]
    pulsed_at: tuple[Window, ...] = ()  # of the pulses, where no report of a load tool says when they were
    watched_at: Window | None = None
    disk: str | None = None  # what the pulses ran on, by the kernel's name; None where it is not known


def plan(
    target: Target,
    folder: Path,
    *,
    seconds: tuple[float, float],
    limit: float | None,
    size: str,
    shape: PulseShape,
) -> ProbePlan:
    """What a probe of a target will do; ``seconds`` are of the observation and of one pulse; a pulse of 0 s is none.

    Raises:
        UsageError: the target may not be used, or the folder holds another probe.
        ToolError: there is not enough space.
    """
    check_folder(folder, "--output")
    recorded = _recordings(folder) if folder.is_dir() else []
    if recorded:
        raise UsageError(
            f"--output {folder}",
            found=f"recordings of an earlier probe, as {recorded[0].relative_to(folder)}",
            expected="an empty or new folder, else the rounds of two probes are mixed",
            advice="Name another one: -o FOLDER",
        )
    load = None
    if seconds[1] > 0:
        workload = _workload(shape.block, shape.outstanding, READ_PCT_UNKNOWN, None, size)
        load = driver_of(workload)[1].plan(workload, target)
    return ProbePlan(target.name, folder.absolute(), seconds[0], seconds[1], limit, shape.outstanding, load, shape)


def _workload(block: str, outstanding: int, read_pct: float, rate: float | None, size: str) -> Workload:
    stream: dict[str, object] = {"name": "probe", "block": block, "read_pct": read_pct, "oio": outstanding}
    if rate is not None:
        stream |= {"rate_iops": rate, "arrivals": "even"}
    return Workload.model_validate({"name": "probe", "io": [stream], "io_settings": {"working_set": size}})


def probe(probe_plan: ProbePlan, talk: Talk, ready: Callable[[], None]) -> Probed:
    """Observe, wait until the workload is off (``ready`` returns), pulse, judge.

    Raises:
        ToolError: the load tool fails.
        KeyboardInterrupt: passed on after the load was stopped and what was made was removed.
    """
    probe_plan.folder.mkdir(parents=True, exist_ok=True)
    keep_facts(probe_plan)
    rounds = [probe_plan.folder / name for name in ("round-1", "round-2")]
    observed, notes = None, []
    read_pct = READ_PCT_UNKNOWN
    if probe_plan.observe_s > 0:
        talk.phase("round 1: watching the workload", probe_plan.observe_s)
        rounds[0].mkdir(exist_ok=True)
        with recording({"linux": ""}, rounds[0]) as recording_notes:
            time.sleep(probe_plan.observe_s)
        notes += recording_notes
        capture = import_paths([rounds[0]], Request()).capture
        observed = observe(capture, block_device_of(probe_plan.target))
        read_pct = _read_pct(capture, observed.disk) if observed is not None else read_pct
    verdict, pulses = None, []
    if probe_plan.load is not None:
        ready()
        rounds[1].mkdir(exist_ok=True)
        with recording({"linux": ""}, rounds[1]) as recording_notes:
            pulses = _pulses(probe_plan, probe_plan.load, read_pct, rounds[1], talk)
        notes += recording_notes
        hard, gentle, *rest = pulses[: 2 if probe_plan.limit is None else 3]
        notes += repeated(pulses)
        counted = import_paths([rounds[1]], Request()).capture
        unlike = unlike_rounds(observed, hard, counted, block_device_of(probe_plan.target))
        verdict = judge(observed, gentle, rest[0] if rest else None, hard, probe_plan.limit, unlike)
    disk = block_device_of(probe_plan.target)
    return Probed(observed, tuple(pulses), verdict, diagnosis_of(probe_plan.folder), read_pct, tuple(notes), disk=disk)


def diagnosis_of(folder: Path) -> Diagnosis | None:
    """What the rules say of the real workload; of the pulses, which load the disk on purpose, only without round 1."""
    watched = sorted(folder.glob("round-1/linux.txt"))
    try:
        return diagnose(import_paths(watched or _recordings(folder), Request()).capture)
    except LeadlineError:
        return None


def recorded(folder: Path) -> Imported:
    """Everything a probe recorded, both rounds on one time line.

    Raises:
        InputError: there is nothing, or it is damaged.
    """
    return import_paths(_recordings(folder), Request())


def _recordings(folder: Path) -> list[Path]:
    return sorted([*folder.glob("round-*/linux.txt"), *folder.glob("round-2/*.json")])


def _pulses(probe_plan: ProbePlan, load: LoadPlan, read_pct: float, folder: Path, talk: Talk) -> list[Pulse]:
    """As hard as possible, then at a share of the ceiling, then at the provisioned limit; the first two repeated."""
    driver = driver_of(load.workload)[1]
    size = str(load.workload.io_settings.working_set)
    try:
        talk.phase("preparing", 0.0)
        driver.prepare(load, folder, talk.note)
        pulses = [_pulse(driver, load, (probe_plan, read_pct, None, size), folder, talk)]
        ceiling = pulses[0].per_s if probe_plan.limit is None else min(pulses[0].per_s, probe_plan.limit)
        for rate in (TRUE_LOAD_SHARE * ceiling, probe_plan.limit):
            if rate is not None:
                time.sleep(PAUSE_S)
                pulses.append(_pulse(driver, load, (probe_plan, read_pct, rate, size), folder, talk))
        for number in range(2, probe_plan.shape.repeats + 1):
            for rate in (None, TRUE_LOAD_SHARE * ceiling):
                time.sleep(PAUSE_S)
                pulses.append(_pulse(driver, load, (probe_plan, read_pct, rate, size), folder, talk, number))
        return pulses
    finally:
        driver.clean(load)


def _pulse(
    driver: Benchmark,
    load: LoadPlan,
    how: tuple[ProbePlan, float, float | None, str],
    folder: Path,
    talk: Talk,
    number: int = 1,
) -> Pulse:
    probe_plan, read_pct, rate, size = how
    name = "as hard as possible" if rate is None else f"{rate:,.0f} per second"
    talk.phase(f"round 2: {name}", probe_plan.pulse_s)
    workload = _workload(probe_plan.shape.block, probe_plan.outstanding, read_pct, rate, size)
    label = "hard" if rate is None else f"rate-{rate:.0f}"
    label = label if number == 1 else f"{label}-{number}"

    def watch(tick: Tick) -> bool:
        talk.tick(tick)
        return True

    step, paced_load = Step(label, probe_plan.pulse_s, 1), replace(load, workload=workload)
    measured, checks = measured_load(
        workload, probe_plan.pulse_s, lambda: driver.measure(paced_load, step, folder, watch)
    )
    require_honoured(workload, checks)
    pulse = pulse_of(import_paths(list(measured.files), Request()).capture, rate, probe_plan.outstanding)
    if pulse is None:
        raise ToolError(
            str(measured.files[0]), found="no result", expected="a pulse of some seconds", advice="Try longer pulses."
        )
    return pulse


def pulse_of(capture: Capture, offered: float | None, outstanding: int) -> Pulse | None:
    """What the load tool's report of one pulse says; None when it did nothing for some seconds."""
    operations = [o for result in capture.results for o in result.operations if o.name in ("read", "write")]
    line = pulse_line(capture)
    if not operations or line is None:
        return None
    whole = pool("probe", operations)
    per_s, reads = (sum(o.per_s for o in operations if o.name in names) for names in (("read", "write"), ("read",)))
    seconds = line[1][np.isfinite(line[1])]
    cv = 100.0 * float(seconds.std()) / float(seconds.mean()) if len(seconds) and seconds.mean() > 0 else float("nan")
    p99 = float("nan") if whole.histogram is None else whole.histogram.quantile(0.99)
    size = sum(o.bytes_per_s for o in operations) / per_s if per_s > 0 else float("nan")
    read_pct = 100.0 * reads / per_s if per_s > 0 else float("nan")
    return Pulse(offered, per_s, whole.mean_ms, p99, cv, outstanding, size, read_pct)


def repeated(pulses: Sequence[Pulse]) -> list[str]:
    """A note where a disk that was pulsed as hard as possible again and again did not do the same each time."""
    rates = [pulse.per_s for pulse in pulses if pulse.offered_per_s is None]
    if len(rates) < 2 or min(rates) >= SAME_RATE_SHARE * max(rates):
        return []
    text = ", ".join(f"{rate:,.0f}" for rate in rates)
    return [f"as hard as possible the disk did {text} per second: it is not the same each time"]


def unlike_rounds(observed: Observed | None, hard: Pulse, pulsed: Capture, disk: str | None) -> tuple[str, ...]:
    """Why the pulses were not on the disk the workload was watched on; nothing where that is not known.

    ``pulsed`` is the recording of round 2, ``disk`` the one behind the target.
    """
    if observed is None or disk is None:
        return ()
    if observed.disk != disk:
        return (f"the workload was watched on {observed.disk}, and the pulses ran on {disk}",)
    counted, _ = _load_of(pulsed, disk)
    most = float(np.nanmax(counted)) if len(counted) > 1 else float("nan")
    if most < REACHED_SHARE * hard.per_s:
        tool = f"{hard.per_s:,.0f} that the load tool did"
        return (f"{disk} counted {most:,.0f} IOPS during the pulses of {tool}: a cache answered, or another disk",)
    return ()


def keep_facts(probe_plan: ProbePlan) -> None:
    """Write down beside the recordings what only the command line knew, for `probe --from`."""
    facts = {"target": probe_plan.target, "disk": block_device_of(probe_plan.target), "iops_limit": probe_plan.limit}
    (probe_plan.folder / FACTS).write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def observe(capture: Capture, wanted: str | None) -> Observed | None:
    """What a recording says of a disk by the kernel's name, or of the busiest; None when no disk was recorded."""
    best: tuple[float, str] | None = None
    for group in capture.of("disk_reads_per_s", EntityKind.BLOCK_DEVICE):
        for row, entity in enumerate(group.entities):
            both = group.values[row] + _row(capture, "disk_writes_per_s", entity.name, len(group.times_ns))
            measured = both[np.isfinite(both)]
            total = float(measured.mean()) if len(measured) else float("nan")
            if np.isfinite(total) and (entity.name == wanted or (wanted is None and (best is None or total > best[0]))):
                best = (total, entity.name)
    if best is None:
        return None if wanted is None else observe(capture, None)
    return _observed(capture, best[1])


def _observed(capture: Capture, disk: str) -> Observed:
    rate, waited = _load_of(capture, disk)
    known = (rate > 0) & np.isfinite(waited)
    mean = float(np.sum(waited[known] * rate[known]) / np.sum(rate[known])) if known.any() else float("nan")
    p95 = float(np.quantile(waited[known], 0.95)) if known.any() else float("nan")
    sizes = [_row(capture, f"disk_{way}_mib_per_s", disk) * factor("mib_per_s", "bytes_per_s") for way in _WAYS]
    reads, writes = (float(np.nansum(_row(capture, f"disk_{way}s_per_s", disk))) for way in _WAYS)
    moved, count = sum(float(np.nansum(size)) for size in sizes), reads + writes
    size, share = (moved / count if moved > 0 else float("nan"), 100.0 * reads / count) if count > 0 else _UNKNOWN
    return Observed(disk, float(np.quantile(rate, 0.95)), float(rate.max()), mean, p95, size, share, _length_s(capture))


def _length_s(capture: Capture) -> float:
    """Seconds over which disks were recorded."""
    groups = capture.of("disk_reads_per_s", EntityKind.BLOCK_DEVICE)
    return max((len(g.times_ns) * (g.interval_s if g.interval_s > 0 else 0.0) for g in groups), default=0.0)


def _load_of(capture: Capture, disk: str) -> tuple[Floats, Floats]:
    """Requests per second of both directions, and ms per request, NaN where none was timed."""
    reads, writes = (_row(capture, f"disk_{way}_per_s", disk) for way in ("reads", "writes"))
    rates = np.nan_to_num(np.array([reads, writes]))
    waits = np.array([_row(capture, f"guest_disk_await_ms_{way}", disk, len(reads)) for way in ("read", "write")])
    timed = np.where(np.isfinite(waits), rates, 0.0)  # an await without requests is not measured and weighs nothing
    spent, count = (np.nan_to_num(waits) * timed).sum(axis=0), timed.sum(axis=0)
    return rates.sum(axis=0), np.divide(spent, count, out=np.full(len(reads), np.nan), where=count > 0)


def _row(capture: Capture, metric: str, disk: str, length: int | None = None) -> Floats:
    """The samples of a metric of a disk by name."""
    for group in capture.of(metric, EntityKind.BLOCK_DEVICE):
        for row, entity in enumerate(group.entities):
            if entity.name == disk and (length is None or len(group.times_ns) == length):
                values: Floats = group.values[row].astype(np.float64)
                return values
    return np.full(length or 1, np.nan)


@dataclass(frozen=True, slots=True)
class DiskLine:
    """A disk over several recordings: int64 [n] UTC ns, operations per second and ms per request (NaN: no request).

    Between two recordings there is one moment of NaN.
    """

    times_ns: NDArray[np.int64]
    iops: Floats
    await_ms: Floats


def disk_line(capture: Capture, disk: str) -> DiskLine | None:
    """What the kernel counted of a disk, recording after recording; None when none has it."""
    parts: list[tuple[NDArray[np.int64], Floats, Floats]] = []
    for number in range(len(capture.sources)):
        source_capture = Capture([group for group in capture.groups if group.source == number], capture.sources)
        times = next(
            (g.times_ns for g in source_capture.of("disk_reads_per_s", EntityKind.BLOCK_DEVICE) if disk in _names(g)),
            None,
        )
        if times is None or not len(times):
            continue
        rate, waited = _load_of(source_capture, disk)
        gap = np.array([int(times[-1]) + 1], dtype=np.int64)
        nothing = np.full(1, np.nan)
        parts += [(times, rate, waited), (gap, nothing, nothing)]
    if not parts:
        return None
    parts.sort(key=lambda part: int(part[0][0]))
    times, rate, waited = (np.concatenate([part[k] for part in parts[:-1]]) for k in range(3))
    return DiskLine(times.astype(np.int64), rate, waited)


def pulse_line(capture: Capture) -> tuple[NDArray[np.int64], Floats, Floats] | None:
    """Operations per second and mean ms of every second of every pulse, a moment of NaN after each."""
    points: list[tuple[int, float, float]] = []
    for number in range(len(capture.sources)):
        parts = [_rows(capture, f"job_{metric}_{way}", number) for way in ("read", "write") for metric in _MEASURED]
        times = next((group.times_ns for group in parts if group is not None), None)
        if times is None or not len(times):
            continue
        rates, waits = (
            np.array([np.full(len(times), np.nan) if g is None else g.values[0] for g in parts[k::2]]) for k in range(2)
        )
        rate = np.nansum(rates, axis=0)
        spent = np.nansum(rates * waits, axis=0)
        latency = np.divide(spent, rate, out=np.full(len(times), np.nan), where=rate > 0)
        # The report at the end covers what is left of a second: too little to be one.
        whole = np.diff(times, prepend=times[0] - NS_PER_S) > NS_PER_S // 2
        points += [
            (int(t), float(r), float(w)) for t, r, w in zip(times[whole], rate[whole], latency[whole], strict=True)
        ]
        points.append((int(times[-1]) + 1, float("nan"), float("nan")))
    if not points:
        return None
    points.sort()
    return np.array([t for t, _, _ in points], dtype=np.int64), *(np.array([p[k] for p in points]) for k in (1, 2))  # type: ignore[return-value]


_MEASURED = ("iops", "latency_ms")


def _rows(capture: Capture, metric: str, source: int) -> SeriesGroup | None:
    return next((group for group in capture.of(metric, EntityKind.JOB) if group.source == source), None)


def _names(group: SeriesGroup) -> list[str]:
    return [entity.name for entity in group.entities]


def _read_pct(capture: Capture, disk: str) -> float:
    reads, writes = (float(np.nansum(_row(capture, f"disk_{way}_per_s", disk))) for way in ("reads", "writes"))
    return READ_PCT_UNKNOWN if reads + writes <= 0 else round(100.0 * reads / (reads + writes))


def block_device_of(target: str) -> str | None:
    """The kernel's name of the whole disk a path lies on; None when it lies on none that is known."""
    try:
        status = Path(target).stat()
    except OSError:
        return None
    number = status.st_rdev if Path(target).is_block_device() else status.st_dev
    link = Path(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
    if not link.exists():
        return None
    path = link.resolve()
    return path.parent.name if (path / "partition").exists() else path.name
