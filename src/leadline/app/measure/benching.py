"""Use case: load a target honestly: fill, warm up until steady, measure rounds, keep everything."""

from __future__ import annotations

import os
import platform
import secrets
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.measure import honouring, lab_targets
from leadline.app.measure.recording import recording
from leadline.app.read.importing import import_paths
from leadline.core.contracts.benchmark import Benchmark, Measured, Plan, Step, Target, Tick
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.honoured import Check, notes_of, require_honoured
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.finding import Diagnosis
from leadline.core.model.run import Round, Run
from leadline.core.model.workload import Workload
from leadline.core.statistics.steady import SteadyState, steady_state
from leadline.core.system import dsn
from leadline.core.system.addresses import Address
from leadline.stores.runs import RunStore

CACHES = Path("/proc/sys/vm/drop_caches")


@dataclass(frozen=True, slots=True)
class Talk:
    """How the run tells what it is doing: a phase begins (its name, its seconds), a second passed, a note."""

    phase: Callable[[str, float], None]
    tick: Callable[[Tick], None]
    note: Callable[[str], None]


SILENT = Talk(lambda _, __: None, lambda _: None, lambda _: None)


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


def plan(workload: Workload, target: Target) -> Plan:
    """What a run will do; nothing is touched.

    Raises:
        UsageError: the target may not be used.
        ToolError: there is not enough space.
    """
    if target.secret and workload.kind != "database":
        raise UsageError(
            dsn.masked(target.name),
            found=f"a database with a password, for a workload of kind {workload.kind}",
            expected="a target of that kind",
            advice="`leadline bench workloads` lists the workloads of databases.",
        )
    if lab_targets.is_lab(target.name):
        return lab_targets.plan(workload, target)
    return driver_of(workload)[1].plan(workload, target)


def carrier_of(made: Plan) -> Benchmark:
    """Who carries a plan out: its own driver, else the one of its workload."""
    return made.driver or driver_of(made.workload)[1]


def expected_s(workload: Workload) -> float:
    """How long warm-up and rounds take at most; filling is not in it."""
    return workload.timing.warm_up_s + workload.timing.rounds * workload.timing.measure_s


@dataclass(slots=True)
class Kept:
    """A run while it is made: as it is now, and how it ends if nothing more happens to it."""

    run: Run
    state: str = "failed"


def new_run(made: Plan, *, seed: int | None = None) -> Run:
    """A run of a plan, before anything was done."""
    began = datetime.now(UTC)
    return Run(
        id=f"{began:%Y%m%d-%H%M%S}-{made.workload.name}-{secrets.token_hex(2)}",
        name=made.workload.name,
        state="running",
        tool=driver_of(made.workload)[0],
        target=made.target.name,
        started=began.isoformat(timespec="seconds"),
        seed=secrets.randbelow(2**31) if seed is None else seed,
        workload=made.workload.plain(),
        host={**host_facts(), **made.facts},
        notes=made.notes,
    )


@contextmanager
def keeping(own: Run, store: RunStore) -> Iterator[Kept]:
    """A run that is in the store from its beginning, and in the end with the state it ended in."""
    kept = Kept(own)
    store.save(own, running=True)
    try:
        yield kept
    except KeyboardInterrupt as error:
        kept.state = "interrupted"
        error.add_note(f"what was measured is kept: leadline runs show {own.id}")
        raise
    finally:
        kept.run = replace(kept.run, state=kept.state)
        store.save(kept.run)


@contextmanager
def prepared(made: Plan, folder: Path, talk: Talk) -> Iterator[tuple[str, ...]]:
    """The target of a plan made ready, and cleaned on the way out whatever happens; yields notes.

    Raises:
        ToolError: the tool fails.
    """
    driver = carrier_of(made)
    try:
        talk.phase("preparing", 0.0)
        driver.prepare(made, folder, talk.note)
        yield drop_caches(made)
    finally:
        driver.clean(made)


def load(made: Plan, kept: Kept, store: RunStore, talk: Talk) -> None:
    """Warm up and measure on a target that is ready; the run is kept after every round.

    Raises:
        ToolError: the tool fails, or its load was not the one that was asked for.
    """
    driver = carrier_of(made)
    folder = store.files_of(kept.run.id)
    with _recording(driver, made, folder) as notes:
        kept.run = _warm_up(driver, made, kept.run, folder, talk)
        store.save(kept.run, running=True)
        for number in range(1, made.workload.timing.rounds + 1):
            kept.run, checks = _round(driver, made, kept.run, folder, number, talk)
            store.save(kept.run, running=True)
            require_honoured(made.workload, checks)
    kept.run = replace(kept.run, notes=(*kept.run.notes, *notes))
    kept.state = "done"


def run(made: Plan, store: RunStore, *, seed: int | None = None, talk: Talk = SILENT) -> Run:
    """Prepare, warm up, measure; the run is kept after every round and whatever ends it.

    Raises:
        ToolError: the tool fails; what was measured before is kept.
        KeyboardInterrupt: passed on after the load was stopped and what was made was removed.
    """
    return run_repeated(made, store, 1, seed=seed, talk=talk)[0]


