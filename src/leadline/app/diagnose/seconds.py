"""The seconds of a recording with transactions: how many sessions ran, waited for each resource, and how busy that was.

Everything is brought to the intervals in which transactions were counted. What sessions do is counted in mean sessions
(session seconds per second): by Little's law their sum is throughput times latency, so terms add up, second by second.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.capture import NS_PER_S
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.active_sessions import EVENTS, resource_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from numpy.typing import NDArray

    from leadline.core.model.capture import Capture, SeriesGroup
    from leadline.core.model.entities import Entity
    from leadline.core.model.finding import Window
    from leadline.core.model.incident import Incident

    Floats = NDArray[np.float64]

BACKENDS = ("postgres", "mariadbd", "mysqld")  # command names of database servers
LOAD_GENERATORS = ("pgbench", "sysbench")
PAGE_KIB = {"postgres": 8.0, "mariadbd": 16.0, "mysqld": 16.0}  # Source: default block sizes of the servers' manuals
OTHER_WORK_RATIO = 5.0  # Judgement: sessions of one load use much the same; one with five times the median is not of it
OTHER_WORK_CPU = 0.1  # of a CPU
P95_SHARE = 0.6  # Judgement: of the 95th percentile; 0.33 for exponential times, 1 for constant ones
_KEPT = ("cpu_ready_pct", "cpu_costop_pct")
COVERED_MIN = 0.25  # Judgement: of a span; tools of several seconds each miss some at its ends
SAMPLED = "sampled_"
_ALWAYS = ("tps", "served", "queued")
# Time that sessions spent, as mean sessions, by column.
_STATISTICS = {
    "db_active_time_pct": "active",
    "db_idle_in_transaction_time_pct": "idle_in_transaction",
    "db_data_read_time_pct": "block_reads",
    "db_log_sync_time_pct": "log_busy",
}
READS = frozenset(
    {
        *("db_latency_ms", "db_latency_ms_p95", "db_tps", "db_schedule_lag_ms", "db_client_count"),
        *("process_cpu_pct", "process_cpu_wait_pct", "process_read_kib_per_s"),
        *(*_STATISTICS, "db_log_flushes_per_s", EVENTS),
        *("guest_disk_util_pct", "disk_reads_per_s", "guest_disk_await_ms_read", "disk_writes_per_s"),
        *("guest_disk_await_ms_write", "guest_disk_flushes_per_s", "guest_disk_flush_latency_ms"),
        *("guest_swap_in_kib_per_s", "guest_cpu_busy_pct", "guest_cpu_steal_pct", *_KEPT),
    }
)
_SAMPLED = {"cpu": "cpu", "data-read": "read", "temp-files": "read", "data-write": "read", "wal": "log"}
_SAMPLED["client"] = "client"  # a session that waits for its client within a statement


@dataclass(slots=True)
class Seconds:
    """One recording by the intervals of its transactions.

    Attributes:
        starts_ns: int64 [n], UTC.
        ends_ns: int64 [n], UTC.
        columns: float64 [n] each, by name; NaN or missing is not measured. ``tps`` and ``queued`` and ``served``
            (mean sessions, before the database and in it) are always there.
        data_disk: what the database reads from; None where no disk was recorded.
        log_disk: what it writes its log to.
    """

    starts_ns: NDArray[np.int64]
    ends_ns: NDArray[np.int64]
    columns: dict[str, Floats] = field(default_factory=dict)
    data_disk: Entity | None = None
    log_disk: Entity | None = None
    swap_disk: Entity | None = None
    guest: Entity | None = None
    database: Entity | None = None
    is_threaded: bool = False  # one process serves all sessions, those of other work, too

    def inside(self, windows: Iterable[Window]) -> NDArray[np.bool_]:
        """Whether the middle of each interval [n] lies in one of some windows."""
        middle = (self.starts_ns + self.ends_ns) // 2
        is_inside = np.zeros(len(middle), dtype=bool)
        for window in windows:
            is_inside |= (middle >= window.start_ns) & (middle < window.end_ns)
        return is_inside

    def get(self, name: str) -> Floats:
        """A column [n]; NaN throughout where it was not measured."""
        column = self.columns.get(name)
        return np.full(len(self.ends_ns), np.nan) if column is None else column

    def has(self, name: str) -> bool:
        """Whether any sample of a column was measured."""
        return name in self.columns

    def covered(self, *spans: NDArray[np.int64]) -> Seconds:
        """The same with only those columns that were measured in each of some spans: only such can be compared."""
        spans = tuple(span for span in spans if len(span))

        def is_measured(column: Floats) -> bool:
            return all(np.isfinite(column[span]).mean() >= COVERED_MIN for span in spans)

        kept = {name: column for name, column in self.columns.items() if name in _ALWAYS or is_measured(column)}
        return replace(self, columns=kept)

    def means(self, at: NDArray[np.int64]) -> dict[str, float]:
        """The mean of each column over some intervals that were measured in it; 0 where none of them was."""
        values = np.stack(list(self.columns.values()))[:, at]
        known = np.isfinite(values)
        sums = np.where(known, values, 0.0).sum(axis=1)
        return dict(zip(self.columns, (sums / np.maximum(known.sum(axis=1), 1)).tolist(), strict=True))

    def mean_of(self, group: SeriesGroup, row: int) -> Floats:
        """One series as the mean over each interval [n]; NaN where less than half of the interval was measured."""
        times = group.times_ns.astype(np.float64) / NS_PER_S
        values = group.values[row].astype(np.float64)
        step = group.interval_s if group.interval_s > 0 else float(np.median(np.diff(times))) if len(times) > 1 else 1.0
        lengths = np.minimum(np.diff(times, prepend=times[0] - step), 1.5 * step)  # a gap is not measured
        known = np.isfinite(values)
        # A sample stands for the interval that ends at its time: both sums as step functions of time.
        knots = np.stack((times - lengths, times), axis=1).ravel()
        sums = np.repeat(np.cumsum(np.where(known, values * lengths, 0.0)), 2)
        sums[0::2] = np.concatenate(([0.0], sums[1:-1:2]))
        spans = np.repeat(np.cumsum(np.where(known, lengths, 0.0)), 2)
        spans[0::2] = np.concatenate(([0.0], spans[1:-1:2]))
        first, last = self.starts_ns / NS_PER_S, self.ends_ns / NS_PER_S
        spent = np.interp(last, knots, sums) - np.interp(first, knots, sums)
        measured = np.interp(last, knots, spans) - np.interp(first, knots, spans)
        enough = measured >= 0.5 * (last - first)
        mean: Floats = np.where(enough, spent / np.where(enough, measured, 1.0), np.nan)
        return mean


def seconds_of(capture: Capture, incident: Incident) -> Seconds | None:
    """The seconds of a recording; None where no transactions were recorded."""
    seconds = _transactions(capture)
    if seconds is None:
        return None
    inventory = capture.inventory
    seconds.guest = next(iter(inventory.of_kind(EntityKind.GUEST)), None)
    _add_processes(seconds, capture, incident)
    _add_statistics(seconds, capture)
    _add_disks(seconds, capture)
    _add_machine(seconds, capture)
    _add_samples(seconds, capture)
    measured = {name: column for name, column in seconds.columns.items() if np.isfinite(column).any()}
    seconds.columns = {**{name: seconds.columns[name] for name in _ALWAYS}, **measured}
    return seconds


def _transactions(capture: Capture) -> Seconds | None:
    """Throughput, sessions in the database and sessions that queue before it."""
    for latency in sorted(capture.of("db_latency_ms"), key=lambda group: group.entities[0].kind is EntityKind.JOB):
        tps = capture.aligned(latency, "db_tps")
        if tps is None:
            continue
        seconds = _grid(latency)
        rate, late = _filled(tps[0]), capture.aligned(latency, "db_schedule_lag_ms")
        whole = rate * _filled(latency.values[0]) / 1e3
        queued = np.zeros(len(rate)) if late is None else np.minimum(rate * _filled(late[0]) / 1e3, whole)
        seconds.columns.update(tps=rate, queued=queued, served=whole - queued)
        return seconds
    # sysbench prints no mean: its threads bound the sessions, and so does the 95th percentile.
    for upper in capture.of("db_latency_ms_p95"):
        tps, threads = capture.aligned(upper, "db_tps"), capture.aligned(upper, "db_client_count")
        if tps is None or threads is None:
            continue
        seconds = _grid(upper)
        rate = _filled(tps[0])
        most = _filled(threads[0])
        served = np.where(rate > 0, np.minimum(P95_SHARE * rate * _filled(upper.values[0]) / 1e3, most), most)
        seconds.columns.update(tps=rate, queued=np.zeros(len(rate)), served=served)
        return seconds
    return None


def _grid(group: SeriesGroup) -> Seconds:
    step = round((group.interval_s if group.interval_s > 0 else 1.0) * NS_PER_S)
    lengths = np.minimum(np.diff(group.times_ns, prepend=group.times_ns[0] - step), 2 * step)
    return Seconds(group.times_ns - lengths, group.times_ns.copy(), database=group.entities[0])


def _filled(values: NDArray[np.floating]) -> Floats:
    """Values without NaN: where no transaction ended there is neither latency nor lag."""
    return np.nan_to_num(values.astype(np.float64))


def _add_processes(seconds: Seconds, capture: Capture, incident: Incident) -> None:
    """What the measured sessions' processes run, wait for a CPU and read; and the load generator's own wait."""
    groups = capture.of("process_cpu_pct", EntityKind.PROCESS)
    group = next((g for g in groups if any(_command(e) in BACKENDS for e in g.entities)), None)
    if group is None:
        return
    used = dict(enumerate(_by_process(seconds, group) / 100.0))
    rows = [row for row in used if _command(group.entities[row]) in BACKENDS]
    chosen = _measured(seconds, {row: used[row] for row in rows}, incident)
    drivers = [row for row in used if _command(group.entities[row]) in LOAD_GENERATORS]
    others = [row for row in rows if row not in chosen]
    seconds.is_threaded = _command(group.entities[rows[0]]) != "postgres"
    page = PAGE_KIB[_command(group.entities[rows[0]])]

    def total(metric: str, some: list[int]) -> Floats | None:
        other = next((g for g in capture.of(metric) if g.source == group.source), None)
        if other is None:
            return None
        wanted = {group.entities[row] for row in some}
        values = _by_process(seconds, other)
        return _total([values[i] for i, e in enumerate(other.entities) if e in wanted], seconds)

    seconds.columns["cpu"] = _total([used[row] for row in chosen], seconds)
    waits, pages = total("process_cpu_wait_pct", chosen), total("process_read_kib_per_s", chosen)
    if waits is not None:
        seconds.columns["cpu_wait"] = waits / 100.0
    if pages is not None:
        seconds.columns["page_reads"] = pages / page
    for name, some in (("other_work", others), ("driver", drivers)):
        if some:
            extra = total("process_cpu_wait_pct", some)
            seconds.columns[name] = _total([used[row] for row in some], seconds)
            seconds.columns[name] += 0.0 if extra is None else extra / 100.0


def _by_process(seconds: Seconds, group: SeriesGroup) -> Floats:
    """A metric of each process [k, n]: 0 where others were measured and this one did nothing, NaN where none was."""
    values = np.stack([seconds.mean_of(group, row) for row in range(len(group.entities))])
    filled: Floats = np.where(np.isfinite(values).any(axis=0), np.nan_to_num(values), np.nan)
    return filled


def _command(entity: Entity) -> str:
    return entity.name.split("[")[0]


def _measured(seconds: Seconds, used: dict[int, Floats], incident: Incident) -> list[int]:
    """The processes that serve the measured transactions: there in the normal part, and none that does other work."""
    normal, during = seconds.inside(incident.normal), seconds.inside([incident.window])
    there = [row for row in used if not normal.any() or np.nan_to_num(used[row][normal]).any()]
    # Idle sessions of a small load may show no CPU time at all in a short normal part.
    there = there if there else list(used)
    for span in (normal, during):
        means = {row: float(np.nan_to_num(used[row][span]).mean()) for row in there} if span.any() else {}
        limit = max(OTHER_WORK_RATIO * float(np.median(list(means.values()))), OTHER_WORK_CPU) if means else 0.0
        kept = [row for row in there if means.get(row, 0.0) <= limit]
        there = kept or there
    return there


def _total(columns: list[Floats], seconds: Seconds) -> Floats:
    return np.sum(columns, axis=0) if columns else np.zeros(len(seconds.ends_ns))


def _add_statistics(seconds: Seconds, capture: Capture) -> None:
    """What the statistics views of PostgreSQL say: active sessions, reads, and the flushes of the log."""
    for metric, name in _STATISTICS.items():
        rows = [seconds.mean_of(g, row) / 100.0 for g in capture.of(metric) for row in range(len(g.entities))]
        known = [row for row in rows if np.isfinite(row).any()]
        if known:
            seconds.columns[name] = max(known, key=lambda row: float(np.nanmean(row)))
    if "log_busy" in seconds.columns:
        for group in capture.of("db_log_flushes_per_s"):
            seconds.columns["log_syncs"] = seconds.mean_of(group, 0)


def _add_disks(seconds: Seconds, capture: Capture) -> None:
    """Reads of the data disk, flushes of the log's disk, and how busy both are."""
    groups = capture.of("guest_disk_util_pct", EntityKind.BLOCK_DEVICE)
    if not groups:
        return
    whole = max(groups, key=lambda group: capture.is_aligned(group, "guest_disk_flush_latency_ms"))
    entities = list(whole.entities)

    def column(metric: str, disk: Entity | None) -> Floats:
        for group in sorted(capture.of(metric), key=lambda g: g.source != whole.source):
            if disk is not None and disk in group.entities:
                return seconds.mean_of(group, list(group.entities).index(disk))
        return np.full(len(seconds.ends_ns), np.nan)

    data = _disk(capture, entities, "data", lambda disk: _mean(column("disk_reads_per_s", disk)))
    log = _disk(capture, entities, "wal", lambda disk: _mean(column("guest_disk_flushes_per_s", disk))) or data
    seconds.data_disk, seconds.log_disk = data, log
    columns = seconds.columns
    columns["reads_per_s"] = column("disk_reads_per_s", data)
    columns["reading"] = np.nan_to_num(columns["reads_per_s"] * column("guest_disk_await_ms_read", data)) / 1e3
    columns["data_util"] = column("guest_disk_util_pct", data) / 100.0
    columns["log_util"] = column("guest_disk_util_pct", log) / 100.0
    columns["cycle_ms"] = _cycle_ms(
        column("disk_writes_per_s", log),
        column("guest_disk_await_ms_write", log),
        np.nan_to_num(column("guest_disk_flushes_per_s", log)),
        np.nan_to_num(column("guest_disk_flush_latency_ms", log)),
    )
    _add_swap(seconds, capture, [disk for disk in entities if disk not in (data, log)], column)


