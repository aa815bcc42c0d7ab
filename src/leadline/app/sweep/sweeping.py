"""Use case: a workload at many loads on one target, filled once; every point is a separate run."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from leadline.app.measure import benching
from leadline.app.measure.kept_runs import keeping
from leadline.app.measure.rounds import SILENT, Talk
from leadline.app.sweep.curves import LoadCurve, Point, curve_of, levelled_off, point_of
from leadline.core.contracts.benchmark import LoadPlan
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.run import PERCENTILES, Run
from leadline.core.model.sweep import (
    AXES,
    LOAD_MAX,
    OIO,
    Key,
    LoadVariant,
    Sweep,
    is_swept,
    next_key,
    parse_loads,
    point_workload,
)
from leadline.core.model.workload import Steadiness, Workload
from leadline.stores.runs import RunStore
from leadline.stores.sweeps import SweepStore

SECONDS, WARM_UP_S = 15.0, 15.0  # Judgement: ten seconds are the fewest for an interval; five windows to be steady
STEADY = {"window_s": 1.0, "window_count": 5}


@dataclass(frozen=True, slots=True)
class SweepWish:
    """What to sweep over; None and nothing are as the workload has it."""

    loads: str | None = None
    blocks: tuple[int, ...] = ()
    read_pcts: tuple[float, ...] = ()
    jobs: tuple[int, ...] = ()
    target_ms: float | None = None
    percentile: str = "p99"
    seed: int | None = None


@dataclass(frozen=True, slots=True)
class PlannedSweep:
    """A sweep, and the plan that prepares for all its points."""

    sweep: Sweep
    load_plan: LoadPlan
    workload: Workload
    done_count: int = 0

    @property
    def point_count_max(self) -> int:
        """Points if operations grow to the end."""
        per_variant = len(self.sweep.loads) + (self.sweep.grows and len(self.sweep.loads) >= 3)
        return per_variant * len(self.sweep.variants) - self.done_count

    @property
    def seconds_max(self) -> float:
        """How long its points take at most; filling is not in it."""
        return self.point_count_max * benching.expected_s(self.workload)


@dataclass(frozen=True, slots=True)
class SweepOutcome:
    """A sweep as far as it was measured: its curves, and whether points are left."""

    sweep: Sweep
    curves: tuple[LoadCurve, ...]
    is_complete: bool
    runs: tuple[Run, ...]

    @property
    def notes(self) -> tuple[str, ...]:
        """What its runs say, each once; what is told of a single point is left out."""
        texts = dict.fromkeys(note for run in self.runs for note in run.notes)
        return tuple(text for text in texts if all(text in run.notes for run in self.runs))

    def to_dict(self) -> dict[str, Any]:
        """Plain data for ``--json``."""
        sweep = self.sweep
        return {
            "id": sweep.id,
            "workload": sweep.workload,
            "target": sweep.target,
            "axis": sweep.axis,
            "seed": sweep.seed,
            "percentile": sweep.percentile,
            "target_ms": sweep.target_ms,
            "complete": self.is_complete,
            "notes": list(self.notes),
            "curves": [curve.to_dict() for curve in self.curves],
        }


def point_timing(workload: Workload, seconds: float | None, rounds: int | None, warm_up_s: float | None) -> Workload:
    """The workload with the timing of a point: shorter than a run's, since there are many."""
    run_timing = workload.timing
    timing = run_timing.model_copy(
        update={
            "measure_s": SECONDS if seconds is None else seconds,
            "rounds": 1 if rounds is None else rounds,
            "warm_up_s": min(run_timing.warm_up_s, WARM_UP_S) if warm_up_s is None else warm_up_s,
        }
    )
    steady = Steadiness.model_validate({**workload.steady.model_dump(), **STEADY})
    return workload.model_copy(update={"timing": timing, "steady": steady})


