"""Use case: the same I/O load on many machines at once, by fio's servers or by vdbench, pooled and compared.

What is of one tool alone is in `FioHosts` and `VdbenchHosts`; everything else is the same for both. Machines are fio
servers that already run, or are reached over SSH, where one is started for the time of the run.
Percentiles of all machines are those of the pooled samples: averaging them hides the slow one.
"""

from __future__ import annotations

import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

import numpy as np

from leadline.app.measure.fio_hosts import FioHosts
from leadline.app.measure.fio_servers import Fleet, ServersStep
from leadline.app.measure.remote_hosts import MachineWish, RemoteMachine
from leadline.app.measure.rounds import WARM_UP, Carried, Course, Progress, measure_rounds
from leadline.app.measure.vdbench_hosts import VdbenchHosts
from leadline.benchmarks import fio
from leadline.core.contracts import benchmark
from leadline.core.contracts.benchmark import LoadPlan, Place
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Result, Tick, Watch
from leadline.core.model.run import Round, Run, percentiles
from leadline.core.model.workload import Workload
from leadline.core.statistics.steady import SteadyState
from leadline.core.system.extras import require
from leadline.core.system.opened import is_text, printable
from leadline.core.system.safety import require_named, system_place
from leadline.core.system.secret import Secret, possible, remember
from leadline.core.system.ssh import SCHEME, parse_login

OUTLIER = 3.0  # Judgement: a machine whose p95 is three times the median of all, or a third of its rate
TOGETHER = 0.95  # Judgement: share of a round in which all ran, below which a rate of all is not one of all together
GUIDE = "docs/guides/hosts.md"
SERVERS_FOLDER = "/proc/self/cwd"  # the folder that a fio server was started in
FILL_S = 3600.0
CLEAN_S = 30.0
SEEDS_BETWEEN = 1000  # of two steps, so that a machine has another seed in each


@dataclass(frozen=True, slots=True)
class Host:
    """A machine: a fio server as fio's client takes it (``host`` or ``host,port``) or ``ssh://…``, and its target.

    ``is_blank`` says that the target is a device with nothing on it, made for this load: it is filled and overwritten.
    ``label`` tells several targets of one address apart; without one, results go by the address.
    """

    address: str
    path: str
    is_blank: bool = False
    label: str = ""

    @property
    def name(self) -> str:
        """What its results go by."""
        return self.label or self.address

    @property
    def is_ssh(self) -> bool:
        """Whether it is reached over SSH."""
        return self.address.startswith(SCHEME)


@dataclass(frozen=True, slots=True)
class HostsOptions:
    """How machines are loaded.

    Attributes:
        password: for SSH where keys do not do; neither shown nor stored.
        destroy: targets that may be overwritten, each named by the user.
        keep: called after the warm-up and every round with what there is.
        raw_latencies: keep the latency of every request in files (fio's latency logs) instead of rates per second.
        is_filled: devices made for this load hold data already and are not filled again.
    """

    password: Secret = field(default_factory=Secret, repr=False, compare=False)
    destroy: tuple[str, ...] = ()
    keep: Callable[[HostsResult], None] | None = None
    raw_latencies: bool = False
    is_filled: bool = False


@dataclass(frozen=True, slots=True)
class HostResult:
    """What one machine did; ``error`` says why it did not, or not to the end."""

    host: Host
    per_s: float
    histogram: Histogram | None
    error: str | None = None
    bytes_per_s: float = float("nan")
    facts: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @property
    def p95_ms(self) -> float:
        """95th percentile of its requests; NaN when it did none."""
        return float("nan") if self.histogram is None else self.histogram.quantile(0.95)