def _cycle_ms(writes: Floats, write_ms: Floats, flushes: Floats, flush_ms: Floats) -> Floats:
    """Time of one flush of the log [n]: its writes, then the flush.

    Linux counts the empty request that carries a flush among the writes, and its time too; then flushing is in the
    writes' time already. It is not counted where writes together took less than flushes did.
    Source: Linux, block/blk-flush.c, and Documentation/admin-guide/iostats.rst (fields 16 and 17).
    """
    written = np.nan_to_num(writes * write_ms)
    counted = written >= 0.9 * flushes * flush_ms
    plain = np.maximum(np.where(counted, writes - flushes, writes), 1.0)
    cycles = np.where(flushes > 0, np.minimum(flushes, plain), plain)
    cycle: Floats = (written + np.where(counted, 0.0, flushes * flush_ms)) / cycles
    return np.where(np.isfinite(writes), cycle, np.nan)


def _disk(capture: Capture, entities: list[Entity], role: str, activity: Callable[[Entity], float]) -> Entity | None:
    """The disk with a role; where none has it, the one with most of the activity that the role is known by."""
    named = [entity for entity in entities if capture.inventory.get(entity, "role") == role]
    if named:
        return max(named, key=activity)
    free = [entity for entity in entities if capture.inventory.get(entity, "role") in (None, role)]
    best = max(free, key=activity, default=None)
    return best if best is not None and activity(best) > 0 else None