def plan_sweep(workload: Workload, target: Target, wish: SweepWish) -> PlannedSweep:
    """What a sweep will do; nothing is touched.

    Raises:
        UsageError: the workload has no load to sweep or not what is varied, or the target may not be used.
        ToolError: there is not enough space.
    """
    axis = AXES.get(workload.kind)
    _require_axis(workload, axis, wish)
    axis = str(axis)
    loads, grows = parse_loads(wish.loads or "1..", f"--{axis}", LOAD_MAX[axis])
    variants = tuple(
        LoadVariant(block, read_pct, jobs)
        for block in wish.blocks or (None,)
        for read_pct in wish.read_pcts or (None,)
        for jobs in wish.jobs or (None,)
    )
    load_plan = benching.plan(_covering(workload, axis, variants, loads), target)
    began = datetime.now(UTC)
    sweep = Sweep(
        id=f"{began:%Y%m%d-%H%M%S}-sweep-{workload.name}-{secrets.token_hex(2)}",
        started=began.isoformat(timespec="seconds"),
        seed=secrets.randbelow(2**31) if wish.seed is None else wish.seed,
        workload=workload.plain(),
        target=load_plan.target.name,
        axis=axis,
        loads=loads,
        grows=grows,
        variants=variants,
        roles=dict(target.roles),
        target_ms=wish.target_ms,
        percentile=wish.percentile,
    )
    return PlannedSweep(sweep, load_plan, workload)


def _require_axis(workload: Workload, axis: str | None, wish: SweepWish) -> None:
    problem = expected = ""
    if axis is None:
        problem, expected = f"a {workload.kind} workload", "one of I/O or of a database"
    elif axis == OIO and not any(is_swept(stream) for stream in workload.io):
        problem, expected = "a rate in every stream", "a stream whose load is what is outstanding"
    elif workload.database is not None and workload.database.rate_per_s is not None:
        problem, expected = "a rate", "a database load without rate_per_s"
    elif axis != OIO and (wish.blocks or wish.read_pcts or wish.jobs):
        problem, expected = "a database workload", "--clients alone: it has no block size, read share and jobs"
    elif wish.percentile not in (*PERCENTILES, "mean"):
        problem, expected = f"percentile {wish.percentile}", f"one of {', '.join((*PERCENTILES, 'mean'))}"
    if problem:
        raise UsageError(
            f"workload {workload.name}", found=problem, expected=expected, advice="See docs/guides/sweep.md."
        )


def _covering(workload: Workload, axis: str, variants: Sequence[LoadVariant], loads: Sequence[int]) -> Workload:
    """What must be prepared for: the variant that writes most, at the highest load."""
    shares = [variant.read_pct for variant in variants]
    known = [share for share in shares if share is not None]
    most = variants[shares.index(min(known))] if known else variants[0]
    return point_workload(workload, axis, most, loads[-1])


def plan_rest(store: RunStore, name: str, on: str | None, destroy: str | None) -> PlannedSweep:
    """What is left of a sweep that was ended; ``on`` names its target again, with a password if it needs one.

    Raises:
        UsageError: there is no such sweep, another process works on it, or the target is another.
        InputError: it is damaged.
    """
    sweeps = SweepStore(store.folder)
    sweep = sweeps.get(name)
    process = sweeps.worked_on(sweep)
    if process is not None:
        raise UsageError(
            f"sweep {sweep.id}",
            found=f"process {process} at work on it",
            expected="one that was ended",
            advice="Wait for it.",
        )
    workload = Workload.model_validate(sweep.workload)
    cover = _covering(workload, sweep.axis, sweep.variants, sweep.loads)
    load_plan = benching.plan(cover, Target(on or sweep.target, destroy, sweep.roles))
    if load_plan.target.name != sweep.target:
        raise UsageError(
            f"--on {load_plan.target.name}",
            found="another target",
            expected=sweep.target,
            advice="Points of different targets do not make a curve; begin a new sweep.",
        )
    return PlannedSweep(sweep, load_plan, workload, len(_measured(sweep, store)))


