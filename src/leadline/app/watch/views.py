"""What the live page shows of a watch, as values: what is open, the estate, a ladder, the highest of a metric.

Each function takes the lock of the watch for as long as it copies, never for as long as it computes. What needs the
store opens it for reading, so that it waits for nobody and nobody waits for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.watch.suspicions import RECENT_S
from leadline.core.model.capture import NS_PER_S, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.metrics import RAW_PREFIX, metric
from leadline.core.model.vocabulary import Better, EntityKind, Severity
from leadline.stores.incidents import LiveIncident, Marker
from leadline.stores.samples import SampleStore

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.app.watch.sources import SourceHealth
    from leadline.app.watch.watching import Judged, Watch
    from leadline.core.model.entities import Inventory

ESTATE_KINDS = (
    EntityKind.CLUSTER,
    EntityKind.HOST,
    EntityKind.DATASTORE,
    EntityKind.VM,
    EntityKind.GUEST,
    EntityKind.DATABASE,
)
LOCK_WAIT_S = 10.0
STALE_S = 60.0  # beyond the interval of judging: a judgement that is as old says nothing of now
STORY_BEFORE_S, STORY_AFTER_S = 900.0, 300.0  # Judgement: what was changed longer ago seldom is the reason
SERIES_MAX = 3  # of one metric in a ladder: those that are worst
STATISTICS = ("max", "p95", "mean", "min")

# Layer -> metrics, the most telling first; after a colon the only kind they are shown of.
LADDER = (
    (
        "Database",
        "db_tps:database db_latency_ms:database db_commit_wait_ms db_log_write_latency_ms db_active_sessions_count "
        "db_blocked_sessions_count",
    ),
    (
        "Guest",
        "guest_cpu_busy_pct:guest guest_cpu_steal_pct:guest guest_run_queue_count guest_memory_available_mib "
        "guest_pressure_io_some_pct guest_disk_await_ms_read guest_disk_await_ms_write guest_disk_flush_latency_ms "
        "guest_disk_util_pct disk_reads_per_s:block-device disk_writes_per_s:block-device",
    ),
    (
        "VM",
        "cpu_used_pct:vm cpu_ready_pct:vm cpu_costop_pct:vm memory_balloon_mib memory_swapped_mib "
        "virtual_disk_latency_ms_read virtual_disk_latency_ms_write disk_iops:virtual-disk",
    ),
    (
        "Hypervisor",
        "host_cpu_util_pct:host host_cpu_used_pct:host host_memory_used_pct host_memory_free_mib "
        "host_memory_swap_read_mib_per_s disk_kernel_latency_ms:device disk_queue_latency_ms:device",
    ),
    (
        "Storage",
        "disk_device_latency_ms:device datastore_latency_ms datastore_guest_latency_ms datastore_iops "
        "vsan_client_latency_us_read vsan_client_latency_us_write vsan_congestion_count datastore_used_pct",
    ),
)


@dataclass(frozen=True, slots=True)
class WatchHead:
    """What is open: incidents, the worst first, and why the watch may not know.

    Attributes:
        judged_ns: the time of the samples that were judged last; 0 before the first judgement.
        is_stale: the last judgement is too old to say anything of now.
        lost_count: readings that a full disk did not take.
    """

    incidents: tuple[LiveIncident, ...]
    down: tuple[SourceHealth, ...]
    judged_ns: int
    is_stale: bool
    lost_count: int


@dataclass(frozen=True, slots=True)
class EstateRow:
    """An entity of the estate with its state; a severity of None is "nothing is wrong now".

    Attributes:
        depth: below how many others of the estate it is.
        reason: the title of the incident or the summary of the finding.
        incident: its id; empty where it is a finding.
        is_measured: something of it was sampled in the window; of what was not nothing is known.
    """

    entity: Entity
    depth: int
    severity: Severity | None
    reason: str = ""
    incident: str = ""
    is_measured: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class LiveLine:
    """A series of the window, copied: times int64 [n] UTC nanoseconds, values [n]; NaN is "not measured"."""

    metric: str
    entity: Entity
    unit: str
    times_ns: NDArray[np.int64]
    values: NDArray[np.floating[Any]]

    @property
    def now(self) -> float:
        """The last value that was measured; NaN where none was."""
        return self._of(lambda known: known[-1])

    @property
    def median(self) -> float:
        """The median of the window."""
        return self._of(np.median)

    @property
    def highest(self) -> float:
        """The highest of the window."""
        return self._of(np.max)

    def _of(self, statistic: Callable[[Any], Any]) -> float:
        known = self.values[np.isfinite(self.values)]
        return float(statistic(known)) if known.size else float("nan")


@dataclass(frozen=True, slots=True)
class LadderLayer:
    """A layer of an entity's ladder; without lines nothing of it is measured."""

    name: str
    lines: tuple[LiveLine, ...]


