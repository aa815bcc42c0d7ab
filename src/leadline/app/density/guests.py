"""Instances of a density run that are guests of a lab: alike, booted as they are needed, each loaded by its own fio."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from leadline.app.density.instances import (
    InstancePlace,
    InstanceReport,
    InstanceSite,
    InstancesMeasured,
    collected,
    wait_for,
)
from leadline.app.measure import lab_targets
from leadline.app.measure.guests import grounds_of, guests_that_fit
from leadline.app.measure.lab_targets import GuestDriver, both_sides, fill, in_guest, job_words
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.workload import Workload
from leadline.lab.folders import lab_folder
from leadline.lab.machine import Grounds, Machine, answering, launched
from leadline.lab.programs import running_in
from leadline.lab.specification import Guest

GUESTS = "guests"  # kind of a site
START_S = 1.0  # Judgement: what starting fio in one more guest under software emulation may put off the last


def guest_site(workload: Workload, target: Target) -> InstanceSite:
    """Guests alike of a lab file; nothing is started.

    Raises:
        UsageError: the target names no guest and disk of a lab file, or the workload is not fio's.
        ToolError: QEMU or the guests' kernel is missing, or not even one guest has memory or space.
    """
    plan = lab_targets.plan(workload, target)
    guest = _driver(plan.driver).lab_target.guest
    return InstanceSite(GUESTS, plan, sum(disk.size for disk in guest.disks), guests_that_fit(guest))


def _driver(driver: object) -> GuestDriver:
    if not isinstance(driver, GuestDriver):
        raise TypeError(driver)
    return driver


@dataclass(slots=True)
class Guests:
    """The guests booted so far; `close` ends and removes them, safe to call twice."""

    site: InstanceSite
    _machines: list[Machine] = field(default_factory=list)
    _places: list[InstancePlace] = field(default_factory=list)
    _running: ExitStack = field(default_factory=ExitStack)
    _grounds: Grounds | None = None
    _folder: Path | None = None

    def grow(self, count: int, folder: Path, say: Callable[[str], None]) -> None:
        """Boot what is missing up to ``count`` guests, as many at once as this machine has CPUs; what is there is kept.

        Raises:
            ToolError: a guest does not start or cannot be filled.
        """
        driver = _driver(self.site.plan.driver)
        if self._grounds is None:
            self._grounds = grounds_of(driver.lab_plan)
            self._folder = self._running.enter_context(lab_folder(driver.lab_target.lab.name))
        while len(self._machines) < count:
            first = len(self._machines) + 1
            last = min(first + len(os.sched_getaffinity(0)) - 1, count)
            say(f"booting guest {first}" if first == last else f"booting guests {first} to {last}")
            names = [f"{driver.lab_target.guest.name}-{number}" for number in range(first, last + 1)]
            machines = self._boot([driver.lab_plan.machines[0].model_copy(update={"name": name}) for name in names])
            for number, machine in enumerate(machines, first):
                plan = in_guest(self.site.plan, driver.lab_target, machine)
                fill(plan, driver.lab_target, machine, folder, say)
                self._places.append(InstancePlace(number, plan))
                self._machines.append(machine)

    def _boot(self, guests: Sequence[Guest]) -> list[Machine]:
        """Guests started together, all of them or none."""
        if self._grounds is None or self._folder is None:
            return []
        with ExitStack() as stack:
            for guest in guests:
                shutil.rmtree(self._folder / guest.name, ignore_errors=True)  # what an earlier attempt left
            booting = [stack.enter_context(launched(g, self._grounds, self._folder / g.name)) for g in guests]
            machines = [stack.enter_context(answering(guest)) for guest in booting]
            self._running.push(stack.pop_all())
        return machines

    def measure(self, count: int, step: Step, warm_up_s: float, folder: Path) -> InstancesMeasured:
        """One round of the first ``count``, in the seconds in which all of them ran, by this machine's clock.

        Raises:
            ToolError: a guest is gone.
            KeyboardInterrupt: passed on after every fio was ended.
        """
        length = warm_up_s + step.duration_s + 1.0 + START_S * count
        places, machines = self._places[:count], self._machines[:count]
        reports: dict[int, InstanceReport] = {}
        jobs: list[tuple[InstancePlace, Machine, list[str], Path]] = []
        for place, machine in zip(places, machines, strict=True):
            base = folder / f"i{place.number:04}-{step.label}"
            text = place.job(Step(step.label, length, step.seed + place.number))
            base.with_name(f"{base.name}.fio").write_text(text, encoding="utf-8")
            reports[place.number] = InstanceReport(
                base.with_name(f"{base.name}.json"), machine.channel.clock_offset_s()
            )
            jobs.append((place, machine, job_words(machine.channel, f"{base.name}.fio", text, fio.REPORTING), base))
        with ExitStack() as stack:
            live: list[tuple[InstancePlace, Path, fio.Process]] = []
            for place, machine, words, base in jobs:
                talk = base.with_name(f"{base.name}.txt")
                started = running_in(machine.channel, words, output=reports[place.number].path, talk=talk)
                live.append((place, talk, stack.enter_context(started)))
            errors = wait_for(live, length + fio.late_s(places[0].plan.workload) + START_S * count)
        return collected(places, reports, errors, warm_up_s, tuple(tuple(words) for _, _, words, _ in jobs))

    def recording(self, count: int, folder: Path) -> AbstractContextManager[list[str]]:
        """What is recorded while they are loaded: each by its own counters, and their hypervisor."""
        machines = self._machines[:count]
        notes = [f"{machine.guest.name}: {note}" for machine in machines for note in machine.notes]
        return both_sides(machines, folder, tuple(dict.fromkeys(notes)))

    @property
    def places(self) -> list[InstancePlace]:
        """Where each works."""
        return self._places

    def close(self) -> list[Path]:
        """End the guests; returns what could not be removed."""
        self._running.close()
        self._machines.clear()
        return [self._folder] if self._folder is not None and self._folder.exists() else []