def _mean(column: Floats) -> float:
    known = column[np.isfinite(column)]
    return float(known.mean()) if len(known) else 0.0


def _add_swap(
    seconds: Seconds, capture: Capture, disks: list[Entity], column: Callable[[str, Entity | None], Floats]
) -> None:
    """Sessions that wait for memory to be swapped in: page reads of the swap disk times their latency."""
    swapped = next((seconds.mean_of(group, 0) for group in capture.of("guest_swap_in_kib_per_s")), None)
    if swapped is None or not disks or _mean(swapped) <= 0:
        return
    swap = max(disks, key=lambda disk: _mean(column("disk_reads_per_s", disk)))
    waits = np.nan_to_num(column("disk_reads_per_s", swap) * column("guest_disk_await_ms_read", swap)) / 1e3
    seconds.swap_disk = swap
    seconds.columns["swap"] = np.where(np.nan_to_num(swapped) > 0, waits, 0.0)


def _add_machine(seconds: Seconds, capture: Capture) -> None:
    """How busy the guest's processors are, and how much of their time the hypervisor kept from them."""
    busy = [seconds.mean_of(group, 0) / 100.0 for group in capture.of("guest_cpu_busy_pct", EntityKind.GUEST)]
    if busy:
        seconds.columns["cpu_busy"] = max(busy, key=lambda column: int(np.isfinite(column).sum()))
    kept = [seconds.mean_of(group, 0) / 100.0 for group in capture.of("guest_cpu_steal_pct", EntityKind.GUEST)]
    for group in (group for metric in _KEPT for group in capture.of(metric, EntityKind.VCPU)):
        rows = [seconds.mean_of(group, row) for row in range(len(group.entities))]
        kept.append(np.mean(rows, axis=0) / 100.0)
    if kept:
        seconds.columns["starved"] = np.max(np.nan_to_num(kept), axis=0)


def _add_samples(seconds: Seconds, capture: Capture) -> None:
    """Active sessions by what they wait for, where they were sampled."""
    for group in capture.of(EVENTS):
        for row, entity in enumerate(group.entities):
            name = f"{SAMPLED}{_SAMPLED.get(resource_of(entity.name), 'lock')}"
            values = seconds.mean_of(group, row)
            seconds.columns[name] = seconds.columns.get(name, np.zeros(len(values))) + values