@dataclass(frozen=True, slots=True)
class IncidentStory:
    """An incident with what else happened around it."""

    incident: LiveIncident
    span_ns: tuple[int, int]
    markers: tuple[Marker, ...]
    others: tuple[LiveIncident, ...]
    capture: Path | None


@contextmanager
def locked(watch: Watch) -> Iterator[None]:
    """Keep the watch from moving on, for as long as something is copied.

    Raises:
        ToolError: it has been judging for too long.
    """
    if not watch.lock.acquire(timeout=LOCK_WAIT_S):
        raise ToolError(
            "the live page",
            found=f"the watch has been judging for more than {LOCK_WAIT_S:.0f} s",
            expected="a moment between two steps",
            advice="Load the page again.",
        )
    try:
        yield
    finally:
        watch.lock.release()


def head_of(watch: Watch, now_ns: int | None = None) -> WatchHead:
    """Whether all is well."""
    now_ns = time.time_ns() if now_ns is None else now_ns
    opened = sorted(watch.incidents.open_ones(), key=lambda one: (-one.severity, one.opened_ns))
    down = tuple(source.health for source in watch.sources if source.health.is_up is False)
    since_ns = watch.judged.time_ns or watch.began_ns
    limit_s = STALE_S + watch.settings.judge_every_s + 4 * watch.judged.duration_s
    is_stale = now_ns - since_ns > limit_s * NS_PER_S
    return WatchHead(tuple(opened), down, watch.judged.time_ns, is_stale, watch.lost_count)


def estate_of(watch: Watch) -> tuple[EstateRow, ...]:
    """The estate as a tree, row by row; of siblings those in trouble come first."""
    with locked(watch):
        capture, judged = watch.window.capture, watch.judged
        inventory = watch.window.inventory
        guests = {one: inventory.vm_of(one) for one in inventory.facts if one.kind is EntityKind.GUEST}
    columns = {id(group.entities): group.entities for group in capture.groups}
    measured = {above for column in columns.values() for one in column for above in one.lineage()}
    shown = {one for one in measured | set(inventory.facts) if one.kind in ESTATE_KINDS}
    rows = _tree(shown, guests, _states(judged, watch.incidents.open_ones()))
    return tuple(replace(row, is_measured=row.entity in measured) for row in rows)


def _states(judged: Judged, incidents: Iterable[LiveIncident]) -> dict[str, EstateRow]:
    """What is wrong, by the entity as it is written; the worst of each."""
    states: dict[str, EstateRow] = {}

    def add(name: str, severity: Severity, reason: str, incident: str = "") -> None:
        known = states.get(name)
        if known is None or (known.severity or 0) < severity:
            states[name] = EstateRow(Entity.parse(name), 0, severity, reason, incident)

    for incident in incidents:
        for name in {incident.entity, *filter(_is_entity, incident.places)} - {""}:
            add(str(_shown(Entity.parse(name))), incident.severity, incident.title, incident.id)
    since_ns = judged.time_ns - round(RECENT_S * NS_PER_S)
    for finding in () if judged.diagnosis is None else judged.diagnosis.findings:
        is_now = bool(finding.windows) and finding.windows[-1].end_ns >= since_ns
        if is_now and finding.severity >= Severity.LOW and not finding.is_explained:
            add(str(_shown(finding.entity)), finding.severity, f"{finding.entity.label()} {finding.summary}")
    return states


