"""Who did it: the statement, session, worker, program and VM whose share rose most in an incident.

A share is a mean over every sample of the span: a sample in which a statement did not run, or a process is not listed,
counts 0 there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.who import Who, WhoKind

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.finding import Evidence
    from leadline.core.model.incident import Incident

_STATEMENTS, _WORKERS = "db_statement_sessions_count", "db_worker_sessions_count"
_LOGGED_STATEMENTS = "db_logged_statement_sessions_count"
_BEHIND, _BLOCKED = "db_sessions_behind_blocker_count", "db_blocked_sessions_count"
_OF_PROCESSES = {
    "process_cpu_pct": "CPU",
    "process_read_kib_per_s": "disk reads",
    "process_write_kib_per_s": "disk writes",
}
_RISES_MIN = {"CPU": 10.0, "disk reads": 1024.0, "disk writes": 1024.0}  # Judgement: what others can feel
_UNITS = {"CPU": "% of a CPU", "disk reads": "KiB/s", "disk writes": "KiB/s"}
_IOPS = ("disk_reads_per_s", "disk_writes_per_s")
READS = frozenset(
    {_STATEMENTS, _LOGGED_STATEMENTS, _WORKERS, _BEHIND, _BLOCKED, "cpu_used_pct", *_OF_PROCESSES, *_IOPS}
)
NEW_RATIO = 0.2  # Judgement: of what it is now; an incident's ends are never sharp
NEW_SHARE = 0.1  # Judgement: a statement that never ran before is work that came, not work that became slower
MULTIPLE = 3.0  # Judgement: what piles up in an incident grows with all the rest, what made it came
FAIR_RATIO = 1.5  # Judgement: a VM that uses hardly more than an equal part is one of many
SHARE_MIN = 0.05  # Judgement: below it nobody is to blame
SESSIONS_MIN = 0.1  # Judgement: a session that waits or works a tenth of the time
_SERVERS = (
    "postgres",
    "postmaster",
    "mysqld",
    "mariadbd",
    "mysql",
    "mariadb",
    "sqlservr",
    "oracle",
    "mongod",
    "irisdb",
)
_DETAILS = {
    "query_id": "query id",
    "statement_text": "text",
    "state": "state",
    "statement": "last statement",
    "transaction_s_max": "transaction open, s",
    "since_statement_s_max": "since its last statement began, s",
    "state_s_max": "in this state, s",
    "user": "user",
    "application": "application",
    "client": "client address",
    "table": "table",
}


@dataclass(frozen=True, slots=True)
class _Amount:
    """How much one candidate had inside and outside, as means, and its shares of all candidates."""

    name: str
    entity: Entity
    during: float
    normal: float | None
    share: float
    share_normal: float | None

    @property
    def rise(self) -> float:
        return self.during - (self.normal or 0.0)

    @property
    def is_new(self) -> bool:
        """Whether there was hardly any of it outside, also as a share: what only piles up was most there too."""
        return (self.normal or 0.0) <= NEW_RATIO * self.during and (self.share_normal or 0.0) <= NEW_RATIO * self.share

    @property
    def is_multiplied(self) -> bool:
        """Whether there is several times as much of it inside as outside."""
        return self.normal is not None and self.during >= MULTIPLE * self.normal

    @property
    def may_have_come(self) -> bool:
        """Whether it came with the incident, as far as anything is known of what was before."""
        return self.is_multiplied or self.normal is None

    @property
    def share_rise(self) -> float:
        return self.share - (self.share_normal or 0.0)


def culprits(capture: Capture, incident: Incident | None) -> tuple[Who, ...]:
    """Return who did most of what rose in an incident, the strongest first of each kind; pure.

    Without an incident the shares are over all of the recording.
    """
    spans = _spans(incident)
    return (
        *_statement(capture, spans),
        *_blocker(capture, spans),
        *_worker(capture, spans),
        *_programs(capture, spans),
        *_vms(capture, spans),
    )


_Spans = tuple[tuple[Window, ...] | None, tuple[Window, ...]]


def _spans(incident: Incident | None) -> _Spans:
    """The spans inside (None: everything) and outside."""
    return (None, ()) if incident is None else ((incident.window,), incident.normal)


def _sums(groups: Sequence[SeriesGroup], windows: tuple[Window, ...] | None) -> tuple[dict[Entity, float], int]:
    """Sum of each entity's samples in the windows, not measured as 0, and how many moments were sampled."""
    sums: dict[Entity, float] = {}
    moments: list[np.ndarray] = []
    for group in groups:
        inside = np.full(len(group.times_ns), windows is None)
        for window in windows or ():
            inside |= (group.times_ns > window.start_ns) & (group.times_ns <= window.end_ns)
        moments.append(group.times_ns[inside])
        for entity, total in zip(group.entities, np.nansum(group.values[:, inside], axis=1).tolist(), strict=True):
            sums[entity] = sums.get(entity, 0.0) + total
    return sums, len(np.unique(np.concatenate(moments))) if moments else 0


