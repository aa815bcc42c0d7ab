"""Series of Prometheus by the names of its exporters: levels, and counters whose steps are rates.

Source: node_exporter, collectors (names follow /proc and Documentation/admin-guide/iostats.rst); postgres_exporter and
mysqld_exporter, README; Prometheus documentation, "Querying basics".
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field
from leadline.core.model.entities import Entity
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Request
    from leadline.core.model.capture import CaptureBuilder

_MEMORY = {
    "MemFree": "free",
    "MemAvailable": "available",
    "Cached": "cached",
    "Buffers": "buffers",
    "Active": "active",
    "Inactive": "inactive",
    "Dirty": "dirty",
}
LEVELS: dict[str, Field] = {
    "node_load1": Field("guest_load_1m", "count"),
    "node_load5": Field("guest_load_5m", "count"),
    "node_load15": Field("guest_load_15m", "count"),
    "node_procs_running": Field("guest_run_queue_count", "count"),
    "node_procs_blocked": Field("guest_blocked_count", "count"),
    **{f"node_memory_{name}_bytes": Field(f"guest_memory_{of}_mib", "bytes") for name, of in _MEMORY.items()},
    "mysql_global_status_threads_running": Field("db_active_sessions_count", "count"),
    "mysql_global_status_threads_connected": Field("db_sessions_count", "count"),
}
# Counters: per second of what they count, or per cent where they count seconds.
RATES: dict[str, Field] = {
    "node_disk_reads_completed_total": Field("disk_reads_per_s", "per_s"),
    "node_disk_writes_completed_total": Field("disk_writes_per_s", "per_s"),
    "node_disk_read_bytes_total": Field("disk_read_mib_per_s", "bytes_per_s"),
    "node_disk_written_bytes_total": Field("disk_write_mib_per_s", "bytes_per_s"),
    "node_disk_io_time_seconds_total": Field("guest_disk_util_pct", "ratio"),
    "node_disk_io_time_weighted_seconds_total": Field("guest_disk_queue_count", "count"),
    "node_pressure_io_waiting_seconds_total": Field("guest_pressure_io_some_pct", "ratio"),
    "node_pressure_io_stalled_seconds_total": Field("guest_pressure_io_full_pct", "ratio"),
    "node_pressure_cpu_waiting_seconds_total": Field("guest_pressure_cpu_some_pct", "ratio"),
    "node_pressure_memory_waiting_seconds_total": Field("guest_pressure_memory_some_pct", "ratio"),
    "node_pressure_memory_stalled_seconds_total": Field("guest_pressure_memory_full_pct", "ratio"),
    "node_context_switches_total": Field("guest_context_switches_per_s", "per_s"),
    "node_forks_total": Field("guest_forks_per_s", "per_s"),
    "pg_stat_database_xact_commit": Field("db_tps", "per_s"),
    "pg_stat_database_xact_rollback": Field("db_tps", "per_s"),
    "mysql_global_status_queries": Field("db_qps", "per_s"),
}
_CPU = "node_cpu_seconds_total"
_ACTIVITY = "pg_stat_activity_count"
_IDLE, _IOWAIT, _BUSY = "guest_cpu_idle_pct", "guest_cpu_iowait_pct", "guest_cpu_busy_pct"
_MODES = ("user", "nice", "system", "iowait", "steal", "irq", "softirq", "idle")
# Time of all requests over their count.
_WAITS = {
    "guest_disk_await_ms_read": ("node_disk_read_time_seconds_total", "node_disk_reads_completed_total"),
    "guest_disk_await_ms_write": ("node_disk_write_time_seconds_total", "node_disk_writes_completed_total"),
}
KNOWN = frozenset({*LEVELS, *RATES, _CPU, _ACTIVITY, *(time for time, _ in _WAITS.values())})
_LABEL = re.compile(r'(?<!\w)([A-Za-z_]\w*+)\s*+=\s*+"((?:[^"\\]|\\.)*+)"')
_NAME = re.compile(r"[A-Za-z_:][\w:]*")
_RATE = re.compile(r"i?rate\(([^()]*)\[[0-9a-z]+\]\)")


@dataclass(frozen=True, slots=True)
class SeriesName:
    """The name and labels of a series; ``is_rate`` where a query has made its rate already."""

    name: str
    labels: tuple[tuple[str, str], ...] = ()
    is_rate: bool = False

    def label(self, *names: str) -> str:
        """The first of some labels that it has; empty where it has none."""
        known = dict(self.labels)
        return next((known[name] for name in names if known.get(name)), "")


def parse_series(text: str) -> SeriesName | None:
    """The series a text names as Prometheus writes it; None where it names none that is known.

    >>> parse_series('rate(node_forks_total{instance="db01:9100"}[5m])').is_rate
    True
    """
    plain = text.strip()[:4000]
    rate = _RATE.fullmatch(plain)
    plain = plain if rate is None else rate[1]
    head, _, rest = plain.partition("{")
    if head.strip() not in KNOWN or not _NAME.fullmatch(head.strip()):
        return None
    return SeriesName(head.strip(), tuple(sorted(_LABEL.findall(rest))), rate is not None)


def named_by(labels: Mapping[str, object], name: str = "") -> SeriesName | None:
    """The series of some labels; None where its name is not known."""
    plain = {str(key): str(value) for key, value in labels.items()}
    base = parse_series(plain.pop("__name__", "") or name)
    if base is None:
        return None
    return SeriesName(base.name, tuple(sorted({**dict(base.labels), **plain}.items())), base.is_rate)


@dataclass(slots=True)
class ExporterSeries:
    """Samples of series by name and labels, and what they become."""

    _samples: dict[SeriesName, dict[int, float]] = field(default_factory=dict)

    def put(self, name: SeriesName, points: Iterable[tuple[int, float]]) -> None:
        """Add samples: UTC nanoseconds and values."""
        self._samples.setdefault(name, {}).update(points)

    @property
    def count(self) -> int:
        """How many series there are."""
        return len(self._samples)

    def into(self, request: Request, builder: CaptureBuilder) -> None:
        """Add the metrics they become to a capture; sums of what several series of one entity count."""
        sums: dict[tuple[str, Entity], list[tuple[NDArray[np.int64], NDArray[np.float64]]]] = {}
        shares: dict[tuple[str, Entity], tuple[NDArray[np.int64], NDArray[np.float64]]] = {}
        for metric, entity, times, values in self._columns(builder):
            if len(times) and (request.wants(metric) or metric in {_IDLE, _IOWAIT}):
                sums.setdefault((metric, entity), []).append((times, values))
        for (metric, entity), columns in sums.items():
            grid = np.unique(np.concatenate([times for times, _ in columns]))
            total = np.zeros(len(grid))
            for times, values in columns:
                row = np.full(len(grid), np.nan)
                row[np.searchsorted(grid, times)] = values
                total += row
            builder.add_series(metric, entity, grid, total)
            shares[metric, entity] = (grid, total)
        for (metric, entity), (grid, idle) in shares.items():
            waits = shares.get((_IOWAIT, entity))
            if metric == _IDLE and waits is not None and np.array_equal(waits[0], grid) and request.wants(_BUSY):
                builder.add_series(_BUSY, entity, grid, 100.0 - idle - waits[1])

    def _columns(self, builder: CaptureBuilder) -> Iterator[tuple[str, Entity, NDArray[np.int64], NDArray[np.float64]]]:
        cpu_counts = self._cpu_counts()
        for name, samples in self._samples.items():
            times, values = _arrays(samples)
            level = LEVELS.get(name.name)
            if level is not None:
                yield level.metric, _entity(level.metric, name), times, values * _scale(level)
            elif name.name == _ACTIVITY and name.label("state") == "active":
                yield "db_active_sessions_count", _database(name), times, values
            elif name.name == _CPU and name.label("mode") in _MODES:
                metric = f"guest_cpu_{name.label('mode')}_pct"
                count = max(cpu_counts.get((_guest(name), name.label("mode")), 1), 1)
                yield metric, _guest(name), *self._rate(name, times, values, 100.0 / count, builder)
            elif name.name in RATES:
                rate = RATES[name.name]
                yield rate.metric, _entity(rate.metric, name), *self._rate(name, times, values, _scale(rate), builder)
        yield from self._waits()

    def _cpu_counts(self) -> dict[tuple[Entity, str], int]:
        """How many CPUs of each guest and mode there are."""
        counts: dict[tuple[Entity, str], int] = {}
        for name in self._samples:
            if name.name == _CPU:
                key = (_guest(name), name.label("mode"))
                counts[key] = counts.get(key, 0) + 1
        return counts

    def _rate(
        self,
        name: SeriesName,
        times: NDArray[np.int64],
        values: NDArray[np.float64],
        scale: float,
        builder: CaptureBuilder,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Steps per second; NaN over a restart. Values that are rates already stay."""
        if name.is_rate:
            return times, values * scale
        if len(times) < 2:
            builder.warn("one-sample", "counters with one sample were left out: they are no rates")
            return times[:0], values[:0]
        return times[1:], _steps(values) / (np.diff(times) / 1e9) * scale

    def _waits(self) -> Iterator[tuple[str, Entity, NDArray[np.int64], NDArray[np.float64]]]:
        for metric, (spent_name, count_name) in _WAITS.items():
            for name, samples in self._samples.items():
                counts = self._samples.get(SeriesName(count_name, name.labels, name.is_rate))
                if name.name != spent_name or counts is None:
                    continue
                shared = {time_ns: value for time_ns, value in samples.items() if time_ns in counts}
                times, spent = _arrays(shared)
                count = np.array([counts[int(time_ns)] for time_ns in times], dtype=np.float64)
                if not name.is_rate:
                    times, spent, count = times[1:], _steps(spent), _steps(count)
                mean = np.full(len(times), math.nan)
                np.divide(spent * 1000.0, count, out=mean, where=count > 0)
                yield metric, _entity(metric, name), times, mean


