"""Samples of a standing watch in VictoriaMetrics, single or cluster, where one machine is not enough.

It has the methods of `SampleStore`. Samples are written by remote write and read back by export and PromQL. A series
has its canonical metric name and the labels ``entity``, ``source``, ``importer``, ``tool``, ``host``,
``tool_version`` and ``unit``. Facts of entities are kept in a SQLite file of the folder. How many samples came in
each minute is kept as the series ``leadline_kept_samples``, which tells times and gaps without a look at all others.

Differs from the embedded store: times are whole milliseconds; retention, quota and disk are the server's; it has what
it acknowledged on the disk some seconds later (-inmemoryDataFlushInterval); it refuses no sample that is older than
its retention or two days ahead of its clock, and drops it. Percentiles are exact. A sample that came twice, since an
answer was lost, is read once; statistics of the server count it twice unless it runs with
-dedup.minScrapeInterval=1ms, which is what we recommend.

Source: VictoriaMetrics 1.93, "Single-server VictoriaMetrics" and "MetricsQL"; Prometheus remote write 1.0.
"""

from __future__ import annotations

import re
import time
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo, Warn
from leadline.core.model.entities import Entity, EntityColumn
from leadline.core.model.errors import ToolError, UsageError

from ._facts import KnownFacts, inventory_of
from ._statistics import share_of
from ._victoriametrics.answers import NS_PER_MS, grouped, selectors, series_of, source_labels
from ._victoriametrics.connection import MetricsServer
from ._victoriametrics.facts import FactsFile
from ._victoriametrics.writing import label_bytes, requests, series_bytes
from .samples import GAP_S_MIN, RolledUp, StoreStatus

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["KEPT", "MetricsServer", "VictoriaMetricsStore"]

