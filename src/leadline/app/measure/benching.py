"""Use case: load a target honestly: fill, warm up until steady, measure rounds, keep everything."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.measure import honouring, iscsi_targets, lab_targets
from leadline.app.measure.kept_runs import Kept, begun_run, host_facts, keeping
from leadline.app.measure.recording import recording
from leadline.app.measure.rounds import SILENT, WARM_UP, Carried, Course, Progress, Talk, measure_rounds
from leadline.app.read.importing import import_paths
from leadline.core.contracts.benchmark import Benchmark, LoadPlan, Measured, Step
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import Request
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.capture import Capture
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.finding import Diagnosis
from leadline.core.model.result import Result, Watch
from leadline.core.model.run import Run
from leadline.core.model.workload import Workload
from leadline.core.system.addresses import Address
from leadline.stores.runs import RunStore

CACHES = Path("/proc/sys/vm/drop_caches")
# Who plans a load by the kind of its target; of others the driver of the workload does.
_PLANNED_BY: dict[TargetKind, Callable[[Workload, Target], LoadPlan]] = {
    TargetKind.LAB_GUEST: lab_targets.plan,
    TargetKind.LUN: iscsi_targets.plan,
}


def driver_of(workload: Workload) -> tuple[str, Benchmark]:
    """The driver that takes a workload: the tool it names, else the one of its kind.

    Raises:
        UsageError: there is none.
    """
    units = {name: cast("Benchmark", module) for name, module in load_units("benchmark").items()}
    for name, unit in units.items():
        if unit.META.kind == workload.kind and workload.tool in (None, unit.META.program):
            return name, unit
    raise UsageError(
        f"workload {workload.name}",
        found=f"no driver for {workload.tool or workload.kind}",
        expected=f"one of {', '.join(units)}",
        advice="`leadline explain` lists the drivers.",
    )


def plan(workload: Workload, target: Target) -> LoadPlan:
    """What a run will do; nothing is touched.

    Raises:
        UsageError: the target may not be used.
        ToolError: there is not enough space.
    """
    if target.secret and workload.kind != "database":
        raise UsageError(
            target.name,
            found=f"a database with a password, for a workload of kind {workload.kind}",
            expected="a target of that kind",
            advice="`leadline bench workloads` lists the workloads of databases.",
        )
    planned_by = _PLANNED_BY.get(target.kind)
    if planned_by is not None:
        return planned_by(workload, target)
    return driver_of(workload)[1].plan(workload, target)


def carrier_of(load_plan: LoadPlan) -> Benchmark:
    """Who carries a plan out: its own driver, else the one of its workload."""
    return load_plan.driver or driver_of(load_plan.workload)[1]


def expected_s(workload: Workload) -> float:
    """How long warm-up and rounds take at most; filling is not in it."""
    return workload.timing.warm_up_s + workload.timing.rounds * workload.timing.measure_s


def new_run(load_plan: LoadPlan, *, seed: int | None = None) -> Run:
    """A run of a plan, before anything was done."""
    return begun_run(
        load_plan.workload.name,
        load_plan.workload.plain(),
        seed=seed,
        tool=driver_of(load_plan.workload)[0],
        target=load_plan.target.name,
        host={**host_facts(), **load_plan.facts},
        notes=load_plan.notes,
    )


@contextmanager
def prepared(load_plan: LoadPlan, folder: Path, talk: Talk) -> Iterator[tuple[str, ...]]:
    """The target of a plan made ready, and cleaned on the way out whatever happens; yields notes.

    Raises:
        ToolError: the tool fails.
    """
    driver = carrier_of(load_plan)
    try:
        talk.phase("preparing", 0.0)
        driver.prepare(load_plan, folder, talk.note)
        yield drop_caches(load_plan)
    finally:
        driver.clean(load_plan)


def load(load_plan: LoadPlan, kept: Kept, store: RunStore, talk: Talk) -> None:
    """Warm up and measure on a target that is ready; the run is kept after every round.

    Raises:
        ToolError: the tool fails, or its load was not the one that was asked for.
    """
    driver = carrier_of(load_plan)
    folder = store.files_of(kept.run.id)
    warm_up_s = load_plan.workload.timing.warm_up_s
    unwarmed = () if warm_up_s > 0 else ("no warm-up was asked for",)
    before = replace(kept.run, notes=(*kept.run.notes, *unwarmed))

    def keep(progress: Progress) -> None:
        kept.run = progress.onto(replace(before, notes=(*before.notes, *_unsteady(warm_up_s, progress))))
        store.save(kept.run, running=True)

    course = Course(load_plan.workload, kept.run.seed, warm_up_s, until_steady=True)
    with _recording(driver, load_plan, folder) as notes:
        measure_rounds(course, DriverCarrier(driver, load_plan, folder), keep=keep, talk=talk)
    kept.run = replace(kept.run, notes=(*kept.run.notes, *notes))
    kept.state = "done"


def _unsteady(warm_up_s: float, progress: Progress) -> tuple[str, ...]:
    state = progress.warm_up
    if state is None or state.steady:
        return ()
    return (f"after {warm_up_s:.0f} s of warm-up {state.sentence()}",)


@dataclass(frozen=True, slots=True)
class DriverCarrier:
    """A driver that carries out the steps of a plan; what it writes goes to a folder of the run."""

    driver: Benchmark
    plan: LoadPlan
    folder: Path

    def carry(self, step: Step, watch: Watch) -> Carried:
        """Have the driver measure a step; of a round, read its results and compare its load with the workload.

        Raises:
            ToolError: the tool fails, or reports nothing.
        """
        if step.label == WARM_UP:
            return self._carried(self.driver.measure(self.plan, step, self.folder, watch))
        measured, checks = honouring.measured(
            self.plan.workload,
            step.duration_s,
            lambda: self.driver.measure(self.plan, step, self.folder, watch),
        )
        results = import_paths(list(measured.files), Request(metrics=frozenset())).capture.results
        if not results:
            raise ToolError(
                str(measured.files[0]),
                found="no result",
                expected=f"the report of {self.driver.META.program}",
                advice="Look at its output.",
            )
        join = cast("Callable[[Sequence[Result]], tuple[Result, ...]]", getattr(self.driver, "joined", tuple))
        return replace(self._carried(measured), results=join(results), checks=checks)

    def _carried(self, measured: Measured) -> Carried:
        return Carried(ticks=measured.ticks, commands=measured.commands, tool_version=measured.tool_version)


def run(load_plan: LoadPlan, store: RunStore, *, seed: int | None = None, talk: Talk = SILENT) -> Run:
    """Prepare, warm up, measure; the run is kept after every round and whatever ends it.

    Raises:
        ToolError: the tool fails; what was measured before is kept.
        KeyboardInterrupt: passed on after the load was stopped and what was made was removed.
    """
    return run_repeated(load_plan, store, 1, seed=seed, talk=talk)[0]


def run_repeated(
    load_plan: LoadPlan, store: RunStore, count: int, *, seed: int | None = None, talk: Talk = SILENT
) -> list[Run]:
    """Whole runs one after the other, each with its own warm-up and seed, on what is prepared once.

    Raises:
        ToolError: the tool fails; the runs before are kept, and of this one what was measured.
        KeyboardInterrupt: passed on after the load was stopped and what was made was removed.
    """
    done: list[Run] = []
    with ExitStack() as until_all_are_over:
        for number in range(count):
            if count > 1:
                talk.phase(f"run {number + 1} of {count}", 0.0)
            fresh_run = new_run(load_plan, seed=None if seed is None else seed + 1000 * number)
            with keeping(fresh_run, store) as kept:
                if number == 0:
                    ready = prepared(load_plan, store.files_of(fresh_run.id), talk)
                    notes = until_all_are_over.enter_context(ready)
                else:
                    notes = drop_caches(load_plan)
                kept.run = replace(fresh_run, notes=(*fresh_run.notes, *notes))
                load(load_plan, kept, store, talk)
            done.append(kept.run)
    return done


def _recording(driver: Benchmark, load_plan: LoadPlan, folder: Path) -> AbstractContextManager[list[str]]:
    """What is recorded while a target is loaded: where the load runs, or this machine and what the driver offers."""
    driver_recording = getattr(driver, "recording", None)
    if driver_recording is not None:
        return cast("AbstractContextManager[list[str]]", driver_recording(load_plan, folder))
    return recording({"linux": "", **_sources(driver, load_plan)}, folder)


def _sources(driver: Benchmark, load_plan: LoadPlan) -> dict[str, Address]:
    """What a driver offers to be recorded besides the machine."""
    offered = getattr(driver, "sources", None)
    return {} if offered is None else cast("dict[str, Address]", offered(load_plan))


def drop_caches(load_plan: LoadPlan) -> tuple[str, ...]:
    """Empty the page cache where the kernel lets us, so that nothing is answered from it; notes when it could not."""
    driver_drop = getattr(carrier_of(load_plan), "drop_caches", None)
    if driver_drop is not None:
        return cast("tuple[str, ...]", driver_drop(load_plan))
    if load_plan.workload.kind != "io" or not load_plan.workload.io_settings.buffered:
        return ()
    try:
        CACHES.write_text("3\n")
    except OSError:
        return ("the page cache could not be dropped (root may): the first reads may come from it",)
    return ()


def capture_of(run_id: str, store: RunStore) -> Capture:
    """What was recorded during a run: the machine's counters, and the driver's own series and results."""
    folder = store.files_of(run_id)
    # A driver's other files (job files, what the tool said) are no recordings.
    patterns = ("linux.txt", "linux-*.txt", "qemu.jsonl", "pg_*.csv", "round-*.json", "round-*/*")
    recording_paths = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return import_paths([path for path in recording_paths if path.is_file() and path.stat().st_size], Request()).capture


def diagnosis_of(run_id: str, store: RunStore) -> Diagnosis | None:
    """What the rules find in the recording of a run; None when nothing of it can be read."""
    try:
        return diagnose(capture_of(run_id, store))
    except LeadlineError:
        return None
