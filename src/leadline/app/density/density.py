"""Use case: how many instances of a workload fit before one of them loses its service level.

Every count is a separate run in the run store; their names begin with the name of the density run, whose summary is a
file beside them.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

from leadline.app.density.guests import GUESTS, Guests, guest_site
from leadline.app.density.hosts import HostsCarrier
from leadline.app.density.instances import (
    Instances,
    InstanceSite,
    InstancesMeasured,
    bytes_per_s,
    instances_of,
    left_behind,
    offered_per_s,
    site_of,
)
from leadline.app.density.model import (
    ROUND_COUNT_MIN,
    Clause,
    CountLevel,
    CountState,
    Instance,
    judge,
    parse_service_level,
    total_seconds,
)
from leadline.app.density.results import Density, keep, stored
from leadline.app.density.servers import SERVERS, Servers, server_site
from leadline.app.density.steps import StepRule, counted, next_count
from leadline.app.measure import benching
from leadline.app.measure.hosts import Host
from leadline.app.measure.kept_runs import Kept, begun_run, host_facts, keeping
from leadline.app.measure.rounds import SILENT, Carried, Carrier, Course, Progress, Talk, measure_rounds
from leadline.app.measure.workloads import require_fio
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.result import Result, Tick, Watch
from leadline.core.model.run import BEHIND_MIN, PERCENTILES, Round
from leadline.core.model.workload import Workload
from leadline.core.statistics.resampling import SAMPLE_COUNT_MIN
from leadline.core.statistics.steady import steady_state
from leadline.core.system.cgroups import Groups, Hierarchies, InstanceLimits, disk_under, find, remove_leftovers
from leadline.core.system.enclosures import why_not_apart
from leadline.core.system.leftovers import temporary_folder
from leadline.core.system.tools import TOOLS, examine, require_program
from leadline.stores.runs import RunStore

KINDS = ("io", "database", "web")  # of workloads whose instances can be added
SEEDS_BETWEEN = 10_000  # of two rounds, so that every instance has another seed in each


@dataclass(frozen=True, slots=True)
class DensityRequest:
    """What was asked for; ``hosts`` are machines in the order they are added, empty for local instances."""

    workload: Workload
    target: Target
    clauses: tuple[Clause, ...]
    rule: StepRule = field(default_factory=StepRule)
    limits: InstanceLimits = field(default_factory=InstanceLimits)
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True, slots=True)
class DensityPlan:
    """What a density run will do, before anything is touched."""

    request: DensityRequest
    site: InstanceSite | None
    rule: StepRule
    clauses: tuple[Clause, ...]
    offered_per_s: float
    notes: tuple[str, ...]
    groups: Hierarchies | None = None
    device: str | None = None

    @property
    def facts(self) -> dict[str, str]:
        """Conditions: of this machine, and of the guests where instances are such."""
        return {**host_facts(), **({} if self.site is None else self.site.plan.facts)}

    @property
    def round_s(self) -> float:
        """Length of a round with its warm-up."""
        timing = self.request.workload.timing
        return timing.warm_up_s + timing.measure_s + 1.0


def make_plan(request: DensityRequest) -> DensityPlan:
    """What will be done; nothing is touched.

    Raises:
        UsageError: the target may not be used, or the service level cannot be judged on this workload.
        ToolError: fio is missing, or there is no space.
    """
    workload, rule = request.workload, request.rule
    rule.check()
    request.limits.check()
    if len(workload.io) > 1 and fio.lead_s(workload) and not request.hosts:
        raise UsageError(
            f"workload {workload.name}",
            found="bursts beside other streams",
            expected="one stream with bursts, or streams without",
            advice="fio stops all streams of an instance in the pause of one; measure it with bench run.",
        )
    if workload.kind not in KINDS or (request.hosts and workload.kind != "io"):
        raise UsageError(
            f"workload {workload.name}",
            found=f"kind {workload.kind}" + (" with --hosts" if request.hosts else ""),
            expected="io" if request.hosts else f"one of {', '.join(KINDS)}",
            advice="Machines are loaded by fio; other instances are servers of their own on this machine.",
        )
    if workload.kind == "io":
        require_fio(workload, "Leave io_settings.tool out: instances are jobs of fio.")
    driver = benching.driver_of(workload)[1].META.program
    require_program(driver, f"{driver}, which makes the load")
    notes: list[str] = []
    if request.hosts:
        if request.limits.controllers:
            raise UsageError(
                "--hosts", found="limits", expected="machines as they are", advice="Limit the machines themselves."
            )
        site, offered = None, _rate(workload)
        rule = _capped(rule, len(request.hosts), "machines in the file", notes)
    else:
        site = _site(request, notes)
        offered = _offered_per_s(workload)
        if site.capacity is not None:
            rule = _capped(rule, site.capacity, _fitting(site, request.target.name), notes)
    clauses = _usable(request.clauses, offered, notes)
    if workload.io and offered == offered and not any(clause.is_rate for clause in clauses):  # noqa: PLR0124 - NaN
        notes.append(
            "latency counts from when a request is issued: an instance that falls behind shows it in its rate, not "
            "there; consider adding per_s>=0.95 of offered"
        )
    _require_samples(workload, clauses, offered, by_rounds=bool(request.hosts) or workload.kind != "io")
    groups, device = _groups(request, notes)
    return DensityPlan(request, site, rule, clauses, offered, tuple(notes), groups, device)


def _offered_per_s(workload: Workload) -> float:
    """Requests or transactions per second one instance asks for; NaN for a closed loop."""
    if workload.database is not None:
        rate = workload.database.rate_per_s
        return float("nan") if rate is None else rate
    return offered_per_s(workload) if workload.io else float("nan")


def _site(request: DensityRequest, notes: list[str]) -> InstanceSite:
    if request.workload.kind != "io":
        why = why_not_apart()
        notes.extend([f"servers share the network and processes of this machine: {why}"] if why else [])
        return server_site(request.workload, request.target)
    if request.target.kind is not TargetKind.LAB_GUEST:
        return site_of(request.workload, request.target)
    if request.limits.controllers:
        raise UsageError(
            "--on lab:",
            found="limits",
            expected="guests as the lab file has them",
            advice="Limit them in the lab file.",
        )
    return guest_site(request.workload, request.target)


def _rate(workload: Workload) -> float:
    rates = [s.rate_iops for s in workload.io if s.burst is None]
    if len(rates) < len(workload.io) or None in rates:
        return float("nan")
    return float(sum(rate.read + rate.write for rate in rates if rate is not None))


def _fitting(site: InstanceSite, name: str) -> str:
    if site.kind == SERVERS:
        return f"servers of {site.each_bytes / 2**20:.0f} MiB there is room for"
    if site.kind == GUESTS:
        return f"guests there is memory and space for of {name}"
    room_text = (
        "there is room for in" if site.kind == "folder" else f"stretches of {site.each_bytes / 2**20:.0f} MiB of"
    )
    return f"{room_text} {name}"


def _capped(rule: StepRule, capacity: int, room_text: str, notes: list[str]) -> StepRule:
    if rule.most <= capacity:
        return rule
    if capacity < rule.start:
        raise ToolError(
            "bench density",
            found=f"{capacity} {room_text}",
            expected=f"at least {rule.start}, the first count",
            advice="A smaller --set-size, another target, or a smaller --start.",
        )
    notes.append(f"the search ends at {capacity}: that many {room_text}")
    return replace(rule, most=capacity)


def _usable(clauses: Sequence[Clause], offered: float, notes: list[str]) -> tuple[Clause, ...]:
    """The clauses that can be judged: a closed loop takes what it gets, so it has no service level by throughput."""
    has_rate = offered == offered  # noqa: PLR0124 - NaN is no rate
    kept = tuple(clause for clause in clauses if has_rate or not clause.is_rate)
    if not kept:
        raise UsageError(
            "--service-level",
            found="throughput of a workload without a steady rate",
            expected="a latency, or a workload with rate_iops in every stream and no bursts",
            advice="A closed loop takes what it gets, so its throughput breaks nothing; see docs/guides/density.md.",
        )
    if len(kept) < len(clauses):
        notes.append("the workload has no steady rate: a closed loop takes what it gets, so only latency is judged")
    return kept


def _require_samples(workload: Workload, clauses: Sequence[Clause], offered: float, *, by_rounds: bool) -> None:
    """Refuse to measure too short to judge anything."""
    timing = workload.timing
    seconds = timing.measure_s * timing.rounds
    if by_rounds and timing.rounds < ROUND_COUNT_MIN:
        raise UsageError(
            "--rounds",
            found=str(timing.rounds),
            expected=f"at least {ROUND_COUNT_MIN}: only whole rounds of a machine or a server are known",
            advice=f"--rounds {ROUND_COUNT_MIN}, or better 5 and more: the fewer, the wider the interval.",
        )
    # Instances begin and end within a second: a round has one whole second less than it lasts.
    lost_s = 0 if by_rounds else timing.rounds
    if not by_rounds and seconds - lost_s < SAMPLE_COUNT_MIN:
        raise UsageError(
            "--seconds and --rounds",
            found=f"{seconds:g} s at each count",
            expected=f"at least {SAMPLE_COUNT_MIN + lost_s} s in all, to know the spread: a round loses a second",
            advice="For example --seconds 10 --rounds 2.",
        )
    for clause in clauses:
        above = offered * (seconds - lost_s) * (1.0 - PERCENTILES.get(clause.metric, 0.0))
        if not clause.is_rate and above < BEHIND_MIN:
            needed = BEHIND_MIN / (1.0 - PERCENTILES[clause.metric]) / offered + lost_s
            raise UsageError(
                "--service-level",
                found=f"{above:.0f} requests of an instance above its {clause.metric}",
                expected=f"at least {BEHIND_MIN}",
                advice=f"Measure at least {math.ceil(needed)} s at each count, or ask for a lower percentile.",
            )


def _groups(request: DensityRequest, notes: list[str]) -> tuple[Hierarchies | None, str | None]:
    limits = request.limits
    if not limits.controllers:
        return None, None
    device = None
    if limits.iops is not None:
        name = str(temporary_folder()) if request.target.kind is TargetKind.NEW else request.target.name
        device = None if request.target.is_address or "{n}" in name else disk_under(Path(name))
        if device is None:
            raise UsageError(
                "--iops",
                found=f"no disk of this machine under {name}",
                expected="a folder or device on a local disk",
                advice="Give the workload a rate_iops instead.",
            )
    groups = find(limits)
    if isinstance(groups, str):
        notes.append(f"without limits: {groups}")
        return None, None
    return groups, device


def resume_plan(store: RunStore, name: str, destroy: str | None) -> tuple[DensityPlan, Density]:
    """What is left to do of a density run that was cut; the counts it measured are kept.

    ``destroy`` names a target whose data may go, as it had to be named the first time.

    Raises:
        UsageError: there is no such run, it is done or still running, or its limits cannot be set any more.
    """
    before = stored(store, name)
    if before.is_done or before.is_running:
        raise UsageError(
            f"--resume {name}",
            found="it is done" if before.is_done else "it is still running",
            expected="a density run that was cut",
            advice="Leave out --resume to measure anew.",
        )
    plan = make_plan(
        DensityRequest(
            Workload.model_validate(before.workload),
            Target(before.target, destroy),
            parse_service_level(", ".join(before.clauses)),
            before.rule,
            before.limits,
            tuple(Host(*pair) for pair in before.hosts),
        )
    )
    if (plan.groups is not None) != before.are_limited:
        raise UsageError(
            f"--resume {name}",
            found=f"its instances were {'' if before.are_limited else 'not '}limited by control groups",
            expected="the same now: counts are compared with each other",
            advice="Run it where it was begun, or measure anew.",
        )
    return plan, before


def run_density(
    plan: DensityPlan,
    store: RunStore,
    *,
    seed: int | None = None,
    talk: Talk = SILENT,
    before: Density | None = None,
) -> Density:
    """Add instances step by step until the service level breaks; kept after every count and whatever ends it.

    Ctrl-C stops the load, removes what was made and returns what was measured, in state ``interrupted``. ``before`` is
    a run that was cut, and is continued.

    Raises:
        ToolError: the tool fails at the very first count.
    """
    density = _begun(plan, seed) if before is None else _continued(plan, before)
    density = replace(density, process=os.getpid(), notes=(*density.notes, *_leftovers(plan, talk)))
    keep(density, store)
    work = _Work(plan, store, density, talk)
    state = "failed"
    try:
        while (count := next_count({level.count: level.state for level in density.levels}, plan.rule)) is not None:
            density = replace(density, levels=(*density.levels, work.level(count, first=not density.levels)))
            keep(density, store)
            talk.note(_level_sentence(density.levels[-1]))
        state = "done"
    except KeyboardInterrupt:
        state = "interrupted"
    finally:
        left = tuple(f"could not be removed: {path}" for path in work.close())
        density = replace(density, state=state, process=None, notes=(*density.notes, *left))
        keep(density, store)
    return density


def _begun(plan: DensityPlan, seed: int | None) -> Density:
    request, began = plan.request, datetime.now(UTC)
    return Density(
        id=f"{began:%Y%m%d-%H%M%S}-density-{request.workload.name}-{secrets.token_hex(2)}",
        state="running",
        workload=request.workload.plain(),
        target=request.target.name if plan.site is None else plan.site.plan.target.name,
        hosts=tuple((host.address, host.path) for host in request.hosts),
        started=began.isoformat(timespec="seconds"),
        seed=secrets.randbelow(2**30) if seed is None else seed,
        clauses=tuple(map(str, plan.clauses)),
        rule=plan.rule,
        offered_per_s=plan.offered_per_s,
        limits=request.limits,
        are_limited=plan.groups is not None,
        notes=plan.notes,
        host=plan.facts,
    )


def _continued(plan: DensityPlan, before: Density) -> Density:
    now = plan.facts
    unlike = [f"{key} {before.host.get(key)}, then {now[key]}" for key in now if before.host.get(key) != now[key]]
    measured = ", ".join(str(level.count) for level in before.levels) or "nothing"
    note = f"continued at {datetime.now(UTC).isoformat(timespec='seconds')}; measured before: {measured}"
    return replace(before, state="running", notes=(*before.notes, note, *(f"not alike: {text}" for text in unlike)))


def _leftovers(plan: DensityPlan, talk: Talk) -> list[str]:
    """What killed runs left: their empty control groups are removed, their files told."""
    leftovers = []
    where = plan.groups or find(InstanceLimits(cpus=1.0))
    if isinstance(where, Hierarchies):
        leftovers += [f"removed the control group of a killed run: {path}" for path in remove_leftovers(where)]
    if plan.site is not None and plan.site.kind == "folder":
        for path in left_behind(Path(plan.request.target.name)):
            leftovers.append(f"left by a killed run, remove it: {path}")
    for note in leftovers:
        talk.note(note)
    return leftovers


def _level_sentence(level: CountLevel) -> str:
    reasons = f": {level.reasons[0]}" if level.reasons else ""
    return f"{level.count}: {level.state.value}{reasons}"


class _Work:
    """What lasts over the counts: the instances, and where they are measured."""

    def __init__(self, plan: DensityPlan, store: RunStore, whole: Density, talk: Talk) -> None:
        self._plan, self._store, self._whole, self._seed, self._talk = plan, store, whole, whole.seed, talk
        request = plan.request
        groups = None if plan.groups is None else Groups(plan.groups, request.limits, plan.device)
        self._tool, driver = benching.driver_of(request.workload)
        self._program = driver.META.program
        self._instances: Instances | Guests | Servers | None = None
        if plan.site is not None and plan.site.kind == SERVERS:
            self._instances = Servers(plan.site, groups)
        elif plan.site is not None and plan.site.kind == GUESTS:
            self._instances = Guests(plan.site)
        elif plan.site is not None:
            self._instances = Instances(request.workload, request.target, plan.site, groups)

    def level(self, count: int, *, first: bool) -> CountLevel:
        """Measure one count, as a separate run; its rounds are kept whatever ends it."""
        workload = self._plan.request.workload
        target = self._whole.hosts[0][1] if self._whole.hosts else self._whole.target
        run = begun_run(
            workload.name,
            workload.plain(),
            seed=self._seed,
            id=f"{self._whole.id}-n{count:04}",
            tool=self._tool,
            target=f"{count} x {target}",
            host=self._plan.facts,
            notes=(f"{counted(count)} of the density run {self._whole.id}",),
        )
        with keeping(run, self._store) as kept:
            level = self._on_hosts(count, kept) if self._instances is None else self._here(count, kept, first)
            kept.run = replace(kept.run, notes=(*kept.run.notes, f"service level {level.state.value}", *level.reasons))
            kept.state = "done" if level.state is not CountState.FAILED else "failed"
        return replace(level, run=run.id)

    def _on_hosts(self, count: int, kept: Kept) -> CountLevel:
        request, folder = self._plan.request, self._store.files_of(kept.run.id)
        carrier = HostsCarrier(request.workload, request.hosts[:count], folder, self._talk)
        self._rounds(carrier, f"{count} machines", request.workload.timing.measure_s, kept)
        return self._judged(carrier.instances())

    def _here(self, count: int, kept: Kept, first: bool) -> CountLevel:
        instances = cast("Instances | Guests | Servers", self._instances)
        folder = self._store.files_of(kept.run.id)
        self._talk.phase(f"preparing {counted(count)}", 0.0)
        try:
            instances.grow(count, folder, self._talk.note)
        except LeadlineError as error:
            if first:
                raise
            return _failed(count, str(error))
        carrier = _InstancesCarrier(
            instances, self._program, count, self._plan.request.workload.timing.warm_up_s, folder
        )
        with instances.recording(count, folder) as notes:
            self._rounds(carrier, counted(count), self._plan.round_s, kept)
        for path in folder.glob("i*-round-*.json"):
            path.unlink()  # what it says is in the run; a hundred instances would leave a gigabyte
        kept.run = replace(kept.run, notes=(*kept.run.notes, *notes))
        level = self._judged(instances_of(instances.places[:count], carrier.measured))
        return replace(level, notes=(*level.notes, *self._unsteady(kept.run.rounds)))

    def _rounds(self, carrier: Carrier, who: str, shown_s: float, kept: Kept) -> None:
        before = kept.run
        named = Talk(
            lambda phase, seconds: self._talk.phase(f"{who}, {phase}", seconds), self._talk.tick, self._talk.note
        )
        course = Course(self._plan.request.workload, self._seed, 0.0, seed_stride=SEEDS_BETWEEN, shown_s=shown_s)

        def keep(progress: Progress) -> None:
            kept.run = progress.onto(before)

        measure_rounds(course, carrier, keep=keep, talk=named)

    def _judged(self, instances: Sequence[Instance]) -> CountLevel:
        return judge(instances, self._plan.clauses, offered_per_s=self._plan.offered_per_s, seed=self._seed)

    def _unsteady(self, rounds: Sequence[Round]) -> list[str]:
        sentences = []
        for part in rounds:
            times, rates = [tick.elapsed_s for tick in part.ticks], [tick.per_s for tick in part.ticks]
            state = steady_state(times, rates, self._plan.request.workload.steady)
            if state.window_count and not state.steady:
                sentences.append(f"{part.label} {state.sentence()}")
        return sentences

    def close(self) -> list[Path]:
        """Remove what was made; returns what could not be removed."""
        return [] if self._instances is None else self._instances.close()


def _failed(count: int, why: str) -> CountLevel:
    level = judge([Instance(number, (), why if number == count else None) for number in range(1, count + 1)], ())
    return replace(level, failures=(f"instance {count}: {why}",))


@dataclass(slots=True)
class _InstancesCarrier:
    """Instances that are loaded together; each warms up within each round, since they are judged second by second."""

    instances: Instances | Guests | Servers
    program: str
    count: int
    warm_up_s: float
    folder: Path
    measured: list[InstancesMeasured] = field(default_factory=list)

    def carry(self, step: Step, watch: Watch) -> Carried:
        """Load all of them; no round follows one in which an instance failed."""
        del watch  # what a second gave is known when the step is over
        measured = self.instances.measure(self.count, step, self.warm_up_s, self.folder)
        commands = () if self.measured else measured.commands  # of the first round: they are alike
        self.measured.append(measured)
        version = examine(next(tool for tool in TOOLS if tool.name == self.program)).version
        results, ticks = _all_instances(measured)
        return Carried(results, ticks, commands, version, is_last=bool(measured.errors))


def _all_instances(measured: InstancesMeasured) -> tuple[tuple[Result, ...], tuple[Tick, ...]]:
    """Results of all instances, and the seconds of all together."""
    results = tuple(result for instance_results in measured.results for result in instance_results)
    instances = [Instance(index + 1, (seconds,)) for index, seconds in enumerate(measured.seconds)]
    totals = total_seconds(instances)
    throughput = bytes_per_s(results)
    mean = sum(totals[0]) / len(totals[0]) if totals and totals[0] else float("nan")
    each = throughput / mean if mean else float("nan")  # bytes of an operation, on average
    seconds = enumerate(totals[0] if totals else [], start=1)
    return results, tuple(Tick(float(second), rate, rate * each) for second, rate in seconds)
