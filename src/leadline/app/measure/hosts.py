"""Use case: the same I/O load on many machines at once, through fio's own servers, pooled and compared.

Machines are fio servers that already run, or are reached over SSH, where one is started for the time of the run.
Percentiles of all machines are those of the pooled samples: averaging them hides the slow one.
"""

from __future__ import annotations

import contextlib
import secrets
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from leadline.app.measure.fio_servers import Fleet, ServersStep
from leadline.app.measure.honouring import broken_or_none
from leadline.app.measure.remote_hosts import MachineWish
from leadline.app.measure.rounds import WARM_UP, Carried, Course, Progress, measure_rounds
from leadline.app.read.importing import import_paths
from leadline.benchmarks import fio
from leadline.core.contracts import benchmark
from leadline.core.contracts.benchmark import LoadPlan, Place
from leadline.core.contracts.importer import Request
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, LeadlineError, UsageError
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
from leadline.core.system.tools import require_program
from leadline.formats.fio.load import last_report, loads_of

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
        """The requests of all machines."""
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
        ToolError: fio is missing here.
        KeyboardInterrupt: passed on after every load was stopped and what was measured was kept.
    """
    require_fio()
    for host in hosts:
        require_remote(host)
    fleet = Fleet([host.address for host in hosts], folder)
    work = _Work(workload, tuple(hosts), fleet, folder, say, options)
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


class _Work:
    """One run under way."""

    def __init__(
        self,
        workload: Workload,
        hosts: tuple[Host, ...],
        fleet: Fleet,
        folder: Path,
        say: Callable[[str], None],
        options: HostsOptions,
    ) -> None:
        self._workload, self._hosts, self._fleet, self._folder = workload, hosts, fleet, folder
        self._say, self._options = say, options
        token = secrets.token_hex(3)  # machines may share a folder
        self._tokens = [f"{token}-{i + 1}" for i in range(len(hosts))]
        self._plans = [_plan(workload, host, host_token) for host, host_token in zip(hosts, self._tokens, strict=True)]
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
                    ),
                )
        if wishes:
            self._say(f"logging in to {_count(len(wishes))}")
        self._errors.update(self._fleet.reach(wishes))
        for index, machine in self._fleet.machines.items():
            if machine.checked.kind == "device":
                self._plans[index] = _device_plan(self._plans[index])

    def fill(self) -> None:
        """Fill what reads would find empty."""
        live = [i for i in self._live() if not (self._options.is_filled and self._hosts[i].is_blank)]
        if not live:
            return
        self._say(f"filling on {_count(len(live))}")
        jobs = {index: _fill_job(self._plans[index]) for index in live}
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
        jobs = {i: self._job(replace(step, seed=step.seed + i), self._plans[i]) for i in live}
        done = self._step(step.label, jobs, step.duration_s + fio.late_s(self._workload) - fio.LATE_S)
        if step.label == WARM_UP:
            return Carried(ticks=tuple(_ticks(done)), is_cut=done.interrupted)
        ticks = () if self._options.raw_latencies else tuple(_ticks(done))
        return Carried(tuple(self._results(step.label, done)), ticks, is_cut=done.interrupted)

    def _job(self, step: benchmark.Step, plan: LoadPlan) -> str:
        log_options = ["write_lat_log"] if self._options.raw_latencies else ["write_iops_log", "log_avg_msec"]
        values = {"write_lat_log": step.label, "write_iops_log": step.label, "log_avg_msec": "1000"}
        lines = "\n".join(f"{name}={values[name]}" for name in log_options)
        return fio.job_file(plan, step).replace("[global]", f"[global]\n{lines}", 1)

    def clean(self) -> None:
        """Remove what was made; what is behind SSH goes with the server there."""
        jobs = {index: _clean_job(self._plans[index]) for index in sorted(self._touched) if index not in self._ssh()}
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
            reported, error = _results(report, self._hosts[index].name)
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
        last = last_report(report)
        broken = None if last is None else broken_or_none(self._workload, loads_of(last))
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
    """What one machine did in all rounds it took part in: rates averaged, histograms merged."""
    each = [[o for r in part.results if r.host == host.name for o in r.operations] for part in rounds]
    each = [operations for operations in each if operations]
    histograms = [o.histogram for part in each for o in part if o.histogram is not None and o.histogram.total]
    if not histograms:
        return HostResult(host, float("nan"), None, error)
    rate, size = (
        float(np.mean([sum(getattr(o, name) for o in part) for part in each])) for name in ("per_s", "bytes_per_s")
    )
    return HostResult(host, rate, Histogram.merged(histograms), error, size)


def _count(hosts: int) -> str:
    return "1 host" if hosts == 1 else f"{hosts} hosts"


def _plan(workload: Workload, host: Host, token: str) -> LoadPlan:
    places = {}
    for number, stream in enumerate(workload.io):
        is_new_file, size = "://" not in host.path and not host.is_blank, workload.working_set_bytes(stream)
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


def _device_plan(plan: LoadPlan) -> LoadPlan:
    """The same on a device, which is there already."""
    there = plan.target.name
    places = {
        name: Place(there, p.size_bytes, is_made=False, is_device=True, link="t0") for name, p in plan.places.items()
    }
    return replace(plan, places=places)


def _fill_job(plan: LoadPlan) -> str:
    lines = ["[global]", "thread=1", "direct=1", "rw=write", "bs=1m", "refill_buffers=1", "end_fsync=1"]
    # An export whose workload only reads is not written to; one that is overwritten was named by the user.
    writes = any(stream.read_pct < 100.0 for stream in plan.workload.io)
    written = (p for p in plan.places.values() if p.is_made or p.is_device or (writes and p.path.startswith("nbd")))
    places = {place.path: place for place in written}
    for number, place in enumerate(places.values()):
        is_export = place.path.startswith("nbd")
        where = [fio.where(place), "ioengine=nbd" if is_export else "ioengine=libaio"]
        if place.is_device:  # a name that no device has would become a file in the memory of the machine
            where.append("allow_file_create=0")
        lines += [f"[fill-{number}]", *where, f"size={place.size_bytes}"]
    return "\n".join([*lines, ""]) if places else ""


def _clean_job(plan: LoadPlan) -> str:
    lines = ["[global]", "thread=1", "rw=read", "bs=4k", "size=4k", "unlink=1", "ioengine=psync"]
    new_places = [place for place in plan.places.values() if place.is_made]
    for number, place in enumerate(new_places):
        lines += [f"[clean-{number}]", fio.where(place)]
    return "\n".join([*lines, ""]) if new_places else ""


def _results(report: Path, name: str) -> tuple[list[Result], str | None]:
    """The reads and writes of a machine's report, under its name."""
    try:
        results = import_paths([report], Request(metrics=frozenset())).capture.results
    except LeadlineError as error:
        return [], f"its report: {error.found}"
    loaded = []
    for result in results:
        operations = tuple(o for o in result.operations if o.name in ("read", "write") and o.count > 0)
        if operations:
            loaded.append(replace(result, operations=operations, host=name))
    return loaded, None if loaded else "it did no I/O"


def _ticks(done: ServersStep) -> list[Tick]:
    """Operations of all machines per second, of the seconds all of them have; NaN-free.

    Source: fio, Log File Formats: time (ms), value, direction, block size, offset, priority.
    """
    hosts: list[dict[int, float]] = []
    for index in done.reports:
        seconds: dict[int, float] = defaultdict(float)
        for path in done.logs.get(index, ()):
            for stamp, value in _log_lines(path):
                seconds[round(stamp / 1000.0)] += value
        hosts.append(seconds)
    if not hosts:
        return []
    common = sorted(set.intersection(*(set(seconds) for seconds in hosts)))
    return [Tick(float(second), sum(seconds[second] for seconds in hosts)) for second in common if second > 0]


def _log_lines(path: Path) -> Iterator[tuple[float, float]]:
    with contextlib.suppress(OSError), path.open(encoding="ascii", errors="replace") as stream:
        for line in stream:
            stamp, _, rest = line.partition(",")
            with contextlib.suppress(ValueError):
                yield float(stamp), float(rest.partition(",")[0])


def require_fio() -> None:
    """Say at once when there is no fio here.

    Raises:
        ToolError: it is not installed.
    """
    require_program("fio", "fio here and on every machine")