KEPT = "leadline_kept_samples"
LABELS_KEPT = 256  # columns of series whose labels are remembered as bytes; a watch has some per metric
CELLS_MAX = 10_000  # of one question. Source: -search.maxPointsPerTimeseries is 30,000
EVER_MS = 100 * 365 * 86_400_000
_MS_PER_MINUTE, _MS_PER_DAY = 60_000, 86_400_000
_GAPS_DAYS = 31  # that a status looks for gaps in
_SIZE = re.compile(r"^vm_data_size_bytes\{[^}\n]{0,200}\} (\S{1,40})$", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class AskedQuantiles:
    """Percentiles of cells, asked for when they are needed.

    Attributes:
        store: that is asked.
        metric: canonical name.
        entities: k of them, as text.
        starts_ns: int64 [n], of the cells.
        step_s: how long a cell is.
        wanted: selector of the series.
    """

    store: VictoriaMetricsStore
    metric: str
    entities: tuple[str, ...]
    starts_ns: NDArray[np.int64]
    step_s: float
    wanted: str

    def quantile(self, share: float) -> NDArray[np.float64]:
        """The quantile [k, n]; NaN where there is no sample."""
        function = f"max by (entity) (quantile_over_time({share!r}, {{}}))"
        return self.store.in_cells(function, self.wanted, self.entities, self.starts_ns, self.step_s)


class VictoriaMetricsStore:
    """The samples of one VictoriaMetrics.

    Args:
        server: where they are.
        folder: of the facts beside them.
        read_only: nothing is written.

    Raises:
        ToolError: the server does not answer, or the folder cannot be used.
    """

    def __init__(self, server: MetricsServer, folder: Path, *, read_only: bool = False) -> None:
        self.server, self.folder, self.read_only = server, folder.absolute(), read_only
        self._facts = FactsFile(self.folder, server.address, read_only=read_only)
        self._labels: dict[tuple[str, SourceInfo, tuple[Entity, ...]], list[bytes]] = {}
        self._refused_appends, self._is_closed = 0, False
        try:
            server.query("1", time.time_ns() // NS_PER_MS)
            self._known = KnownFacts.of(self._facts.all())
        except BaseException:
            self._facts.close()
            raise

    def __enter__(self) -> VictoriaMetricsStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up the file of facts."""
        self._facts.close()
        self._is_closed = True

    def append(self, capture: Capture) -> None:
        """Give the samples of a capture to the server; it has them when this returns.

        A capture that was refused may be given again: a sample that comes twice is read once.

        Raises:
            ToolError: the server did not take all of it.
            UsageError: the store was opened for reading, or closed.
        """
        if self.read_only or self._is_closed:
            raise UsageError(
                self.server.address,
                found="a store that was opened for reading, or closed",
                expected="one that is open for writing",
                advice="Open it without read_only.",
            )
        groups = [group.measured() for group in capture.groups]
        groups = [group for group in groups if len(group.entities) and len(group.times_ns)]
        span_ns = Capture(groups).span_ns()
        facts, texts = self._known.changed(capture.inventory, time.time_ns() if span_ns is None else span_ns[1])
        try:
            for request in requests(self._parts(capture.sources, groups)):
                self.server.write(request)
            self._facts.keep(facts)
        except ToolError:
            self._refused_appends += 1
            raise
        self._known.keep(capture.inventory, texts)

    def read(
        self,
        start_ns: int,
        end_ns: int,
        *,
        metrics: Collection[str] | None = None,
        entities: Collection[Entity] | None = None,
        settings: bool = True,
    ) -> Capture:
        """The samples of a span, its start included and its end not; the last source is the store itself.

        Args:
            start_ns: of the span, UTC nanoseconds.
            end_ns: of the span, UTC nanoseconds.
            metrics: that are wanted; every one by default.
            entities: whose samples are wanted; those of all by default.
            settings: whether what is known of all entities comes with them.
        """
        chosen = selectors(metrics, entities)
        wanted = None if entities is None else frozenset(map(str, entities))
        series = []
        if chosen and wanted != frozenset():
            with self.server.exported(chosen, *_ms_span(start_ns, end_ns)) as lines:
                series = series_of(lines, (start_ns, end_ns), wanted)
        groups, sources = grouped(series)
        sources.append(self._note((start_ns, end_ns)))
        return Capture(groups, sources, inventory_of(self._facts.all() if settings else (), start_ns))

    def entities(self, start_ns: int, end_ns: int) -> EntityColumn:
        """The entities with samples in a span, and perhaps others: the server looks at whole days.

        Args:
            start_ns: of the span, UTC nanoseconds.
            end_ns: of the span, not included, UTC nanoseconds.
        """
        names = self.server.names("entity", selectors(None, None)[0], _ms_span(start_ns, end_ns))
        return EntityColumn([Entity.parse(name) for name in sorted(names)])

    def rolled_up(
        self, metric: str, start_ns: int, end_ns: int, step_s: float, entities: Collection[Entity] | None = None
    ) -> RolledUp:
        """Samples of a metric summed up in cells, of the whole cells that a span touches."""
        step_ns = round(step_s * NS_PER_S)
        first, end = start_ns // step_ns, -(-end_ns // step_ns)
        starts_ns = np.arange(first, max(end, first), dtype=np.int64) * step_ns
        wanted = selectors([metric], entities)[0]
        names = self._names(wanted, starts_ns, step_ns, entities)

        def cells(outer: str, inner: str) -> NDArray[np.float64]:
            return self.in_cells(f"{outer} by (entity) ({inner}_over_time({{}}))", wanted, names, starts_ns, step_s)

        count = np.nan_to_num(cells("sum", "count"))
        total = np.nan_to_num(cells("sum", "sum"))
        mean = np.divide(total, count, out=np.full(count.shape, np.nan), where=count > 0)
        lowest, highest = (cells(name, name).astype(np.float32) for name in ("min", "max"))
        column = EntityColumn([Entity.parse(name) for name in names])
        sketch = AskedQuantiles(self, metric, names, starts_ns, step_s, wanted)
        return RolledUp(metric, column, starts_ns, step_s, lowest, highest, mean, count.astype(np.int32), sketch)

    def top(
        self, metric: str, start_ns: int, end_ns: int, *, statistic: str = "p95", count: int = 20
    ) -> list[tuple[Entity, float]]:
        """The entities with the greatest statistic of a metric in a span, greatest first.

        Args:
            metric: canonical name.
            start_ns: of the span.
            end_ns: of the span, not included.
            statistic: ``min``, ``max``, ``mean`` or a percentile such as ``p95``.
            count: how many entities.

        Raises:
            UsageError: there is no such statistic.
        """
        share = share_of(statistic)
        start_ms, end_ms = _ms_span(start_ns, end_ns)
        series = f"{selectors([metric], None)[0]}[{end_ms - start_ms}ms]"
        if share is not None:
            each = f"max by (entity) (quantile_over_time({share!r}, {series}))"
        elif statistic == "mean":
            each = f"sum by (entity) (sum_over_time({series})) / sum by (entity) (count_over_time({series}))"
        else:
            each = f"{statistic} by (entity) ({statistic}_over_time({series}))"
        rows = self.server.query(f"topk({count}, {each})", end_ms - 1)
        values = [(Entity.parse(row["metric"]["entity"]), float(row["value"][1])) for row in rows]
        return sorted(values, key=lambda pair: (-pair[1], str(pair[0])))

    def span_ns(self) -> tuple[int, int] | None:
        """The times of the first and the last sample; None where there is none."""
        moments = []
        for function in ("min(tfirst_over_time", "max(tlast_over_time"):
            rows = self.server.query(f"{function}({KEPT}[{EVER_MS}ms]))", _latest_ms())
            moments += [round(float(row["value"][1]) * 1000) * NS_PER_MS for row in rows]
        return (moments[0], moments[1]) if len(moments) == 2 else None

    def metrics(self) -> list[str]:
        """The metrics of which there are samples, by name."""
        return sorted(self.server.names("__name__", selectors(None, None)[0], (0, _latest_ms())))

    def status(self) -> StoreStatus:
        """What the server has now; its size is 0 where it does not tell, as a cluster does not."""
        span_ns = self.span_ns()
        count = 0
        if span_ns is not None:
            rows = self.server.query(f"sum(sum_over_time({KEPT}[{EVER_MS}ms]))", span_ns[1] // NS_PER_MS + 1)
            count = sum(round(float(row["value"][1])) for row in rows)
        return StoreStatus(
            size_bytes=round(sum(float(text) for text in _SIZE.findall(self.server.own_metrics()))),
            rolled_up_bytes=0,
            sample_count=count,
            segment_count=0,
            oldest_ns=None if span_ns is None else span_ns[0],
            newest_ns=None if span_ns is None else span_ns[1],
            gaps_ns=() if span_ns is None else tuple(self._gaps(span_ns)),
            refusals=self._refused_appends,
        )

    def maintain(self, *, whole: bool = False) -> None:
        """Nothing: the server looks after its files."""

    def in_cells(
        self,
        function: str,
        wanted: str,
        names: Sequence[str],
        starts_ns: NDArray[np.int64],
        step_s: float,
    ) -> NDArray[np.float64]:
        """A function of the samples in each cell [k, n] of named entities; NaN where there is none.

        Args:
            function: PromQL of one series per entity; ``{}`` stands for the samples of a cell.
            wanted: selector of the series.
            names: k entities.
            starts_ns: int64 [n], of regular cells.
            step_s: their length.
        """
        rows = {name: row for row, name in enumerate(names)}
        values = np.full((len(names), len(starts_ns)), np.nan)
        step_ms = round(step_s * 1000)
        starts_ms = starts_ns // NS_PER_MS
        expression = function.replace("{}", f"{wanted}[{step_ms}ms]")
        for first in range(0, len(starts_ms), CELLS_MAX):
            some = starts_ms[first : first + CELLS_MAX]
            # A window reaches from after its beginning to its end: a cell of half-open time ends a millisecond earlier.
            last_ms = int(some[-1]) + step_ms - 1
            answer = self.server.query_range(expression, int(some[0]) + step_ms - 1, last_ms, step_ms)
            for one in answer:
                row = rows.get(one["metric"].get("entity", ""))
                if row is not None:
                    pairs = np.array(one["values"], dtype=np.float64)
                    columns = np.rint((pairs[:, 0] * 1000 - (some[0] + step_ms - 1)) / step_ms).astype(np.int64)
                    values[row, first + columns] = pairs[:, 1]
        return values

    def _names(
        self, wanted: str, starts_ns: NDArray[np.int64], step_ns: int, entities: Collection[Entity] | None
    ) -> tuple[str, ...]:
        """The entities that have samples in the cells."""
        if not len(starts_ns):
            return ()
        end_ms = (int(starts_ns[-1]) + step_ns) // NS_PER_MS
        length_ms = len(starts_ns) * step_ns // NS_PER_MS
        rows = self.server.query(f"count by (entity) (count_over_time({wanted}[{length_ms}ms]))", end_ms - 1)
        names = sorted(row["metric"]["entity"] for row in rows)
        chosen = None if entities is None else set(map(str, entities))
        return tuple(name for name in names if chosen is None or name in chosen)

    def _parts(self, sources: Sequence[SourceInfo], groups: Sequence[SeriesGroup]) -> Iterator[bytes]:
        kept: dict[int, tuple[int, int]] = {}
        for group in groups:
            source = sources[group.source] if group.source < len(sources) else SourceInfo("store", "store", "store")
            times_ms = np.asarray(group.times_ns, dtype=np.int64) // NS_PER_MS
            values = np.asarray(group.values)
            yield from series_bytes(self._labels_of(group, source), times_ms, values)
            counts = np.count_nonzero(~np.isnan(values), axis=0)
            for minute in np.unique(times_ms // _MS_PER_MINUTE).tolist():
                inside = times_ms // _MS_PER_MINUTE == minute
                last_ms, count = kept.get(minute, (0, 0))
                kept[minute] = (max(last_ms, int(times_ms[inside].max())), count + int(counts[inside].sum()))
        if kept:
            times = np.array([last_ms for last_ms, _ in kept.values()], dtype=np.int64)
            numbers = np.array([[count for _, count in kept.values()]], dtype=np.float64)
            first = min(int(group.times_ns.min()) for group in groups) // NS_PER_MS
            if first not in times:
                times, numbers = np.append(times, first), np.append(numbers, [[0.0]], axis=1)
            order = np.argsort(times)
            times, numbers = times[order], numbers[:, order]
            yield from series_bytes([label_bytes([("__name__", KEPT)])], times, numbers)

    def _labels_of(self, group: SeriesGroup, source: SourceInfo) -> list[bytes]:
        plain = replace(source, start_ns=None, end_ns=None, offset_s=0.0, series_count=0, warnings=())
        key = (group.metric, plain, tuple(group.entities))
        labels = self._labels.get(key)
        if labels is None:
            shared = [("__name__", group.metric), ("unit", group.unit), *source_labels(source)]
            labels = [label_bytes([*shared, ("entity", str(entity))]) for entity in group.entities]
            if len(self._labels) >= LABELS_KEPT:
                self._labels.clear()
            self._labels[key] = labels
        return labels

    def _gaps(self, span_ns: tuple[int, int]) -> list[tuple[int, int]]:
        """Spans of minutes without any sample, of the last days of a span."""
        start_ms, end_ms = span_ns[0] // NS_PER_MS, span_ns[1] // NS_PER_MS + 1
        start_ms = max(start_ms, end_ms - _GAPS_DAYS * _MS_PER_DAY)
        if end_ms <= start_ms:
            return []
        minutes: list[int] = []
        with self.server.exported([KEPT], start_ms, end_ms) as lines:
            for line in lines:
                minutes += _minutes_of(line)
        present = np.unique(np.array(minutes, dtype=np.int64))
        after = np.flatnonzero(np.diff(present) * 60 > GAP_S_MIN + 60)
        minute_ns = _MS_PER_MINUTE * NS_PER_MS
        starts, ends = (present[after] + 1) * minute_ns, present[after + 1] * minute_ns
        return list(zip(starts.tolist(), ends.tolist(), strict=True))

    def _note(self, span_ns: tuple[int, int]) -> SourceInfo:
        warnings = []
        whole_ns = self.span_ns()
        if whole_ns is not None:
            for start_ns, end_ns in self._gaps((max(whole_ns[0], span_ns[0]), min(whole_ns[1], span_ns[1]))):
                first, last = (np.datetime64(ns // NS_PER_S, "s") for ns in (start_ns, end_ns))
                warnings.append(Warn("gap", f"no samples of any series from {first} to {last} UTC"))
        return SourceInfo(self.server.address, "store", "VictoriaMetrics", warnings=tuple(warnings))


def _minutes_of(line: bytes) -> list[int]:
    from pydantic_core import from_json  # noqa: PLC0415 - as in series_of

    row: dict[str, Any] = from_json(line)
    minutes: list[int] = np.unique(np.array(row["timestamps"], dtype=np.int64) // _MS_PER_MINUTE).tolist()
    return minutes


def _latest_ms() -> int:
    """The latest time of a sample: the server takes none that is more than two days ahead of its clock."""
    return time.time_ns() // NS_PER_MS + 2 * _MS_PER_DAY


def _ms_span(start_ns: int, end_ns: int) -> tuple[int, int]:
    """Milliseconds of a span of samples: those of its nanoseconds, its end not included; no more than time has."""
    return max(-(-start_ns // NS_PER_MS), 0), min(-(-end_ns // NS_PER_MS), EVER_MS)