def run_sweep(planned: PlannedSweep, store: RunStore, *, talk: Talk = SILENT) -> SweepOutcome:
    """Prepare once, measure point by point, clean once; every point is kept as soon as it is measured.

    Raises:
        ToolError: the tool fails; the points before are kept.
        KeyboardInterrupt: passed on after the load was stopped and what was made was removed.
    """
    sweep, sweeps = planned.sweep, SweepStore(store.folder)
    sweeps.save(sweep)
    try:
        points = [point for point, _ in _measured(sweep, store)]
        if _next(sweep, points) is not None:
            with benching.prepared(planned.load_plan, store.files_of(sweep.id), talk):
                while (key := _next(sweep, points)) is not None:
                    points.append(_measure(planned, key, store, talk))
    finally:
        sweeps.release(sweep)
    return outcome(sweep, store)


def _measure(planned: PlannedSweep, key: Key, store: RunStore, talk: Talk) -> Point:
    sweep = planned.sweep
    workload = point_workload(planned.workload, sweep.axis, sweep.variants[key.variant], key.load)
    load_plan = replace(planned.load_plan, workload=workload)
    run = replace(benching.new_run(load_plan, seed=sweep.point_seed(key)), id=sweep.run_id(key))
    store.remove(run.id)  # what an earlier attempt left of this point
    label = sweep.variants[key.variant].label()
    words = f"{sweep.axis} {key.load}{f', {label}' if label else ''}{' again' if key.again else ''}"
    named = Talk(lambda phase, seconds: talk.phase(f"{words}: {phase}", seconds), talk.tick, talk.note)
    with keeping(run, store) as kept:
        kept.run = replace(kept.run, notes=(*kept.run.notes, *benching.drop_caches(load_plan)))
        benching.load(load_plan, kept, store, named)
    point = point_of(key, kept.run)
    marks = f" ({', '.join(point.marks)})" if point.marks else ""
    talk.note(f"{words}: {point.per_s.mean:,.0f}/s, mean {point.mean_ms:.3g} ms{marks}")
    return point


def _measured(sweep: Sweep, store: RunStore) -> list[tuple[Point, Run]]:
    """The points that are in the store, with their runs; those that were ended in their midst are not measured."""
    measured = []
    for run in store.beginning(f"{sweep.id}."):
        if run.state == "done" and run.rounds:
            key = _key(run)
            measured.append((point_of(key, run), run))
    return measured


def _key(run: Run) -> Key:
    words = run.id.rpartition(".")[2].removeprefix("v").split("-")
    try:
        return Key(int(words[0]), int(words[1]), again=len(words) > 2)
    except (IndexError, ValueError) as error:
        raise InputError(
            f"run {run.id}", found="no point of a sweep", expected="an id ending in v0-4", advice="Begin a new sweep."
        ) from error


def _next(sweep: Sweep, points: Sequence[Point]) -> Key | None:
    ended = {}
    for index in range(len(sweep.variants)):
        curve_points = sorted(
            (p for p in points if p.key.variant == index and not p.key.again), key=lambda point: point.load
        )
        levelled = levelled_off(curve_points, sweep.seed)
        if levelled is not None:
            ended[index] = curve_points[-1].key.load
    return next_key(sweep, {point.key for point in points}, ended)


def outcome(sweep: Sweep, store: RunStore) -> SweepOutcome:
    """Return the curves, and the runs, of the points of a sweep that have been measured so far."""
    measured = _measured(sweep, store)
    curves = []
    for index in range(len(sweep.variants)):
        points = [point for point, _ in measured if point.key.variant == index]
        if any(not point.key.again for point in points):
            curves.append(curve_of(sweep, index, points))
    left = _next(sweep, [point for point, _ in measured])
    return SweepOutcome(sweep, tuple(curves), left is None, tuple(run for _, run in measured))
