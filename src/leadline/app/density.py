"""Use case: how many instances of a workload fit before one of them loses its service level.

Every count is a run of its own in the run store; their names begin with the name of the density run, whose summary is a
file beside them.
"""

from __future__ import annotations

import json
import math
import os
import secrets
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from leadline.app.benching import SILENT, Talk, host_facts
from leadline.app.density_hosts import measure_hosts
from leadline.app.density_instances import (
    Instances,
    Measured,
    Site,
    bytes_per_s,
    instances_of,
    left_behind,
    measure,
    offered_per_s,
    site_of,
)
from leadline.app.hosts import Host
from leadline.app.recording import recording
from leadline.core.benchmark import Step, Target, Tick
from leadline.core.cgroups import Groups, Hierarchies, Limits, disk_under, find, remove_leftovers
from leadline.core.density import Clause, Instance, Level, State, judge, level_of, total_seconds
from leadline.core.density_steps import Answer, StepRule, answer, next_count
from leadline.core.errors import InputError, LeadlineError, ToolError, UsageError
from leadline.core.resampling import SAMPLE_COUNT_MIN
from leadline.core.run import BEHIND_MIN, PERCENTILES, Round, Run
from leadline.core.steady import steady_state
from leadline.core.tools import TOOLS, examine, find_program
from leadline.core.workload import Workload
from leadline.stores.runs import RunStore

VERSION = 1
SUMMARY = "density.json"
HOST_ROUNDS_MIN = 3


@dataclass(frozen=True, slots=True)
class Request:
    """What was asked for; ``hosts`` are machines in the order they are added, empty for local instances."""

    workload: Workload
    target: Target
    clauses: tuple[Clause, ...]
    rule: StepRule = field(default_factory=StepRule)
    limits: Limits = field(default_factory=Limits)
    hosts: tuple[Host, ...] = ()


@dataclass(frozen=True, slots=True)
class DensityPlan:
    """What a density run will do, before anything is touched."""

    request: Request
    site: Site | None
    rule: StepRule
    clauses: tuple[Clause, ...]
    offered_per_s: float
    notes: tuple[str, ...]
    groups: Hierarchies | None = None
    device: str | None = None

    @property
    def round_s(self) -> float:
        """Length of a round with its warm-up."""
        timing = self.request.workload.timing
        return timing.warm_up_s + timing.measure_s + 1.0

    @property
    def count_max(self) -> int:
        """The most counts that are measured: upwards, then by halves."""
        return 2 * max(math.ceil(math.log2(max(self.rule.most, 2))), 1) + 1


@dataclass(frozen=True, slots=True)
class Density:
    """A density run as it is kept."""

    id: str
    state: str
    workload: str
    target: str
    started: str
    clauses: tuple[str, ...]
    rule: StepRule
    offered_per_s: float
    limits: str
    levels: tuple[Level, ...] = ()
    notes: tuple[str, ...] = ()
    host: dict[str, str] = field(default_factory=dict)

    @property
    def answer(self) -> Answer:
        """How many fit."""
        return answer(self.levels, self.rule, whole=self.state == "done")

    @property
    def by_count(self) -> list[Level]:
        """The levels, fewest instances first."""
        return sorted(self.levels, key=lambda level: level.count)

    def to_dict(self) -> dict[str, Any]:
        """Plain data, as kept and for ``--json``."""
        return {"version": VERSION, **asdict(self), "answer": self.answer.to_dict()}


def make_plan(request: Request) -> DensityPlan:
    """What will be done; nothing is touched.

    Raises:
        UsageError: the target may not be used, or the service level cannot be judged on this workload.
        ToolError: fio is missing, or there is no space.
    """
    workload, rule = request.workload, request.rule
    rule.check()
    request.limits.check()
    if workload.kind != "io":
        raise UsageError(
            f"workload {workload.name}",
            found=f"kind {workload.kind}",
            expected="io",
            advice="Instances are processes of fio; databases are not added step by step yet.",
        )
    if find_program("fio") is None:
        raise ToolError(
            "fio", found="not installed", expected="fio", advice="`leadline doctor` says how to install it."
        )
    notes: list[str] = []
    if request.hosts:
        if request.limits.controllers:
            raise UsageError(
                "--hosts", found="limits", expected="machines as they are", advice="Limit the machines themselves."
            )
        site, offered = None, _rate(workload)
        rule = _capped(rule, len(request.hosts), "machines in the file", notes)
    else:
        site = site_of(workload, request.target)
        offered = offered_per_s(workload, site.plan)
        if site.capacity is not None:
            rule = _capped(rule, site.capacity, _fitting(site, request.target.name), notes)
    clauses = _usable(request.clauses, offered, notes)
    _require_samples(workload, clauses, offered, hosts=bool(request.hosts))
    groups, device = _groups(request, notes)
    return DensityPlan(request, site, rule, clauses, offered, tuple(notes), groups, device)