@dataclass(frozen=True, slots=True)
class HostsResult:
    """All machines together.

    Attributes:
        start_spread_s: the most that lay between the first and the last start of a round; NaN when not measured.
        together: the smallest share of a round in which all machines ran; NaN when not measured.
    """

    hosts: tuple[HostResult, ...]
    rounds: tuple[Round, ...] = ()
    warm_up: SteadyState | None = None
    start_spread_s: float = float("nan")
    together: float = float("nan")
    commands: tuple[tuple[str, ...], ...] = ()

    def onto(self, run: Run) -> Run:
        """Return a run as it was before it was measured, with what was measured."""
        versions = {result.tool_version for part in self.rounds for result in part.results if result.tool_version}
        version = ", ".join(sorted(versions)) or None
        return replace(run, commands=self.commands, tool_version=version, warm_up=self.warm_up, rounds=self.rounds)

    @property
    def histogram(self) -> Histogram | None:
        """The requests of all machines; None where one that did some has no histogram of them."""
        if any(host.histogram is None and host.per_s == host.per_s for host in self.hosts):
            return None
        parts = [host.histogram for host in self.hosts if host.histogram is not None]
        return Histogram.merged(parts) if parts else None

    @property
    def per_s(self) -> float:
        """Operations per second of all machines that did not fail."""
        return float(sum(host.per_s for host in self.hosts if host.error is None))

    @property
    def bytes_per_s(self) -> float:
        """Bytes per second of all machines that did not fail."""
        return float(sum(host.bytes_per_s for host in self.hosts if host.error is None))

    def percentiles_ms(self) -> dict[str, tuple[float, int]]:
        """Of the pooled requests: name -> (ms, samples above it)."""
        whole = self.histogram
        return {} if whole is None else percentiles(whole)

    def outliers(self) -> list[HostResult]:
        """Machines far from the median of all that did not fail."""
        good = [host for host in self.hosts if host.error is None and host.histogram is not None]
        if len(good) < 3:
            return []
        p95, rate = (float(np.median([getattr(host, name) for host in good])) for name in ("p95_ms", "per_s"))
        return [host for host in good if host.p95_ms > OUTLIER * p95 or host.per_s * OUTLIER < rate]

    def median_of_others(self, one: HostResult) -> tuple[float, float]:
        """Median p95 (ms) and operations per second of all that did not fail, but one; NaN when it is the only one."""
        rest = [host for host in self.hosts if host is not one and host.error is None and host.histogram is not None]
        if not rest:
            return float("nan"), float("nan")
        return float(np.median([host.p95_ms for host in rest])), float(np.median([host.per_s for host in rest]))

    def start_sentence(self) -> str | None:
        """How far the machines ran together, for people; None when it was not measured."""
        if self.start_spread_s != self.start_spread_s:
            return None
        text = f"hosts started within {self.start_spread_s:.2f} s"
        if self.together == self.together:
            text += f"; all ran for {100 * self.together:.1f} % of a round"
            if self.together < TOGETHER:
                text += ": rates of all are not rates of all together; measure longer"
        return text


def read_hosts(path: Path, default: str) -> list[Host]:
    """The machines a file names, a line each: ``HOST[,PORT] [FOLDER]`` or ``ssh://[USER@]HOST[:PORT] [FOLDER]``.

    ``#`` begins a comment.

    Raises:
        InputError: not readable, a line of more words, a machine named twice, a password, or none.
    """
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise _wrong(str(path), f"not readable ({error})") from error
    hosts_by_address: dict[str, Host] = {}
    for number, line in enumerate(lines, start=1):
        for guess in possible(line.strip()):
            remember(guess)  # whatever is wrong, no error may repeat it
        words = line.partition("#")[0].split()
        if not words:
            continue
        where = f"{path}:{number}"
        if words[0].startswith(SCHEME):
            try:
                parse_login(words[0])
            except ValueError as error:
                raise _wrong(where, str(error)) from None
        elif any(possible(word) for word in words):
            raise _wrong(where, "a password in an address")
        if len(words) > 2 or words[0] in hosts_by_address or words[0].startswith("-"):
            raise _wrong(where, f"{line.strip()[:60]!r}")
        hosts_by_address[words[0]] = Host(words[0], words[1] if len(words) > 1 else default)
    if not hosts_by_address:
        raise _wrong(str(path), "no machine")
    return list(hosts_by_address.values())


def _wrong(where: str, cause: str) -> InputError:
    expected = "lines of HOST[,PORT] [FOLDER] or ssh://[USER@]HOST[:PORT] [FOLDER], each once"
    return InputError(where, found=cause, expected=expected, advice=f"See {GUIDE}.")


def require_destroyable(workload: Workload, hosts: Iterable[Host], destroy: Sequence[str]) -> None:
    """Refuse targets that hold data and were not named; what is behind SSH is looked at there.

    Raises:
        UsageError: an export that would be overwritten, or a device nobody can look at.
    """
    reads = all(stream.read_pct == 100.0 for stream in workload.io)
    for host in hosts:
        require_remote(host)
        device = host.path.startswith("/dev/") and not host.path.startswith("/dev/shm")
        if not host.is_ssh and (device or ("://" in host.path and not reads)):
            require_named(host.path, host.path if host.path in destroy and not device else None)


