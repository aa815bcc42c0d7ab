"""The loads of a real check: fio and copies at the same time on served disks; every load is a run like any other."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

from leadline.app.measure.benching import DriverCarrier, driver_of, new_run
from leadline.app.measure.kept_runs import begun_run, host_facts, keeping
from leadline.app.measure.rounds import SILENT, WARM_UP, Carried, Course, Progress, measure_rounds
from leadline.app.simulate.checking_block_layer import SIZE_BYTES, Copier, RealDisk, served
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result, Tick, Watch
from leadline.core.model.run import Round, Run, pool
from leadline.core.model.workload import Stream, Workload, adjusted
from leadline.scenarios.storage_path import Copy, StoragePath
from leadline.stores.runs import RunStore

CALIBRATION_COUNTS = (1, 4, 16, 64)  # requests outstanding
SPREAD_MAX = 3.0  # Judgement: a coefficient of variation above is a hiccup of the machine
START_S = 0.5  # Judgement: fio's own start; a copy beside it is measured from then
_SEED = 1


@dataclass(frozen=True, slots=True)
class Ground:
    """Where real loads work, what keeps them, how long they take, and who is told of each second."""

    folder: Path
    store: RunStore
    name: str
    seconds: float
    warm_up_s: float
    tick: Callable[[Tick], None]


@dataclass(frozen=True, slots=True)
class Calibration:
    """A device without limits: (outstanding, operations per second, mean ms), and its spread around the mean."""

    latency_ns: int | None
    points: tuple[tuple[int, float, float], ...]
    spread: float
    runs: tuple[str, ...]

    def curve(self) -> list[tuple[float, float]]:
        """Operations per second and seconds, as a scenario has them: their product grows from point to point."""
        curve_points: list[tuple[float, float]] = []
        for _, rate, mean_ms in self.points:
            load = rate * mean_ms
            if rate > 0 and all(load > 1000.0 * earlier * latency for earlier, latency in curve_points):
                curve_points.append((rate, mean_ms / 1000.0))
        return curve_points


class _Together:
    """Workers that measure at the same time, and what they found or what ended them."""

    def __init__(self, count: int) -> None:
        self.is_over = threading.Event()
        self.ready = threading.Barrier(count)
        self.results: list[tuple[str, Result]] = []
        self.runs: list[str] = []
        self.errors: list[BaseException] = []

    def run(self, works: Sequence[Callable[[], None]]) -> None:
        """All of them to their end.

        Raises:
            LeadlineError: the first that failed.
            KeyboardInterrupt: after all have stopped.
        """
        threads = [threading.Thread(target=self._guarded, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)  # so that Ctrl-C is heard
        except KeyboardInterrupt:
            self._stop()
            for thread in threads:
                thread.join(5.0)
            raise
        first = next((error for error in self.errors if not isinstance(error, threading.BrokenBarrierError)), None)
        if first is not None:
            raise first

    def _guarded(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self.errors.append(error)
            self._stop()

    def _stop(self) -> None:
        self.is_over.set()
        self.ready.abort()

    def watch(self, watch: Watch) -> Watch:
        """Have a load end when somebody stops."""
        return lambda tick: watch(tick) and not self.is_over.is_set()


def calibrated(ground: Ground, latency_ns: int | None, stream: Stream, seconds: float) -> Calibration:
    """A device of this kind measured without limits at rising numbers of outstanding requests.

    Raises:
        ToolError: a tool fails.
    """
    points, spread, runs = [], 0.0, []
    with served([RealDisk("device", None, latency_ns)], ground.folder / "device") as at:
        for count in CALIBRATION_COUNTS:
            workload = Workload(name=ground.name, io=(stream.model_copy(update={"oio": count}),))
            together = _Together(1)
            calibration_ground = replace(ground, seconds=seconds, warm_up_s=0.0)
            places = dict.fromkeys(("",), at["device"])
            load = _Load(calibration_ground, "device", f"{count} outstanding, no limit", workload, places)
            together.run([lambda: load.work(together)])  # noqa: B023 - run at once
            operations = [operation for _, result in together.results for operation in result.operations]
            whole = pool("all", operations)
            points.append((count, sum(part.per_s for part in operations), whole.mean_ms))
            if count == CALIBRATION_COUNTS[0] and whole.histogram is not None:
                spread = _spread(whole.histogram)
            runs += together.runs
    return Calibration(latency_ns, tuple(points), spread, tuple(runs))


def _spread(histogram: Histogram) -> float:
    """A coefficient of variation from the middle 68 % of the requests: hiccups of the machine are not the device's."""
    low, middle, high = (histogram.quantile(share) for share in (0.16, 0.5, 0.84))
    return min((high - low) / 2.0 / middle, SPREAD_MAX) if middle > 0 else 0.0