def _rate(workload: Workload) -> float:
    rates = [s.rate_iops for s in workload.io if s.burst is None]
    if len(rates) < len(workload.io) or None in rates:
        return float("nan")
    return float(sum(rate.read + rate.write for rate in rates if rate is not None))


def _fitting(site: Site, name: str) -> str:
    what = "there is room for in" if site.kind == "folder" else f"stretches of {site.each_bytes / 2**20:.0f} MiB of"
    return f"{what} {name}"


def _capped(rule: StepRule, capacity: int, what: str, notes: list[str]) -> StepRule:
    if rule.most <= capacity:
        return rule
    if capacity < rule.start:
        raise ToolError(
            "bench density",
            found=f"{capacity} {what}",
            expected=f"at least {rule.start}, the first count",
            advice="A smaller --set-size, another target, or a smaller --start.",
        )
    notes.append(f"the search ends at {capacity}: that many {what}")
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
    if has_rate and not any(clause.is_rate for clause in kept):
        notes.append(
            "latency counts from when a request is issued: an instance that falls behind shows it in its rate, not "
            "there; consider adding per_s>=0.95 of offered"
        )
    return kept


def _require_samples(workload: Workload, clauses: Sequence[Clause], offered: float, *, hosts: bool) -> None:
    """Refuse to measure too short to judge anything."""
    timing = workload.timing
    seconds = timing.measure_s * timing.rounds
    if hosts and timing.rounds < HOST_ROUNDS_MIN:
        raise UsageError(
            "--rounds",
            found=str(timing.rounds),
            expected=f"at least {HOST_ROUNDS_MIN} with --hosts: only whole rounds of a machine are known",
            advice=f"--rounds {HOST_ROUNDS_MIN}",
        )
    if not hosts and seconds < SAMPLE_COUNT_MIN:
        raise UsageError(
            "--seconds and --rounds",
            found=f"{seconds:g} s at each count",
            expected=f"at least {SAMPLE_COUNT_MIN} s in all, to know the spread",
            advice="For example --seconds 10 --rounds 2.",
        )
    for clause in clauses:
        above = offered * seconds * (1.0 - PERCENTILES.get(clause.metric, 0.0))
        if not clause.is_rate and above < BEHIND_MIN:
            needed = BEHIND_MIN / (1.0 - PERCENTILES[clause.metric]) / offered
            raise UsageError(
                "--service-level",
                found=f"{above:.0f} requests of an instance above its {clause.metric}",
                expected=f"at least {BEHIND_MIN}",
                advice=f"Measure at least {math.ceil(needed)} s at each count, or ask for a lower percentile.",
            )


def _groups(request: Request, notes: list[str]) -> tuple[Hierarchies | None, str | None]:
    limits = request.limits
    if not limits.controllers:
        return None, None
    device = None
    if limits.iops is not None:
        name = request.target.name
        device = None if "://" in name or "{n}" in name else disk_under(Path(name))
        if device is None:
            raise UsageError(
                "--iops",
                found=f"no disk of this machine under {name}",
                expected="a folder or device on a local disk",
                advice="Give the workload a rate_iops instead.",
            )
    found = find(limits)
    if isinstance(found, str):
        notes.append(f"without limits: {found}")
        return None, None
    return found, device