def _arrays(samples: Mapping[int, float]) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    times = np.array(sorted(samples), dtype=np.int64)
    return times, np.array([samples[int(time_ns)] for time_ns in times], dtype=np.float64)


def _steps(values: NDArray[np.float64]) -> NDArray[np.float64]:
    steps = np.diff(values) if len(values) else values
    with np.errstate(invalid="ignore"):
        return np.where(steps < 0, np.nan, steps)


def _scale(meant: Field) -> float:
    return factor(meant.unit, metric_of(meant.metric).unit)


def _guest(name: SeriesName) -> Entity:
    host = name.label("nodename", "hostname", "host", "instance", "server")
    host = host.rpartition(":")[0] if re.fullmatch(r".+:[0-9]{1,5}", host) else host
    return Entity(EntityKind.GUEST, host) if host else UNNAMED_GUEST


def _database(name: SeriesName) -> Entity:
    return Entity(EntityKind.DATABASE, "mysql" if name.name.startswith("mysql") else "postgresql", _guest(name))


def _entity(metric: str, name: SeriesName) -> Entity:
    if metric.startswith("db_"):
        return _database(name)
    if name.name.startswith("node_disk_"):
        return Entity(EntityKind.BLOCK_DEVICE, name.label("device") or "disk", _guest(name))
    return _guest(name)