def _amounts(groups: Sequence[SeriesGroup], spans: _Spans, name_of: Callable[[Entity], str]) -> list[_Amount]:
    """The candidates of one recording, those of one name together."""
    inside, outside = _sums(groups, spans[0]), _sums(groups, spans[1])
    if not inside[1]:
        return []
    names: dict[str, list[Entity]] = {}
    for entity in inside[0]:
        names.setdefault(name_of(entity), []).append(entity)
    wholes = [sum(sums.values()) for sums, _ in (inside, outside)]
    amounts = []
    for name, entities in names.items():
        most = max(entities, key=lambda one: inside[0][one])
        sums = [sum(each[0].get(one, 0.0) for one in entities) for each in (inside, outside)]
        amounts.append(
            _Amount(
                name,
                most,
                sums[0] / inside[1],
                sums[1] / outside[1] if outside[1] else None,
                sums[0] / wholes[0] if wholes[0] else 0.0,
                sums[1] / wholes[1] if wholes[1] else (0.0 if outside[1] else None),
            )
        )
    return amounts


def _fullest(groups: Iterable[SeriesGroup]) -> list[SeriesGroup]:
    """The groups of the recording with the most series: two recordings of the same are not added up."""
    by_source: dict[int, list[SeriesGroup]] = {}
    for group in groups:
        by_source.setdefault(group.source, []).append(group)
    return max(by_source.values(), key=lambda some: sum(len(g.entities) * len(g.times_ns) for g in some), default=[])


def _facts(capture: Capture, entity: Entity, *without: str) -> tuple[tuple[str, str], ...]:
    values = ((noun, capture.inventory.get(entity, name)) for name, noun in _DETAILS.items() if name not in without)
    return tuple((noun, str(value)) for noun, value in values if value not in (None, ""))


def _numbers(amount: _Amount, noun: str) -> tuple[tuple[str, str], ...]:
    shown = [(noun, _number(amount.during))]
    if amount.normal is not None:
        shown.append((f"{noun}, normally", _number(amount.normal)))
    return tuple(shown)


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.2g}"


def _statement(capture: Capture, spans: _Spans) -> Iterator[Who]:
    """The statement that is new and large, else the one whose share rose most; then others that came with it.

    As sessions were sampled, else as the server logged them, else as it added them up since its last reset.
    """
    groups = _fullest(capture.of(_STATEMENTS))
    amounts = _amounts(groups or _fullest(capture.of(_LOGGED_STATEMENTS)), spans, lambda entity: entity.name)
    known = [one for one in amounts if one.name != "?" and one.share >= SHARE_MIN and one.rise >= SESSIONS_MIN]
    if not amounts:
        yield from _statement_since_reset(capture)
    if not known:
        return
    new = [one for one in known if one.is_new and one.share >= NEW_SHARE]
    best = max(new, key=lambda one: one.share) if new else max(known, key=lambda one: (one.share_rise, one.rise))
    of = "active sessions" if groups else "logged durations"
    further = (one for one in known if one is not best and one.share >= NEW_SHARE and one.may_have_come)
    for one in (best, *sorted(further, key=lambda amount: -amount.rise)):
        details = (*_numbers(one, "sessions at once"), *_facts(capture, one.entity, "statement"))
        normal = one.share_normal
        yield Who(WhoKind.STATEMENT, one.name, one.entity, one.share, normal, of, details, one.is_multiplied)


def _statement_since_reset(capture: Capture) -> Iterator[Who]:
    """The statement that took most of the time that the server added up."""
    statements = capture.inventory.of_kind(EntityKind.STATEMENT)
    shares = {one: capture.inventory.get(one, "time_share") or 0.0 for one in statements}
    best = max(shares, key=lambda one: shares[one], default=None)
    if best is None or shares[best] < SHARE_MIN:
        return
    of = "time of all statements since the last reset"
    yield Who(WhoKind.STATEMENT, best.name, best, shares[best], None, of, _facts(capture, best, "statement"))