def require_remote(host: Host) -> None:
    """Refuse a target no machine may be loaded on; without SSH fio is given the path, so it must be a plain one.

    Raises:
        UsageError: it is empty, no text, an address or path fio would change, or a system folder.
        ToolError: it is behind SSH, and the package for that is not installed.
    """
    if host.is_ssh:
        require("asyncssh")
    where = f"{host.address} {printable(host.path)}"
    if not host.path or "\0" in host.path or not is_text(host.path):
        raise UsageError(
            where,
            found="an empty name or one that is no UTF-8 text",
            expected="a folder or device there",
            advice="Name a folder, for example /srv/scratch.",
        )
    if host.is_ssh and "://" not in host.path:
        return  # looked at there
    fio.where(Place(host.path, 0, is_made=False))
    place = None if "://" in host.path or host.path == SERVERS_FOLDER else system_place(host.path)
    if place is not None:
        raise UsageError(
            where,
            found=f"a system folder ({place})",
            expected="a target that nothing else depends on",
            advice="Make a folder for the load alone, for example /srv/scratch.",
        )


class HostsTool(Protocol):
    """What a tool is to many hosts: its files for each step, and what its reports say.

    Attributes:
        remote_program: what is looked for on a host reached over SSH besides fio; empty for fio.
        align: working sets are multiples of so many bytes.
    """

    @property
    def remote_program(self) -> str:
        """Folder or name of the program there."""

    @property
    def align(self) -> int:
        """Bytes."""

    def require(self, targets: Sequence[tuple[str, str]]) -> None:
        """Refuse addresses and targets that the tool cannot load, before any is reached."""

    def fleet(self, addresses: Sequence[str], folder: Path) -> Fleet:
        """The hosts as the tool reaches them."""

    def placed(self, plan: LoadPlan, machine: RemoteMachine) -> LoadPlan:
        """The plan of a host reached over SSH, once it was looked at."""

    def fill_text(self, plan: LoadPlan) -> str:
        """What fills the target; empty for nothing."""

    def step_text(self, plan: LoadPlan, step: benchmark.Step) -> str:
        """What loads it for a step."""

    def clean_text(self, plan: LoadPlan) -> str:
        """What removes what was made, where no connection does it; empty for nothing."""

    def extra_s(self) -> float:
        """Seconds that a step takes beside its own."""

    def results(self, report: Path, name: str) -> tuple[list[Result], str | None]:
        """Results of a host under its name, or why there are none."""

    def ticks(self, done: ServersStep) -> list[Tick]:
        """Operations of all hosts per second."""

    def broken(self, report: Path) -> str | None:
        """Which key was not honoured."""


def hosts_tool(workload: Workload, *, raw_latencies: bool = False) -> HostsTool:
    """Return the tool that loads many hosts as a workload asks.

    Raises:
        UsageError: the workload is not of kind io, or vdbench cannot do what it asks.
    """
    if workload.kind != "io":
        raise UsageError(
            f"workload {workload.name}",
            found=f"kind {workload.kind}",
            expected="io",
            advice="On many hosts disks are loaded; run other loads on one.",
        )
    return VdbenchHosts(workload) if workload.tool == "vdbench" else FioHosts(workload, raw_latencies)


def require_loadable(workload: Workload, hosts: Iterable[Host]) -> None:
    """Refuse what the tool of a workload cannot do on these hosts, before any is reached.

    Raises:
        UsageError: a key, an address or a target that the tool does not take.
        ToolError: fio is to load them, and is missing here.
    """
    hosts_tool(workload).require([(host.address, host.path) for host in hosts])


def load_hosts(  # the public way in
    workload: Workload,
    hosts: Sequence[Host],
    folder: Path,
    *,
    seed: int,
    say: Callable[[str], None],
    options: HostsOptions = HostsOptions(),
) -> HostsResult:
    """Fill, load and clean all machines together; those that fail are kept apart with the reason.

    Raises:
        UsageError: the tool of the workload cannot load these hosts.
        ToolError: fio is missing here.
        KeyboardInterrupt: passed on after every load was stopped and what was measured was kept.
    """
    tool = hosts_tool(workload, raw_latencies=options.raw_latencies)
    tool.require([(host.address, host.path) for host in hosts])
    for host in hosts:
        require_remote(host)
    fleet = tool.fleet([host.address for host in hosts], folder)
    work = _Work(workload, tuple(hosts), _Reached(tool, fleet, folder), say, options)
    try:
        with fleet:
            try:
                work.reach()
                work.fill()
                work.measure(seed)
            finally:
                work.clean()
    finally:
        done = work.result()
        if options.keep is not None:
            options.keep(done)  # with what was said when they were let go
    return done