def run_density(made: DensityPlan, store: RunStore, *, seed: int | None = None, talk: Talk = SILENT) -> Density:
    """Add instances step by step until the service level breaks; kept after every count and whatever ends it.

    Raises:
        ToolError: the tool fails at the very first count.
        KeyboardInterrupt: passed on after the load was stopped and what was made was removed.
    """
    request = made.request
    began = datetime.now(UTC)
    target = f"{len(request.hosts)} hosts" if request.hosts else request.target.name
    own = Density(
        id=f"{began:%Y%m%d-%H%M%S}-density-{request.workload.name}-{secrets.token_hex(2)}",
        state="running",
        workload=request.workload.name,
        target=target,
        started=began.isoformat(timespec="seconds"),
        clauses=tuple(map(str, made.clauses)),
        rule=made.rule,
        offered_per_s=made.offered_per_s,
        limits=request.limits.words() if made.groups is not None else "",
        notes=(*made.notes, *_leftovers(made)),
        host=host_facts(),
    )
    for note in own.notes[len(made.notes) :]:
        talk.note(note)
    work = _Work(made, store, own.id, secrets.randbelow(2**30) if seed is None else seed, talk)
    state = "failed"
    try:
        while (count := next_count({level.count: level.state for level in own.levels}, made.rule)) is not None:
            own = replace(own, levels=(*own.levels, work.level(count, first=not own.levels)))
            _keep(own, store)
            talk.note(_said(own.levels[-1]))
        state = "done"
    except KeyboardInterrupt:
        state = "interrupted"
        raise
    finally:
        left = work.close()
        own = replace(own, state=state, notes=(*own.notes, *(f"could not be removed: {path}" for path in left)))
        if own.levels:
            _keep(own, store)
    return own


def _leftovers(made: DensityPlan) -> list[str]:
    """What killed runs left: their empty control groups are removed, their files told."""
    found = []
    where = made.groups or find(Limits(cpus=1.0))
    if isinstance(where, Hierarchies):
        found += [f"removed the control group of a killed run: {path}" for path in remove_leftovers(where)]
    if made.site is not None and made.site.kind == "folder":
        for path in left_behind(Path(made.request.target.name)):
            found.append(f"left by a killed run, remove it: {path}")
    return found


def _said(level: Level) -> str:
    reasons = f": {level.reasons[0]}" if level.reasons else ""
    return f"{level.count}: {level.state.value}{reasons}"


class _Work:
    """What lasts over the counts: the instances, and where they are measured."""

    def __init__(self, made: DensityPlan, store: RunStore, name: str, seed: int, talk: Talk) -> None:
        self._made, self._store, self._name, self._seed, self._talk = made, store, name, seed, talk
        request = made.request
        groups = None if made.groups is None else Groups(made.groups, request.limits, made.device)
        self._instances = None if made.site is None else Instances(request.workload, request.target, made.site, groups)

    def level(self, count: int, *, first: bool) -> Level:
        """Measure one count, as a run of its own."""
        made, workload = self._made, self._made.request.workload
        own = Run(
            id=f"{self._name}-n{count:04}",
            name=workload.name,
            state="running",
            tool="fio",
            target=f"{count} x {made.request.hosts[0].path if made.request.hosts else made.request.target.name}",
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            seed=self._seed,
            workload=workload.plain(),
            host=host_facts(),
            notes=(f"{count} instances of the density run {self._name}",),
        )
        folder = self._store.files_of(own.id)
        self._store.save(own, running=True)
        level, state = None, "failed"
        try:
            own, level = self._measured(own, count, folder, first=first)
            state = "done" if level.state is not State.FAILED else "failed"
        except KeyboardInterrupt:
            state = "interrupted"
            raise
        finally:
            said = () if level is None else (f"service level {level.state.value}", *level.reasons)
            self._store.save(replace(own, state=state, notes=(*own.notes, *said)))
        return replace(level, run=own.id)

    def _measured(self, own: Run, count: int, folder: Path, *, first: bool) -> tuple[Run, Level]:
        made = self._made
        if self._instances is None:
            found = measure_hosts(made.request.workload, made.request.hosts[:count], folder, self._seed, self._talk)
            return replace(own, rounds=found.rounds), self._judged(found.instances)
        self._talk.phase(f"preparing {count} instances", 0.0)
        try:
            self._instances.grow(count, folder, self._talk.note)
        except LeadlineError as error:
            if first:
                raise
            return own, _failed(count, str(error))
        timing = made.request.workload.timing
        rounds: list[Measured] = []
        parts: list[Round] = []
        places = self._instances.places[:count]
        with recording({"linux": ""}, folder) as notes:
            for number in range(1, timing.rounds + 1):
                self._talk.phase(f"{count} instances, round {number} of {timing.rounds}", made.round_s)
                step = Step(f"round-{number}", timing.measure_s, self._seed + number * 10_000)
                rounds.append(measure(places, step, timing.warm_up_s, folder))
                parts.append(_round(step.label, rounds[-1]))
                if rounds[-1].errors:
                    break
        for path in folder.glob("i*-round-*.json"):
            path.unlink()  # what it says is in the run; a hundred instances would leave a gigabyte
        version = examine(next(tool for tool in TOOLS if tool.name == "fio")).version
        commands = rounds[0].commands if rounds else ()
        own = replace(own, rounds=tuple(parts), commands=commands, tool_version=version, notes=(*own.notes, *notes))
        level = self._judged(instances_of(places, rounds))
        return own, replace(level, notes=(*level.notes, *self._unsteady(parts)))

    def _judged(self, instances: Sequence[Instance]) -> Level:
        return judge(instances, self._made.clauses, offered_per_s=self._made.offered_per_s, seed=self._seed)

    def _unsteady(self, rounds: Sequence[Round]) -> list[str]:
        found = []
        for part in rounds:
            times, rates = [tick.elapsed_s for tick in part.ticks], [tick.per_s for tick in part.ticks]
            state = steady_state(times, rates, self._made.request.workload.steady)
            if state.window_count and not state.steady:
                found.append(f"{part.label} {state.sentence()}")
        return found

    def close(self) -> list[Path]:
        """Remove what was made; returns what could not be removed."""
        return [] if self._instances is None else self._instances.close()