def run_repeated(made: Plan, store: RunStore, count: int, *, seed: int | None = None, talk: Talk = SILENT) -> list[Run]:
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
            own = new_run(made, seed=None if seed is None else seed + 1000 * number)
            with keeping(own, store) as kept:
                if number == 0:
                    ready = prepared(made, store.files_of(own.id), talk)
                    notes = until_all_are_over.enter_context(ready)
                else:
                    notes = drop_caches(made)
                kept.run = replace(own, notes=(*own.notes, *notes))
                load(made, kept, store, talk)
            done.append(kept.run)
    return done


def _recording(driver: Benchmark, made: Plan, folder: Path) -> AbstractContextManager[list[str]]:
    """What is recorded while a target is loaded: where the load runs, or this machine and what the driver offers."""
    own = getattr(driver, "recording", None)
    if own is not None:
        return cast("AbstractContextManager[list[str]]", own(made, folder))
    return recording({"linux": "", **_sources(driver, made)}, folder)


def _sources(driver: Benchmark, made: Plan) -> dict[str, Address]:
    """What a driver offers to be recorded besides the machine."""
    offered = getattr(driver, "sources", None)
    return {} if offered is None else cast("dict[str, Address]", offered(made))


def _warm_up(driver: Benchmark, made: Plan, own: Run, folder: Path, talk: Talk) -> Run:
    timing, bounds = made.workload.timing, made.workload.steady
    if timing.warm_up_s <= 0:
        return replace(own, notes=(*own.notes, "no warm-up was asked for"))
    talk.phase("warming up", timing.warm_up_s)
    ticks: list[Tick] = []
    has_bursts = any(stream.burst is not None for stream in made.workload.io)

    def state() -> SteadyState:
        return steady_state([t.elapsed_s for t in ticks], [t.per_s for t in ticks], bounds)

    def watch(tick: Tick) -> bool:
        ticks.append(tick)
        talk.tick(tick)
        return has_bursts or not state().steady

    measured = driver.measure(made, Step("warm-up", timing.warm_up_s, own.seed), folder, watch)
    ticks = ticks or list(measured.ticks)  # of jobs that pause, the seconds are known in the end
    found = state()
    notes = own.notes
    if not found.steady:
        notes = (*notes, f"after {timing.warm_up_s:.0f} s of warm-up {found.sentence()}")
    return _with(own, measured, warm_up=found, notes=notes)


def _round(
    driver: Benchmark, made: Plan, own: Run, folder: Path, number: int, talk: Talk
) -> tuple[Run, tuple[Check, ...]]:
    timing = made.workload.timing
    talk.phase(f"round {number} of {timing.rounds}", timing.measure_s)

    def watch(tick: Tick) -> bool:
        talk.tick(tick)
        return True

    step = Step(f"round-{number}", timing.measure_s, own.seed + number)
    measured, checks = honouring.measured(
        made.workload, step.duration_s, lambda: driver.measure(made, step, folder, watch)
    )
    results = import_paths(list(measured.files), Request(metrics=frozenset())).capture.results
    if not results:
        raise ToolError(
            str(measured.files[0]),
            found="no result",
            expected=f"the report of {own.tool}",
            advice="Look at its output.",
        )
    part = Round(step.label, tuple(results), measured.ticks)
    notes = tuple(dict.fromkeys((*own.notes, *(f"{step.label}: {note}" for note in notes_of(checks)))))
    return _with(own, measured, rounds=(*own.rounds, part), notes=notes), checks


def _with(own: Run, measured: Measured, **changes: object) -> Run:
    commands = tuple(dict.fromkeys((*own.commands, *measured.commands)))
    return replace(own, commands=commands, tool_version=measured.tool_version, **changes)  # type: ignore[arg-type]


def drop_caches(made: Plan) -> tuple[str, ...]:
    """Empty the page cache where the kernel lets us, so that nothing is answered from it; notes when it could not."""
    own = getattr(carrier_of(made), "drop_caches", None)
    if own is not None:
        return cast("tuple[str, ...]", own(made))
    if made.workload.kind != "io" or not made.workload.io_settings.buffered:
        return ()
    try:
        CACHES.write_text("3\n")
    except OSError:
        return ("the page cache could not be dropped (root may): the first reads may come from it",)
    return ()


def host_facts() -> dict[str, str]:
    """What the machine is: enough to tell whether two runs may be compared."""
    return {
        "host": platform.node(),
        "kernel": platform.release(),
        "machine": platform.machine(),
        "cpu_count": str(len(os.sched_getaffinity(0))),
    }


def capture_of(run_id: str, store: RunStore) -> Capture:
    """What was recorded during a run: the machine's counters, and the driver's own series and results."""
    folder = store.files_of(run_id)
    # A driver's other files (job files, what the tool said) are no recordings.
    patterns = ("linux.txt", "linux-*.txt", "qemu.jsonl", "pg_*.csv", "round-*.json", "round-*/*")
    found = [path for pattern in patterns for path in sorted(folder.glob(pattern))]
    return import_paths([path for path in found if path.is_file() and path.stat().st_size], Request()).capture


def diagnosis_of(run_id: str, store: RunStore) -> Diagnosis | None:
    """What the rules find in the recording of a run; None when nothing of it can be read."""
    try:
        return diagnose(capture_of(run_id, store))
    except LeadlineError:
        return None