@dataclass(frozen=True, slots=True)
class _Reached:
    """The tool of a run, its hosts, and the folder that is kept."""

    tool: HostsTool
    fleet: Fleet
    folder: Path


class _Work:
    """One run under way."""

    def __init__(
        self,
        workload: Workload,
        hosts: tuple[Host, ...],
        reached: _Reached,
        say: Callable[[str], None],
        options: HostsOptions,
    ) -> None:
        self._workload, self._hosts = workload, hosts
        self._tool, self._fleet, self._folder = reached.tool, reached.fleet, reached.folder
        self._say, self._options = say, options
        token = secrets.token_hex(3)  # machines may share a folder
        self._tokens = [f"{token}-{i + 1}" for i in range(len(hosts))]
        self._plans = [
            _plan(workload, host, host_token, self._tool.align)
            for host, host_token in zip(hosts, self._tokens, strict=True)
        ]
        self._errors: dict[int, str] = {}
        self._notes: dict[int, list[str]] = defaultdict(list)
        self._touched: set[int] = set()
        self._progress = Progress()
        self._spread_s: list[float] = []
        self._together: list[float] = []

    def reach(self) -> None:
        """Log in where it takes SSH."""
        wishes = {}
        for index, host in enumerate(self._hosts):
            if host.is_ssh:
                login = replace(parse_login(host.address), password=self._options.password)
                places = self._plans[index].places.values()
                wishes[index] = (
                    login,
                    MachineWish(
                        host.path,
                        host.path in self._options.destroy,
                        _made_name(self._tokens[index]),
                        tuple(place.size_bytes for place in places),
                        self._folder / f"linux-{index + 1}.txt",
                        vdbench=self._tool.remote_program,
                    ),
                )
        if wishes:
            self._say(f"logging in to {_count(len(wishes))}")
        self._errors.update(self._fleet.reach(wishes))
        for index, machine in self._fleet.machines.items():
            self._plans[index] = self._tool.placed(self._plans[index], machine)

    def fill(self) -> None:
        """Fill what reads would find empty."""
        live = [i for i in self._live() if not (self._options.is_filled and self._hosts[i].is_blank)]
        if not live:
            return
        self._say(f"filling on {_count(len(live))}")
        jobs = {index: self._tool.fill_text(self._plans[index]) for index in live}
        self._touched |= jobs.keys()
        self._step("fill", {index: job for index, job in jobs.items() if job}, FILL_S)

    def measure(self, seed: int) -> None:
        """The warm-up and the rounds."""
        timing = self._workload.timing
        course = Course(self._workload, seed, min(timing.warm_up_s, timing.measure_s), seed_stride=SEEDS_BETWEEN)
        measure_rounds(course, self, keep=self._keep)

    def _keep(self, progress: Progress) -> None:
        self._progress = progress
        if self._options.keep is not None:
            self._options.keep(self.result())

    def carry(self, step: benchmark.Step, watch: Watch) -> Carried | None:
        """Load every machine that has not failed; None when all have."""
        del watch  # what a second gave is known when the step is over
        live = self._live()
        if not live:
            return None
        self._say(f"{step.label} on {_count(len(live))}, {step.duration_s:.0f} s")
        jobs = {i: self._tool.step_text(self._plans[i], replace(step, seed=step.seed + i)) for i in live}
        done = self._step(step.label, jobs, step.duration_s + self._tool.extra_s())
        ticks = tuple(self._tool.ticks(done))
        if step.label == WARM_UP:
            return Carried(ticks=ticks, is_cut=done.interrupted)
        return Carried(tuple(self._results(step.label, done)), ticks, is_cut=done.interrupted)

    def clean(self) -> None:
        """Remove what was made; what is behind SSH goes with the server there."""
        jobs = {
            index: self._tool.clean_text(self._plans[index])
            for index in sorted(self._touched)
            if index not in self._ssh()
        }
        jobs = {index: job for index, job in jobs.items() if job}
        if jobs:
            self._say("removing what was made")
            for index in self._fleet.step("clean", jobs, CLEAN_S).failed:
                if "cannot be reached" not in self._errors.get(index, "").removeprefix("fill: "):
                    paths = ", ".join(place.path for place in self._plans[index].places.values() if place.is_made)
                    self._notes[index].append(f"could not be cleaned; left there: {paths}")

    def _ssh(self) -> set[int]:
        return {index for index, host in enumerate(self._hosts) if host.is_ssh}

    def _live(self) -> list[int]:
        return [index for index in range(len(self._hosts)) if index not in self._errors]

    def _step(self, label: str, jobs: dict[int, str], seconds: float) -> ServersStep:
        done = self._fleet.step(label, jobs, seconds)
        if not done.interrupted:
            self._errors.update(done.failed)
        elif label == "fill":
            raise KeyboardInterrupt
        return done

    def _results(self, label: str, done: ServersStep) -> list[Result]:
        """What the machines report of a round; how far they ran together is noted."""
        results: list[Result] = []
        ran: dict[int, float] = {}
        for index, report in done.reports.items():
            reported, error = self._tool.results(report, self._hosts[index].name)
            if error is not None and not done.interrupted:
                self._errors[index] = f"{label}: {error}"
            results += reported
            if not done.interrupted:
                self._require_load(label, index, report)
            ran[index] = max((result.duration_s for result in reported), default=float("nan"))
        starts = {index: done.started_s[index] for index in ran if index in done.started_s}
        if len(starts) > 1:
            ends = [begun + ran[index] for index, begun in starts.items()]
            self._spread_s.append(max(starts.values()) - min(starts.values()))
            self._together.append(max(min(ends) - max(starts.values()), 0.0) / max(ran.values()))
        return results

    def _require_load(self, label: str, index: int, report: Path) -> None:
        """Set a machine apart whose load was not the one that was asked for."""
        broken = self._tool.broken(report)
        if broken is not None:
            self._errors.setdefault(index, f"{label}: another load ran: {broken}")

    def result(self) -> HostsResult:
        """What there is by now."""
        parts = []
        for index, host in enumerate(self._hosts):
            machine = self._fleet.machines.get(index)
            facts = {} if machine is None else machine.checked.facts
            notes = (*self._fleet.notes.get(index, ()), *self._notes[index])
            host_part = host_result(host, self._progress.rounds, self._errors.get(index))
            parts.append(replace(host_part, facts=facts, notes=notes))
        worst = max(self._spread_s, default=float("nan")), min(self._together, default=float("nan"))
        return HostsResult(
            tuple(parts), self._progress.rounds, self._progress.warm_up, *worst, tuple(self._fleet.commands)
        )