def _is_entity(place: str) -> bool:
    kind, _, name = place.partition(":")
    return kind in {one.value for one in EntityKind} and not name.startswith(" ")


def _shown(entity: Entity) -> Entity:
    """The nearest of an entity and what it is part of that the estate shows."""
    return next((one for one in entity.lineage() if one.kind in ESTATE_KINDS), entity)


def _tree(
    shown: set[Entity], guests: dict[Entity, Entity | None], states: dict[str, EstateRow]
) -> tuple[EstateRow, ...]:
    children: dict[Entity | None, list[Entity]] = {}
    for one in shown:
        above: Entity | None = guests.get(one) or one.parent
        while above is not None and above not in shown:
            above = above.parent
        children.setdefault(above, []).append(one)
    worst: dict[Entity, int] = {}

    def weigh(one: Entity) -> int:
        state = states.get(str(one))
        here = -1 if state is None or state.severity is None else int(state.severity)
        worst[one] = max([here, *(weigh(child) for child in children.get(one, ()))])
        return worst[one]

    rows: list[EstateRow] = []

    def walk(above: Entity | None, depth: int) -> None:
        for one in sorted(children.get(above, ()), key=lambda e: (-worst[e], ESTATE_KINDS.index(e.kind), e.name)):
            state = states.get(str(one))
            reason = ("", "") if state is None else (state.reason, state.incident)
            rows.append(EstateRow(one, depth, None if state is None else state.severity, *reason))
            walk(one, depth + 1)

    for root in children.get(None, ()):
        weigh(root)
    walk(None, 0)
    return tuple(rows)


def ladder_of(watch: Watch, entity: Entity) -> tuple[LadderLayer, ...]:
    """The main metrics of each layer on the way of an entity, over the window; of many series the worst."""
    with locked(watch):
        inventory = watch.window.inventory
        lineage, machines = _way(inventory, entity)
    chosen: dict[int, list[int]] = {}

    def rows_of(group: SeriesGroup) -> list[int]:
        key = id(group.entities)
        if key not in chosen:
            chosen[key] = [
                row
                for row, one in enumerate(group.entities)
                if one in lineage or any(above in machines for above in one.lineage())
            ]
        return chosen[key]

    metrics = {name for _, rungs in LADDER for name, _ in _rungs(rungs)}
    lines = copied_lines(watch, metrics, rows_of)
    return tuple(
        LadderLayer(name, tuple(one for rung in _rungs(rungs) for one in _worst(lines, *rung, entity)))
        for name, rungs in LADDER
    )


def _rungs(text: str) -> list[tuple[str, str]]:
    """Metrics with the kind they are shown of; an empty one stands for any."""
    return [(name, kind) for name, _, kind in (one.partition(":") for one in text.split())]


def _way(inventory: Inventory, entity: Entity) -> tuple[set[Entity], set[Entity]]:
    """What an entity is part of and lies on, and the machines whose parts belong to it."""
    lineage = inventory.full_lineage(entity)
    machines = {one for one in lineage if one.kind in (EntityKind.VM, EntityKind.GUEST)}
    machines |= {guest for vm in tuple(machines) for guest in inventory.guests_of(vm)}
    return lineage, machines | {entity}


def _worst(lines: Sequence[LiveLine], name: str, kind: str, entity: Entity) -> list[LiveLine]:
    same = [one for one in lines if one.metric == name and (not kind or one.entity.kind.value == kind)]
    finest: dict[Entity, LiveLine] = {}  # of several sources that measure the same, the one with most samples
    for one in sorted(same, key=lambda one: int(np.isfinite(one.values).sum())):
        finest[one.entity] = one
    same = [one for one in finest.values() if np.isfinite(one.now)]
    sign = 1 if metric(name).better is Better.HIGH else -1
    return sorted(same, key=lambda one: (one.entity != entity, sign * one.median, one.entity.name))[:SERIES_MAX]


