"""Instances of a density run that are servers: each a server of its own with its limits, loaded by its own client.

A server runs in a control group and in namespaces of its own (network, processes, shared memory); the client that loads
it is outside, as people are outside of the machine they ask. The limits are set when its data are filled, so that a
narrow disk does not make filling long. Of a load by a tool only whole rounds are known.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from leadline.app.density.instances import NUMBER, InstancePlace, InstanceSite, InstancesMeasured, limited
from leadline.app.density.model import Second
from leadline.app.measure import benching
from leadline.app.measure.benching import DriverCarrier
from leadline.app.measure.recording import recording
from leadline.app.measure.rounds import WARM_UP, Carried
from leadline.core.contracts.benchmark import Benchmark, Step
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.errors import LeadlineError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Result, Tick
from leadline.core.model.units import factor
from leadline.core.model.workload import Workload
from leadline.core.system.cgroups import Groups
from leadline.core.system.enclosures import Enclosure, why_not_apart
from leadline.core.system.leftovers import scratch_folder, temporary_folder
from leadline.core.system.safety import usable_space

SERVERS = "servers"  # kind of a site
PARENT_BYTES_MAX = 40  # what the name of a socket has room for: 107 bytes less ours
WARM_UP_S_MIN = 1.0  # of every tool that can be a client


def server_site(workload: Workload, target: Target) -> InstanceSite:
    """Servers alike, made in a folder as they are needed; nothing is touched.

    Raises:
        UsageError: the target is neither `new` nor a folder.
        ToolError: not even one has space.
    """
    if target.kind is not TargetKind.NEW and not Path(target.name).is_dir():
        raise UsageError(
            f"--on {target.name}",
            found="no folder" if NUMBER not in target.name else "a target by number",
            expected=f"`new` or a folder, in which each instance of {workload.name} gets a server of its own",
            advice="For example --on new, or --on /srv/scratch.",
        )
    if len(os.fsencode(_parent(target))) > PARENT_BYTES_MAX:
        raise UsageError(
            f"--on {target.name}",
            found=f"{_parent(target)}, a long path",
            expected=f"at most {PARENT_BYTES_MAX} bytes: the sockets of the servers lie below it",
            advice="Name a folder nearer to the root.",
        )
    plan = benching.plan(workload, target)
    room = usable_space(str(_parent(target)))
    is_apart = not why_not_apart()
    return InstanceSite(SERVERS, plan, plan.written_bytes, room // max(plan.written_bytes, 1), is_apart)


def _parent(target: Target) -> Path:
    return temporary_folder() if target.kind is TargetKind.NEW else Path(target.name).absolute()


@dataclass(slots=True)
class Servers:
    """The servers made so far; `close` ends and removes them, safe to call twice."""

    site: InstanceSite
    groups: Groups | None
    places: list[InstancePlace] = field(default_factory=list)
    _lasting: ExitStack = field(default_factory=ExitStack)
    _base: Path | None = None

    def grow(self, count: int, folder: Path, say: Callable[[str], None]) -> None:
        """Make, start and fill what is missing up to ``count`` servers; what is there is kept.

        Raises:
            ToolError: there is no space, or a server does not start.
        """
        while len(self.places) < count:
            number = len(self.places) + 1
            say(f"making server {number}")
            place = self._place(number)
            try:
                self._driver.prepare(place.plan, _folder_of(place, folder), lambda _: None)
                if self.groups is not None:
                    limited(number, self.groups.limit)
            except BaseException:
                with suppress(LeadlineError):
                    self._driver.clean(place.plan)
                raise
            self.places.append(place)

    def _place(self, number: int) -> InstancePlace:
        if self._base is None:
            self._base = self._lasting.enter_context(scratch_folder("d", _parent(self.site.plan.target)))
            self._base.chmod(0o711)  # PostgreSQL runs as another user, and must enter it
        home = self._base / f"i{number:04}"
        home.mkdir(mode=0o711, exist_ok=True)  # making the server may have failed before
        plan = benching.plan(self.site.plan.workload, Target(str(home)))
        group = None if self.groups is None else limited(number, self.groups.make_open)
        return InstancePlace(number, replace(plan, enclosure=Enclosure(group, self.site.is_apart)), group=group)

    @property
    def _driver(self) -> Benchmark:
        return benching.carrier_of(self.site.plan)

    def measure(self, count: int, step: Step, warm_up_s: float, folder: Path) -> InstancesMeasured:
        """One round of the first ``count``, all at the same time, each after a warm-up of its own.

        Raises:
            KeyboardInterrupt: passed on after every client was ended.
        """
        places, is_over = self.places[:count], threading.Event()

        def watch(_: Tick) -> bool:
            return not is_over.is_set()

        def carried(place: InstancePlace) -> Carried:
            carrier = DriverCarrier(self._driver, place.plan, _folder_of(place, folder))
            seed = step.seed + place.number
            if warm_up_s >= WARM_UP_S_MIN:
                carrier.carry(Step(WARM_UP, warm_up_s, seed), watch)
            return carrier.carry(replace(step, seed=seed), watch)

        with ThreadPoolExecutor(count) as pool:
            clients = [pool.submit(carried, place) for place in places]
            try:
                parts = [_outcome(client) for client in clients]
            except BaseException:
                is_over.set()  # their tools end within a second, and the threads with them
                raise
        for place in places:
            shutil.rmtree(_folder_of(place, folder) / step.label, ignore_errors=True)  # every transaction: gigabytes
        return _together(places, parts)

    def recording(self, count: int, folder: Path) -> AbstractContextManager[list[str]]:
        """What is recorded while they are loaded: this machine."""
        del count
        return recording({"linux": ""}, folder)

    def close(self) -> list[Path]:
        """End and remove the servers; returns what could not be removed."""
        for place in self.places:
            with suppress(LeadlineError):
                self._driver.clean(place.plan)
        self.places.clear()
        left = [] if self.groups is None else self.groups.remove()
        self._lasting.close()
        return [*left, *([self._base] if self._base is not None and self._base.exists() else [])]


def _folder_of(place: InstancePlace, folder: Path) -> Path:
    """Where the client of an instance writes, in the folder of a run; made where it is not there."""
    client_folder = folder / f"i{place.number:04}"
    client_folder.mkdir(exist_ok=True)
    return client_folder


def _outcome(client: Future[Carried]) -> Carried | LeadlineError:
    """What a client gave, or why it failed; the others go on."""
    try:
        return client.result()
    except LeadlineError as error:
        return error


def _together(places: Sequence[InstancePlace], parts: Sequence[Carried | LeadlineError]) -> InstancesMeasured:
    """One round of all: of each its whole round as one sample."""
    seconds, results, errors = [], [], dict[int, str]()
    commands: tuple[tuple[str, ...], ...] = ()
    for place, part in zip(places, parts, strict=True):
        if isinstance(part, LeadlineError):
            errors[place.number] = str(part)
        own_results = () if isinstance(part, LeadlineError) else part.results
        commands += () if isinstance(part, LeadlineError) else part.commands
        seconds.append(tuple(_round(own_results)))
        results.append(tuple(replace(one, job=f"i{place.number:04} {one.job}") for one in own_results))
    return InstancesMeasured(tuple(seconds), tuple(results), errors, commands)


def _round(results: Sequence[Result]) -> list[Second]:
    operations = [result.operations[0] for result in results if result.operations]  # those behind it are parts of it
    histograms = [_in_ms(operation.histogram) for operation in operations if operation.histogram is not None]
    rate = sum(operation.per_s for operation in operations)
    return [Second(rate, Histogram.merged(histograms) if histograms else None)] if operations else []


def _in_ms(histogram: Histogram) -> Histogram:
    """A histogram in milliseconds, as service levels are: tools log microseconds."""
    scale = factor(histogram.unit, "ms")
    return Histogram.of(histogram.lower * scale, histogram.upper * scale, histogram.counts, "ms")