def _blocker(capture: Capture, spans: _Spans) -> Iterator[Who]:
    """The session that most of the blocked sessions waited for."""
    groups = _fullest(capture.of(_BEHIND))
    amounts = _amounts(groups, spans, lambda entity: entity.name.partition(" (")[0])
    if not amounts:
        return
    best = max(amounts, key=lambda one: one.rise)
    if best.rise < SESSIONS_MIN or best.share < SHARE_MIN:
        return
    details = (*_numbers(best, "sessions behind it"), *_facts(capture, best.entity))
    yield Who(WhoKind.SESSION, best.name, best.entity, best.share, best.share_normal, "blocked sessions", details)


def _worker(capture: Capture, spans: _Spans) -> Iterator[Who]:
    """The background process of the server that was most at work beyond its usual."""
    amounts = _amounts(_fullest(capture.of(_WORKERS)), spans, lambda entity: entity.name)
    best = max(amounts, key=lambda one: one.rise, default=None)
    if best is None or best.rise < SESSIONS_MIN:
        return
    details = (*_numbers(best, "processes at once"), *_facts(capture, best.entity))
    yield Who(WhoKind.WORKER, best.name, best.entity, best.share, best.share_normal, "background processes", details)


def _program(entity: Entity) -> str:
    """The program of a process: no number, no folder, no arguments."""
    command = entity.name.rpartition("[")[0] or entity.name
    if command.startswith("Process(") and command.endswith(")"):
        command = command.removeprefix("Process(").removesuffix(")")
    first = command.split(" ")[0]
    return PurePosixPath(first).name if first.startswith("/") else first


def named_by(evidence: Evidence) -> Who | None:
    """The program or the worker of the server that evidence names, without a share; None where it names none."""
    entity, metric = evidence.entity, evidence.metric or ""
    if entity is not None and entity.kind is EntityKind.SESSION and metric == _WORKERS:
        return Who(WhoKind.WORKER, entity.name, entity, None, None, "background processes")
    if entity is not None and entity.kind is EntityKind.PROCESS and metric in _OF_PROCESSES:
        return Who(WhoKind.PROGRAM, _program(entity), entity, None, None, _OF_PROCESSES[metric])
    return None


def _programs(capture: Capture, spans: _Spans) -> Iterator[Who]:
    """Of each resource the program, not of the database, whose use of it rose most; the largest share first."""
    risen: list[Who] = []
    for metric, of in _OF_PROCESSES.items():
        amounts = _amounts(_fullest(capture.of(metric, EntityKind.PROCESS)), spans, _program)
        others = [one for one in amounts if not one.name.rstrip(":").lower().startswith(_SERVERS)]
        best = max(others, key=lambda one: one.rise, default=None)
        if best is None or best.rise < _RISES_MIN[of] or best.share < SHARE_MIN or best.share_rise <= 0:
            continue
        command = best.entity.name.rpartition("[")[0]
        line = (("command line", command),) if " " in command else ()
        details = (*_numbers(best, _UNITS[of]), *line)
        risen.append(Who(WhoKind.PROGRAM, best.name, best.entity, best.share, best.share_normal, of, details))
    yield from sorted(risen, key=lambda one: -((one.share or 0.0) - (one.share_normal or 0.0)))


def _vms(capture: Capture, spans: _Spans) -> Iterator[Who]:
    """The VM with the largest share of CPU and of I/O of a host where several were recorded."""
    for metrics, of in ((("cpu_used_pct",), "CPU"), (_IOPS, "IOPS")):
        kinds = (EntityKind.VM,) if of == "CPU" else (EntityKind.VIRTUAL_DISK,)
        groups = _fullest(group for metric in metrics for group in capture.of(metric, *kinds))
        amounts = _amounts(groups, spans, lambda entity: str(entity.ancestor(EntityKind.VM)))
        hosts: dict[Entity | None, list[_Amount]] = {}
        for one in amounts:
            vm = one.entity.ancestor(EntityKind.VM)
            if vm is not None:
                hosts.setdefault(vm.parent, []).append(one)
        for some in (some for some in hosts.values() if len(some) > 1):
            yield from _vm(some, of)


def _vm(amounts: list[_Amount], of: str) -> Iterator[Who]:
    best = max(amounts, key=lambda one: one.rise)
    vm = best.entity.ancestor(EntityKind.VM)
    whole = sum(one.during for one in amounts)
    usual = None if best.normal is None else sum(one.normal or 0.0 for one in amounts)
    if vm is None or not whole or best.rise <= 0 or best.during < FAIR_RATIO * whole / len(amounts):
        return
    normal = None if usual is None or best.normal is None else best.normal / usual if usual else 0.0
    yield Who(WhoKind.VM, vm.name, vm, best.during / whole, normal, of, ())