def host_result(host: Host, rounds: Iterable[Round], error: str | None) -> HostResult:
    """What one machine did in all rounds it took part in: rates averaged, histograms merged if every round has them."""
    each = [[o for r in part.results if r.host == host.name for o in r.operations] for part in rounds]
    each = [operations for operations in each if operations]
    if not each:
        return HostResult(host, float("nan"), None, error)
    histograms = [o.histogram for part in each for o in part if o.histogram is not None and o.histogram.total]
    is_whole = all(o.histogram is not None for part in each for o in part)  # else its latency is not measured
    rate, size = (
        float(np.mean([sum(getattr(o, name) for o in part) for part in each])) for name in ("per_s", "bytes_per_s")
    )
    return HostResult(host, rate, Histogram.merged(histograms) if histograms and is_whole else None, error, size)


def _count(hosts: int) -> str:
    return "1 host" if hosts == 1 else f"{hosts} hosts"


def _plan(workload: Workload, host: Host, token: str, align: int) -> LoadPlan:
    places = {}
    for number, stream in enumerate(workload.io):
        is_new_file, size = (
            "://" not in host.path and not host.is_blank,
            -(-workload.working_set_bytes(stream) // align) * align,
        )
        path, link = host.path, ""
        if is_new_file and host.is_ssh:  # the script there makes the folder, and fio works in it
            link = f"t{number}"
            path = f"{host.path.rstrip('/')}/{_made_name(token)}/{link}"
        elif is_new_file:
            path = f"{host.path.rstrip('/')}/leadline-bench-{token}-{number}.dat"
        places[stream.name] = Place(path, size, is_made=is_new_file, is_device=host.is_blank, link=link)
    return LoadPlan(workload, Target(host.path), places, engine=workload.io_settings.engine_elsewhere())


def _made_name(token: str) -> str:
    return f"leadline-bench-{token}"