def copied_lines(
    watch: Watch, metrics: Iterable[str], rows_of: Callable[[SeriesGroup], list[int]]
) -> tuple[LiveLine, ...]:
    """Copies of series of the window; the rows are chosen before the lock is taken, as far as they are known then."""
    wanted = set(metrics)
    for group in watch.window.capture.groups:
        if group.metric in wanted:
            rows_of(group)
    copies = []
    with locked(watch):
        for group in watch.window.capture.groups:
            rows = rows_of(group) if group.metric in wanted else []
            if rows:
                copies.append((group, rows, group.times_ns.copy(), np.array(group.values[rows])))
    return tuple(
        LiveLine(group.metric, group.entities[row], group.unit, times_ns, values[place])
        for group, rows, times_ns, values in copies
        for place, row in enumerate(rows)
    )


def metrics_of(watch: Watch) -> list[str]:
    """The metrics of the window that have a meaning, by name."""
    return sorted(name for name in set(watch.window.capture.metrics()) if not name.startswith(RAW_PREFIX))


def top_of(watch: Watch, name: str, minutes: float, statistic: str, count: int = 20) -> list[tuple[Entity, float]]:
    """The entities with the greatest statistic of a metric over the last minutes, greatest first.

    What the live window holds is taken from it, and more from the store.

    Raises:
        UsageError: there is no such metric or statistic.
    """
    metric(name)
    if statistic not in STATISTICS:
        expected = f"one of {', '.join(STATISTICS)}"
        raise UsageError("by", found="no such statistic", expected=expected, advice="Choose one of the list.")
    if minutes > watch.settings.window_minutes:
        end_ns = time.time_ns()
        start_ns = end_ns - round(minutes * 60 * NS_PER_S)
        if isinstance(watch.store, SampleStore):
            with SampleStore(watch.store.folder, read_only=True) as store:
                ranked = store.top(name, start_ns, end_ns, statistic=statistic, count=count)
        else:
            ranked = watch.store.top(name, start_ns, end_ns, statistic=statistic, count=count)
        return [(entity, value) for entity, value in ranked if np.isfinite(value)]
    lines = copied_lines(watch, {name}, lambda group: list(range(len(group.entities))))
    newest_ns = max((int(line.times_ns[-1]) for line in lines if len(line.times_ns)), default=0)
    oldest_ns = newest_ns - round(minutes * 60 * NS_PER_S)
    valued = [(line.entity, _statistic(line.values[line.times_ns > oldest_ns], statistic)) for line in lines]
    ranked = [(entity, value) for entity, value in valued if np.isfinite(value)]
    return sorted(ranked, key=lambda pair: -pair[1])[:count]


def _statistic(values: NDArray[np.floating[Any]], statistic: str) -> float:
    """A statistic of values [n], NaN left out; NaN where nothing is left."""
    known = np.sort(values[np.isfinite(values)].astype(np.float64))
    if not known.size:
        return float("nan")
    by_name = {"max": known[-1], "min": known[0], "mean": known.mean()}
    by_name["p95"] = known[max(int(np.ceil(0.95 * known.size)) - 1, 0)]
    return float(by_name[statistic])


def story_of(watch: Watch, number: str) -> IncidentStory:
    """An incident with the changes and other incidents around it.

    Raises:
        UsageError: there is no incident with that id.
    """
    incident = watch.incidents.get(number)
    if incident.id != number:
        raise UsageError(number, found="no such incident", expected="a whole id", advice="Choose one of the list.")
    start_ns = incident.opened_ns - round(STORY_BEFORE_S * NS_PER_S)
    end_ns = (incident.closed_ns or incident.seen_ns) + round(STORY_AFTER_S * NS_PER_S)
    end_ns = max(min(end_ns, time.time_ns()), incident.seen_ns + NS_PER_S)
    others = [one for one in watch.incidents.between(start_ns, end_ns) if one.id != incident.id]
    capture = Path(incident.capture) if incident.capture else None
    if capture is not None and not (capture.parent == watch.store.folder / "incidents" and capture.is_file()):
        capture = None
    markers = watch.incidents.markers(start_ns, end_ns)
    return IncidentStory(incident, (start_ns, end_ns), tuple(markers), tuple(others), capture)