def _failed(count: int, why: str) -> Level:
    level = judge([Instance(number, (), why if number == count else None) for number in range(1, count + 1)], ())
    return replace(level, failures=(f"instance {count}: {why}",))


def _round(label: str, measured: Measured) -> Round:
    results = tuple(result for own in measured.results for result in own)
    instances = [Instance(index + 1, (seconds,)) for index, seconds in enumerate(measured.seconds)]
    totals = total_seconds(instances)
    throughput = bytes_per_s(results)
    mean = sum(totals[0]) / len(totals[0]) if totals and totals[0] else float("nan")
    each = throughput / mean if mean else float("nan")  # bytes of an operation, on average
    return Round(
        label,
        results,
        tuple(Tick(float(i + 1), rate, rate * each) for i, rate in enumerate(totals[0] if totals else [])),
    )


def _keep(own: Density, store: RunStore) -> None:
    """Write the summary aside, then over the old one; NaN becomes null."""
    path = store.files_of(own.id) / SUMMARY
    aside = path.with_suffix(".part")
    with aside.open("w", encoding="utf-8") as stream:
        json.dump(_without_nan(own.to_dict()), stream)
        stream.flush()
        os.fsync(stream.fileno())
    aside.replace(path)


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - plain data
    if isinstance(value, dict):
        return {key: _without_nan(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def stored(store: RunStore, name: str) -> Density:
    """The density run whose name begins so, or ``last``.

    Raises:
        UsageError: there is none, or several begin so.
        InputError: its summary is damaged.
    """
    found = sorted(path.parent.name for path in (store.folder / "runs").glob(f"*/{SUMMARY}"))
    wanted = found[-1:] if name == "last" else [own for own in found if own.startswith(name)]
    if len(wanted) != 1:
        raise UsageError(
            f"density run {name}",
            found="no such run" if not wanted else f"{len(wanted)} runs begin so",
            expected=f"one of {', '.join(found[-3:])}" if found else "a density run; none was kept yet",
            advice="The name is in what `leadline bench density` printed, and begins the runs of `leadline runs list`.",
        )
    path = store.files_of(wanted[0]) / SUMMARY
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
        names = ("id", "state", "workload", "target", "started", "limits", "host")
        return Density(
            **{key: plain[key] for key in names},
            clauses=tuple(plain["clauses"]),
            rule=StepRule(**plain["rule"]),
            offered_per_s=float("nan") if plain["offered_per_s"] is None else plain["offered_per_s"],
            levels=tuple(level_of(part) for part in plain["levels"]),
            notes=tuple(plain["notes"]),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            str(path),
            found=f"damaged ({error})",
            expected="the summary of a density run",
            advice="Measure again; its counts are still in `leadline runs list`.",
        ) from error
