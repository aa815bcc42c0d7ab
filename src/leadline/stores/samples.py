"""Every sample of a standing watch, on this machine and without a server.

Samples are appended to a log (`_samples/log.py`), on the disk when `append` returns. `maintain` makes Parquet
segments of it: hours, then days (`_samples/compaction.py`), with roll-ups whose sketches keep the peaks. A catalogue
in SQLite says which files count. One process writes; others read at the same time and never see a half segment.
In that process one thread may append and others read while one maintains, which takes minutes for a full day.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.io.private import private_folder, tighten_below
from leadline.core.model.capture import NS_PER_S, Capture, SeriesGroup, SourceInfo, Warn
from leadline.core.model.entities import Entity, EntityColumn
from leadline.core.model.errors import ToolError, UsageError

from ._facts import KnownFacts, StoredFact, inventory_of
from ._samples.catalogue import SampleCatalogue, gaps_of, minutes_present
from ._samples.compaction import DAY_S, LATE_S, MINUTE_STEP_S, Compaction, KeepLimits
from ._samples.files import CATALOGUE, DONE, LOG, REFUSED, SEGMENTS, StoreFiles, StoreView, reported
from ._samples.log import FILE_BYTES_MAX, LogEntry, LogWriter, sync_folder
from ._samples.pieces import StoredPiece
from ._samples.querying import StoredRollUps
from ._samples.turns import make_turn
from ._samples.writer_lock import WriterLock
from ._statistics import share_of

if TYPE_CHECKING:
    from numpy.typing import NDArray

GAP_S_MIN = 300  # Judgement: shorter ones are told by the times of the series themselves
LOG_AGE_S_MAX = 3600.0
_DAY_S, _YEAR_S = 86_400.0, 31_557_600.0


@dataclass(frozen=True, slots=True)
class Retention:
    """How long what is kept, seconds, and how many bytes a store may have after `SampleStore.maintain`."""

    raw_s: float = 7 * _DAY_S
    minute_s: float = 30 * _DAY_S
    ten_minutes_s: float = _YEAR_S
    two_hours_s: float = 5 * _YEAR_S
    bytes_max: int = 20 * 1024**3


@dataclass(frozen=True, slots=True)
class StoreStatus:
    """What a store has.

    Attributes:
        size_bytes: of all its files that count.
        rolled_up_bytes: of these, roll-ups.
        sample_count: raw samples; until a day is complete, one that was given twice may count twice.
        segment_count: Parquet files.
        oldest_ns: the first raw sample; None where there is none. So is ``newest_ns``, the last one.
        newest_ns: the last one.
        gaps_ns: spans of minutes in which there is no sample of any series.
        refusals: samples that came when the raw samples of their day were gone, and appends that the disk refused.
    """

    size_bytes: int
    rolled_up_bytes: int
    sample_count: int
    segment_count: int
    oldest_ns: int | None
    newest_ns: int | None
    gaps_ns: tuple[tuple[int, int], ...]
    refusals: int


@dataclass(frozen=True, slots=True, eq=False)
class RolledUp:
    """Samples of one metric, summed up in cells of time.

    Attributes:
        metric: canonical name.
        entities: k of them.
        times_ns: int64 [n], where each cell begins, UTC nanoseconds.
        step_s: how long a cell is.
        minimum: float32 [k, n]; NaN where nothing was measured. So are ``maximum`` and ``mean``.
        maximum: float32 [k, n].
        mean: float64 [k, n].
        count: int32 [k, n], samples that were measured.
        sketch: the distribution of each cell.
    """

    metric: str
    entities: EntityColumn
    times_ns: NDArray[np.int64]
    step_s: float
    minimum: NDArray[np.float32]
    maximum: NDArray[np.float32]
    mean: NDArray[np.float64]
    count: NDArray[np.int32]
    sketch: Any

    def quantile(self, share: float) -> NDArray[np.float64]:
        """A sample [k, n] that has this share of the others below it, within 1 % of its value; NaN without samples."""
        quantiles: NDArray[np.float64] = self.sketch.quantile(share)
        return quantiles


class SampleStore:
    """The samples of one folder.

    Args:
        folder: of the store; made where it is missing.
        keep: how long what is kept.
        read_only: another process may be writing; nothing is changed.

    Raises:
        UsageError: another process writes to it, or there is no store to read.
        ToolError: the folder cannot be used, or PyArrow is not installed.
    """

    def __init__(self, folder: Path, *, keep: Retention | None = None, read_only: bool = False) -> None:
        self.folder, self.keep, self.read_only = folder.absolute(), keep or Retention(), read_only
        self._lock: WriterLock | None = None
        self._appending, self._maintaining = threading.Lock(), threading.Lock()
        self._is_closing = threading.Event()
        self._log: LogWriter | None = None
        self._opened_s, self._refused_appends = 0.0, 0
        self._known = KnownFacts()
        if read_only and not (self.folder / CATALOGUE).is_file():
            raise UsageError(
                str(folder),
                found="no sample store",
                expected="a folder that `leadline watch` keeps samples in",
                advice="Name that folder, or start `leadline watch` first.",
            )
        with reported(self.folder):
            if not read_only:
                for path in (self.folder, self.folder / LOG, self.folder / SEGMENTS):
                    private_folder(path)
                self._lock = WriterLock.take(self.folder)
                make_turn(self.folder)
                for path in (self.folder, self.folder.parent):
                    sync_folder(path)
            try:
                self._files = StoreFiles(self.folder, SampleCatalogue(self.folder / CATALOGUE, read_only=read_only))
                if not read_only:
                    self._clean_up()
            except BaseException:
                if self._lock is not None:
                    self._lock.release()
                raise

    def __enter__(self) -> SampleStore:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Give up files and the lock; what was appended stays in the log.

        A `maintain` of another thread ends after the metric it is at.
        """
        self._is_closing.set()
        with self._maintaining, self._appending:
            if self._log is not None:
                self._log.close()
                self._log = None
            self._files.catalogue.close()
            if self._lock is not None:
                self._lock.release()
                self._lock = None

    def append(self, capture: Capture) -> None:
        """Keep the samples of a capture; they are on the disk when this returns.

        A sample that is known (same metric, entity and time) is kept once, as it came first. Times may go back.

        Raises:
            ToolError: the disk does not take it; nothing of it is kept, and the next append tries again.
        """
        with self._appending:
            self._must_write()
            self._append(capture)

    def _append(self, capture: Capture) -> None:
        origins = [_origin(source) for source in capture.sources]
        pieces = [piece for group in capture.groups if (piece := self._piece(origins, group)) is not None]
        span_ns = _times_of(pieces)
        changed_ns = time.time_ns() if span_ns is None else span_ns[1]
        facts, texts = self._known.changed(capture.inventory, changed_ns)
        if not pieces and not facts:
            return
        try:
            with reported(self.folder):
                self._appendable_log().append(LogEntry(pieces, span_ns, facts))
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
        """The raw samples of a span, its start included and its end not, those of the last append among them.

        The last source is the store itself; its warnings say what is rolled up or missing.

        Args:
            start_ns: of the span, UTC nanoseconds.
            end_ns: of the span, UTC nanoseconds.
            metrics: that are wanted; every one by default.
            entities: whose samples are wanted; those of all by default.
            settings: whether what is known of all entities comes with them.
        """
        span_ns = (start_ns, end_ns)

        def read() -> tuple[StoreView, list[StoredPiece], list[StoredFact]]:
            view = self._files.view(metrics, span_ns)
            wanted = self._wanted(entities)
            names = _metrics_of(view, metrics)
            pieces = [piece for name in names for piece in self._files.raw(view, name, span_ns, wanted)]
            facts = self._files.facts(view.entries) if settings else []
            return view, [piece for piece in pieces if piece.values.size], facts

        view, pieces, facts = self._files.consistently(read)
        places = {origin: place for place, origin in enumerate(dict.fromkeys(piece.origin for piece in pieces))}
        groups = [self._group(piece, places[piece.origin]) for piece in pieces]
        sources = [_source_of(origin, [p for p in pieces if p.origin == origin]) for origin in places]
        sources.append(self._note(view, span_ns))
        return Capture(groups, sources, inventory_of(facts, start_ns))

    def entities(self, start_ns: int, end_ns: int) -> EntityColumn:
        """The entities with raw samples in a span, and perhaps some that have theirs shortly before or after it.

        Args:
            start_ns: of the span, UTC nanoseconds.
            end_ns: of the span, not included, UTC nanoseconds.
        """
        span_ns = (start_ns, end_ns)
        numbers = self._files.consistently(lambda: self._files.numbers(self._files.view(None, span_ns), span_ns))
        return self._files.register.column(numbers)

    def rolled_up(
        self, metric: str, start_ns: int, end_ns: int, step_s: float, entities: Collection[Entity] | None = None
    ) -> RolledUp:
        """Samples of a metric summed up in cells, of the whole cells that a span touches.

        Raises:
            UsageError: the raw samples are gone, and what is kept of them has longer cells.
        """
        rollups = StoredRollUps(self._files, metric)
        step_ns = round(step_s * NS_PER_S)
        cells = self._files.consistently(lambda: rollups.cells(start_ns, end_ns, step_ns, self._wanted(entities)))
        count = cells.count
        mean = np.divide(cells.total, count, out=np.full(count.shape, np.nan), where=count > 0)
        column = self._files.register.column(cells.numbers)
        return RolledUp(metric, column, cells.starts_ns, step_s, cells.lowest, cells.highest, mean, count, cells)

    def top(
        self, metric: str, start_ns: int, end_ns: int, *, statistic: str = "p95", count: int = 20
    ) -> list[tuple[Entity, float]]:
        """The entities with the greatest statistic of a metric in a span, greatest first.

        Args:
            metric: canonical name.
            start_ns: of the span; where the raw samples are gone, whole cells count: of 10 minutes, or of those that
                the quota left.
            end_ns: of the span, not included.
            statistic: ``min``, ``max``, ``mean`` or a percentile such as ``p95``.
            count: how many entities.

        Raises:
            UsageError: there is no such statistic.
        """
        share = share_of(statistic)
        cells = self._files.consistently(lambda: StoredRollUps(self._files, metric).whole(start_ns, end_ns))
        if share is not None:
            values = cells.quantile(share)[:, 0]
        elif statistic == "mean":
            values = (cells.total / np.maximum(cells.count, 1))[:, 0]
        else:
            values = (cells.lowest if statistic == "min" else cells.highest)[:, 0].astype(np.float64)
        order = np.argsort(-values, kind="stable")[:count]
        names = self._files.register.column(cells.numbers[order])
        return list(zip(names, values[order].tolist(), strict=True))

    def span_ns(self) -> tuple[int, int] | None:
        """The times of the first and the last raw sample; None where there is none."""
        view = self._files.consistently(lambda: self._files.view(None, None))
        return _span_of(view)

    def metrics(self) -> list[str]:
        """The metrics of which there are samples or roll-ups, by name."""
        view = self._files.consistently(lambda: self._files.view(None, None))
        return sorted(_metrics_of(view, None))

    def status(self) -> StoreStatus:
        """What the store has now."""
        view = self._files.consistently(lambda: self._files.view(None, None))
        span_ns = _span_of(view)
        raw = [segment for segment in view.segments if segment.step_s == 0]
        logged = sum(piece.sample_count for name in _metrics_of(view, None) for piece in self._logged(view, name))
        segment_bytes = sum(segment.size_bytes for segment in view.segments)
        return StoreStatus(
            size_bytes=segment_bytes + self._log_bytes() + (self.folder / CATALOGUE).stat().st_size,
            rolled_up_bytes=sum(segment.size_bytes for segment in view.segments if segment.step_s),
            sample_count=sum(segment.sample_count for segment in raw) + logged,
            segment_count=len(view.segments),
            oldest_ns=None if span_ns is None else span_ns[0],
            newest_ns=None if span_ns is None else span_ns[1],
            gaps_ns=tuple(self._gaps(view)),
            refusals=self._files.catalogue.state(REFUSED) + self._refused_appends,
        )

    def maintain(self, *, whole: bool = False) -> None:
        """Compact the log into segments, complete days, and remove what is beyond retention or quota.

        Args:
            whole: also the file of the log that is appended to; else when it is full or an hour old.

        Raises:
            ToolError: the disk does not take the new files; what was there before still is.
        """
        with self._maintaining, reported(self.folder):
            with self._appending:  # what is listed here is appended to no more
                self._must_write()
                log = self._log
                if log is not None and (whole or self._is_full(log)):
                    log.close()
                    log = self._log = None
                paths = [path for path in self._files.logs() if log is None or path != log.path]
            compaction = Compaction(self._files, self._is_closing)
            compaction.compact_logs(paths)
            now_ns = self._now_ns()
            if now_ns is None:
                return
            compaction.compact_days(now_ns)
            keep = self.keep
            keep_s = {0: keep.raw_s, MINUTE_STEP_S: keep.minute_s, 600: keep.ten_minutes_s}
            keep_s |= {7200: keep.two_hours_s, DAY_S: keep.two_hours_s}
            compaction.drop_old(now_ns, KeepLimits(keep_s, keep.bytes_max), self._log_bytes())

    def _now_ns(self) -> int | None:
        """The newest sample, but not later than the clock has it: a clock that went ahead must not drop samples."""
        span_ns = _span_of(self._files.view(None, None))
        return None if span_ns is None else min(span_ns[1], time.time_ns() + LATE_S * NS_PER_S)

    def _clean_up(self) -> None:
        """Remove files that do not count: those of a compaction that did not end, and logs that are compacted."""
        tighten_below(self.folder)
        counted = {self.folder / segment.path for segment in self._files.catalogue.segments()}
        for path in (self.folder / SEGMENTS).iterdir():
            if path not in counted:
                path.unlink()
        waiting = self._files.logs()
        for path in (self.folder / LOG).glob("*.log"):
            if path not in waiting:
                path.unlink()
        entries = [entry for path in waiting for entry in self._files.entries(path)]
        self._known = KnownFacts.of(self._files.facts(entries))

    def _must_write(self) -> None:
        if self._lock is None:
            raise UsageError(
                str(self.folder),
                found="a store that was opened for reading, or closed",
                expected="one that is open for writing",
                advice="Open it without read_only.",
            )

    def _is_full(self, log: LogWriter) -> bool:
        return log.is_spoilt or log.size >= FILE_BYTES_MAX or time.monotonic() - self._opened_s > LOG_AGE_S_MAX

    def _appendable_log(self) -> LogWriter:
        if self._log is not None and self._is_full(self._log):
            self._log.close()
            self._log = None
        if self._log is None:
            # Files first: one that goes meanwhile was counted as compacted before.
            numbers = [int(path.stem) for path in (self.folder / LOG).glob("*.log")]
            number = max([*numbers, self._files.catalogue.state(DONE)]) + 1
            log = LogWriter(self.folder / LOG / f"{number:010}.log", self._files.register)
            log.open()
            self._log, self._opened_s = log, time.monotonic()
        return self._log

    def _log_bytes(self) -> int:
        size = 0
        for path in self._files.logs():
            with suppress(FileNotFoundError):  # compacted meanwhile
                size += path.stat().st_size
        return size

    def _piece(self, origins: Sequence[str], group: SeriesGroup) -> StoredPiece | None:
        measured = group.measured()
        if not len(measured.entities) or not len(measured.times_ns):
            return None
        origin = origins[measured.source] if measured.source < len(origins) else "{}"
        numbers = self._files.register.numbers(measured.entities)
        values = np.asarray(measured.values, dtype=np.float32)
        times_ns = np.asarray(measured.times_ns, dtype=np.int64)
        return StoredPiece(measured.metric, numbers, times_ns, values, measured.interval_s, origin)

    def _wanted(self, entities: Collection[Entity] | None) -> NDArray[np.bool_] | None:
        if entities is None:
            return None
        return self._files.wanted(self._files.register.numbers(list(entities)))

    def _group(self, piece: StoredPiece, source: int) -> SeriesGroup:
        column = self._files.register.column(piece.numbers)
        return SeriesGroup(piece.metric, column, piece.times_ns, piece.values, piece.interval_s, source)

    def _logged(self, view: StoreView, metric: str) -> Sequence[StoredPiece]:
        return self._files.raw(StoreView([], view.entries), metric, (-(2**63), 2**63 - 1), None)

    def _gaps(self, view: StoreView) -> list[tuple[int, int]]:
        logged = minutes_present(piece.times_ns for entry in view.entries for piece in entry.pieces)
        presence = self._files.catalogue.presence()
        for day, minutes in logged.items():
            known = np.frombuffer(presence.get(day, bytes(len(minutes))), np.uint8)
            presence[day] = (known | np.frombuffer(minutes, np.uint8)).tobytes()
        return gaps_of(presence, GAP_S_MIN)

    def _note(self, view: StoreView, span_ns: tuple[int, int]) -> SourceInfo:
        """The store as a source, with what is not in an answer."""
        warnings = []
        known = self._files.catalogue.segments(span_ns=span_ns)
        raw_days = {segment.day for segment in known if segment.step_s == 0}
        rolled_up = sorted({segment.day for segment in known if segment.step_s} - raw_days)
        if rolled_up:
            until = np.datetime64(rolled_up[-1] + 1, "D")
            text = f"raw samples before {until} are gone; roll-ups of them are kept"
            warnings.append(Warn("rolled-up", text, len(rolled_up)))
        for start_ns, end_ns in self._gaps(view):
            if start_ns < span_ns[1] and end_ns > span_ns[0]:
                first, last = (np.datetime64(ns // NS_PER_S, "s") for ns in (start_ns, end_ns))
                warnings.append(Warn("gap", f"no samples of any series from {first} to {last} UTC"))
        return SourceInfo(str(self.folder), "store", "Leadline sample store", warnings=tuple(warnings))


def _origin(source: SourceInfo) -> str:
    """A source as text, without what changes from capture to capture."""
    kept: dict[str, Any] = {"name": source.name, "importer": source.importer, "tool": source.tool}
    kept |= {"host": source.host, "tool_version": source.tool_version, "clock_known": source.clock_known}
    return json.dumps({key: value for key, value in kept.items() if value is not None})


def _times_of(pieces: Sequence[StoredPiece]) -> tuple[int, int] | None:
    """The times of the first and the last sample; None where there is none."""
    distinct = {id(piece.times_ns): piece.times_ns for piece in pieces}.values()
    return (min(int(t.min()) for t in distinct), max(int(t.max()) for t in distinct)) if pieces else None


def _metrics_of(view: StoreView, metrics: Collection[str] | None) -> list[str]:
    names = [segment.metric for segment in view.segments]
    names += [piece.metric for entry in view.entries for piece in entry.pieces]
    return [name for name in dict.fromkeys(names) if metrics is None or name in metrics]


def _span_of(view: StoreView) -> tuple[int, int] | None:
    raw = [segment for segment in view.segments if segment.step_s == 0]
    logged = [entry.span_ns for entry in view.entries if entry.span_ns is not None]
    starts = [segment.first_ns for segment in raw] + [first for first, _ in logged]
    ends = [segment.last_ns for segment in raw] + [last for _, last in logged]
    return (min(starts), max(ends)) if starts else None


def _source_of(origin: str, pieces: Sequence[StoredPiece]) -> SourceInfo:
    known = {"name": "store", "importer": "store", "tool": "store", **json.loads(origin)}
    start_ns = min(int(piece.times_ns[0]) for piece in pieces)
    end_ns = max(int(piece.times_ns[-1]) for piece in pieces)
    count = sum(len(piece.numbers) for piece in pieces)
    return SourceInfo(**known, start_ns=start_ns, end_ns=end_ns, series_count=count)