def loaded(
    ground: Ground, scenario: StoragePath, disks: Sequence[RealDisk], label: str
) -> tuple[dict[str, list[Operation]], list[str]]:
    """All VMs and copies of a scenario at the same time: operations by VM, and the runs.

    Raises:
        ToolError: a tool fails.
        KeyboardInterrupt: after all have stopped.
    """
    with served(disks, ground.folder / secrets.token_hex(4)) as at:
        works: list[_Load | _CopyLoad] = []
        for vm in scenario.vms:
            for name in vm.names() if vm.workload is not None else []:
                places = {str(role): at[f"{name}/{role}"] for role in vm.disks} | {"": at[name]}
                works.append(_Load(ground, name, label, vm.loaded, places))  # type: ignore[arg-type]
        works += [_CopyLoad(ground, label, copy, (at[copy.read], at[copy.write])) for copy in scenario.copies]
        together = _Together(len(works))
        together.run([partial(load.work, together) for load in works])
    by_vm: dict[str, list[Operation]] = {}
    for vm in scenario.vms:
        for name in vm.names():
            by_vm[name] = [o for owner, result in together.results if owner == name for o in result.operations]
    return by_vm, together.runs


@dataclass(frozen=True, slots=True)
class _Load:
    """The workload of one VM by its driver; ``places`` are its disks by role."""

    ground: Ground
    vm: str
    label: str
    workload: Workload
    places: dict[str, str]

    def work(self, together: _Together) -> None:
        """Warm up, measure with the others, keep the run."""
        ground = self.ground
        workload = adjusted(
            self.workload, size=SIZE_BYTES, seconds=ground.seconds, rounds=1, warm_up=ground.warm_up_s
        ).model_copy(update={"name": ground.name})
        driver = driver_of(workload)[1]
        main = self.places[""]
        roles = {role: at for role, at in self.places.items() if role}
        load_plan = driver.plan(workload, Target(main, main, roles))
        facts = {"vm": self.vm, "variant": self.label}
        run = replace(new_run(replace(load_plan, facts=facts), seed=_SEED), target=f"block layer: {self.vm}")
        with keeping(run, ground.store) as kept:

            def keep(progress: Progress) -> None:
                kept.run = progress.onto(run)

            carrier = _WithOthers(DriverCarrier(driver, load_plan, ground.store.files_of(run.id)), together)
            talk = replace(SILENT, tick=ground.tick)
            measure_rounds(Course(workload, _SEED, ground.warm_up_s), carrier, keep=keep, talk=talk)
            kept.state = "done"
        together.results += [(self.vm, result) for part in kept.run.rounds for result in part.results]
        together.runs.append(run.id)


@dataclass(frozen=True, slots=True)
class _WithOthers:
    """A load that is measured when all others are warm, and that ends when one of them does."""

    inner: DriverCarrier
    together: _Together

    def carry(self, step: Step, watch: Watch) -> Carried:
        """Carry out a step; a round begins when all others can."""
        if step.label != WARM_UP:
            _go_on(self.together)
        carried = self.inner.carry(step, self.together.watch(watch))
        if self.together.is_over.is_set():
            raise KeyboardInterrupt
        return carried


def _go_on(together: _Together) -> None:
    """Wait for the others."""
    try:
        together.ready.wait()
    except threading.BrokenBarrierError:
        raise KeyboardInterrupt from None


@dataclass(frozen=True, slots=True)
class _CopyLoad:
    """A copy from one disk to another; ``at`` are their addresses."""

    ground: Ground
    label: str
    copy: Copy
    at: tuple[str, str]

    def work(self, together: _Together) -> None:
        """Copy, measure with the others, keep the run."""
        ground, copy = self.ground, self.copy
        copier = Copier(*self.at, copy.block, copy.oio)
        with keeping(self._run(), ground.store) as kept:
            try:
                copier.start()
                together.is_over.wait(ground.warm_up_s)
                _go_on(together)
                began = time.monotonic() + START_S
                copier.measure(began, ground.seconds)
                for second in range(round(ground.seconds) + 1):
                    together.is_over.wait(max(began + second - time.monotonic(), 0.0))
                    ground.tick(Tick(float(second), float("nan")))
            finally:
                copier.stop()
            if together.is_over.is_set():
                raise KeyboardInterrupt
            measured = copier.results(copy.ends, copy.name, ground.seconds)
            rates = copier.per_second(began, round(ground.seconds))
            ticks = tuple(Tick(n + 1.0, rate) for n, rate in enumerate(rates))
            results = tuple(replace(result, job=f"{disk}/{copy.name}") for disk, result in measured)
            kept.run = replace(kept.run, rounds=(Round("round-1", results, ticks),))
            kept.state = "done"
        together.results += [(disk.partition("/")[0], result) for disk, result in measured]
        together.runs.append(kept.run.id)

    def _run(self) -> Run:
        return begun_run(
            self.ground.name,
            {"name": self.ground.name, "copy": self.copy.model_dump(mode="json")},
            seed=_SEED,
            tool="libnbd",
            target=f"block layer: {self.copy.read} to {self.copy.write}",
            host={**host_facts(), "variant": self.label},
        )
