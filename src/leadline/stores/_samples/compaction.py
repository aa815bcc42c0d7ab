"""Compaction: the log becomes hours of raw samples, hours become days with roll-ups, what is too old goes.

Each step writes new files, waits for the disk, and then lets them count and the old ones not, in one commit of the
catalogue. Whatever ends the process between, the next start removes the files that do not count.
"""

from __future__ import annotations

import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadline.stores._facts import StoredFact

from .catalogue import NS_PER_DAY, NS_PER_S, Segment, minutes_present
from .cells import Cells, cells_of
from .files import DONE, NUMBER, REFUSED, SEGMENTS, StoreFiles
from .log import LogEntry, sync_folder
from .pieces import StoredPiece, merged
from .rollups import write_rollup
from .segments import WrittenSegment, distance_s, read_segment, write_segment
from .turns import holding_turn

if TYPE_CHECKING:
    from numpy.typing import NDArray

HOUR_S, DAY_S = 3600, 86_400
MINUTES_STEPS_S = (MINUTE_STEP_S, TEN_MINUTES_STEP_S) = (60, 600)  # made when raw samples go: until then these answer
CELL_SAMPLES_MIN = 12  # Measured: lowest, highest, sum and sketch of fewer take more room than the samples
STEPS_S = (7200, DAY_S)  # made when a day is complete
LATE_S = 3600  # a day is complete so long after its end. Source: vCenter posts storage counters 40 minutes late
LOGS_AT_ONCE = 4  # Judgement: 256 MiB of samples in memory
CELLS_AT_ONCE = 1 << 25  # values of a metric in memory while a day is put together: 128 MiB


@dataclass(frozen=True, slots=True)
class KeepLimits:
    """How long what is kept, seconds by step (0 for raw samples), and how many bytes."""

    keep_s: dict[int, float]
    bytes_max: int


@dataclass(eq=False)
class Compaction:
    """Work on the files of a store, for its writer.

    Attributes:
        files: of the store.
        is_over: set by whoever wants it to end soon; what is not done then is done at the next start.
    """

    files: StoreFiles
    is_over: threading.Event = field(default_factory=threading.Event)
    _waiting: list[Segment] = field(default_factory=list)
    _number: int = 0

    def compact_logs(self, paths: Sequence[Path]) -> None:
        """Make segments of hours of files of the log.

        Raises:
            OSError: the disk does not take them; then the log is as it was.
        """
        for first in range(0, len(paths), LOGS_AT_ONCE):
            if self.is_over.is_set():
                return
            some = paths[first : first + LOGS_AT_ONCE]
            entries = [entry for path in some for entry in self.files.entries(path)]
            with self._undone_on_error():
                self._hours(entries)
                presence = minutes_present(piece.times_ns for entry in entries for piece in entry.pieces)
                facts = [fact for entry in entries for fact in entry.facts]
                self._commit([], facts=facts, presence=presence, state={DONE: int(some[-1].stem)})
            for path in some:
                path.unlink(missing_ok=True)

    def compact_days(self, now_ns: int) -> None:
        """Make days of hours, with roll-ups, where the day is complete.

        Samples that come when the raw samples of their day are gone stay hours until they are dropped, too.

        Raises:
            OSError: the disk does not take them.
        """
        parts: defaultdict[tuple[int, str], list[Segment]] = defaultdict(list)
        for segment in self.files.catalogue.segments():
            if (segment.day + 1) * NS_PER_DAY + LATE_S * NS_PER_S <= now_ns:
                parts[segment.day, segment.metric].append(segment)
        for (day, metric), segments in sorted(parts.items()):
            if self.is_over.is_set():
                return
            raw = [segment for segment in segments if segment.step_s == 0]
            is_rolled_up = any(segment.step_s for segment in segments)
            has_day = any(segment.span_s == DAY_S for segment in raw)
            if any(segment.span_s == HOUR_S for segment in raw) and (has_day or not is_rolled_up):
                with self._undone_on_error():
                    self._compact_day(day, metric, raw, segments)

    def drop_old(self, now_ns: int, limits: KeepLimits, log_bytes: int) -> None:
        """Remove what is older than its retention, then the oldest of what is beyond the quota.

        Raises:
            OSError: the roll-ups of days that lose their raw samples cannot be written.
        """
        segments = self.files.catalogue.segments()
        days: defaultdict[tuple[int, str], list[Segment]] = defaultdict(list)
        rolled_up_days = {(segment.day, segment.metric) for segment in segments if segment.step_s}
        for segment in segments:
            is_complete = (segment.day, segment.metric) in rolled_up_days
            if segment.step_s == 0 and is_complete and _is_over(segment, now_ns, limits.keep_s[0]):
                days[segment.day, segment.metric].append(segment)
        for (day, metric), parts in days.items():
            if self.is_over.is_set():
                return
            asked = [step_s for step_s in MINUTES_STEPS_S if not _is_over(parts[-1], now_ns, limits.keep_s[step_s])]
            is_whole = any(part.span_s == DAY_S for part in parts)
            if not is_whole or set(asked) <= set(self._steps_instead(parts)):  # else they stand for their cells
                self._let_raw_go(day, metric, parts, asked)
        rolled_up = [one for one in segments if one.step_s and _is_over(one, now_ns, limits.keep_s[one.step_s])]
        if rolled_up:
            self._commit(rolled_up)
        self._keep_quota(limits.bytes_max - log_bytes)
        self.files.catalogue.forget_gone(now_ns - round(limits.keep_s[0] * NS_PER_S))

    def _steps_instead(self, parts: Sequence[Segment]) -> list[int]:
        """The steps whose cells have enough samples each to take less room than these."""
        between_s = min(distance_s(self.files.folder / part.path) for part in parts)
        return [step_s for step_s in MINUTES_STEPS_S if step_s >= CELL_SAMPLES_MIN * between_s]

    def _let_raw_go(self, day: int, metric: str, parts: Sequence[Segment], steps_s: Sequence[int]) -> None:
        """Put roll-ups in the place of the raw samples of a day; what came later than these is counted as refused."""
        is_whole = any(part.span_s == DAY_S for part in parts)
        with self._undone_on_error():
            if is_whole:
                self._roll_up(day, metric, self._slabs(metric, parts), steps_s)
            late = 0 if is_whole else sum(part.sample_count for part in parts)
            self._commit(parts, state={REFUSED: self.files.catalogue.state(REFUSED) + late})

    def _keep_quota(self, bytes_max: int) -> None:
        """Make room by the oldest: raw samples become ten minutes; these go where they take more than the samples."""
        while not self.is_over.is_set():
            segments = self.files.catalogue.segments()
            if sum(segment.size_bytes for segment in segments) <= bytes_max:
                return
            minutes = [segment for segment in segments if 0 < segment.step_s <= TEN_MINUTES_STEP_S]
            days = {(s.day, s.metric) for s in segments if s.step_s == 0 and s.span_s == DAY_S}
            raw = [segment for segment in segments if (segment.day, segment.metric) in days and segment.step_s == 0]
            if sum(segment.size_bytes for segment in raw) > sum(segment.size_bytes for segment in minutes):
                oldest = min(raw, key=_age)
                parts = [part for part in raw if (part.day, part.metric) == (oldest.day, oldest.metric)]
                steps_s = [step_s for step_s in self._steps_instead(parts) if step_s == TEN_MINUTES_STEP_S]
                self._let_raw_go(oldest.day, oldest.metric, parts, steps_s)
                continue
            unfinished = [segment for segment in segments if segment.step_s == 0]
            if not (least := minutes or unfinished or segments):
                return
            self._commit([min(least, key=_age)])

    def _hours(self, entries: Sequence[LogEntry]) -> None:
        by_metric: defaultdict[str, list[StoredPiece]] = defaultdict(list)
        for entry in entries:
            for piece in entry.pieces:
                by_metric[piece.metric].append(piece)
        hour_ns = HOUR_S * NS_PER_S
        for metric, pieces in by_metric.items():
            hours: defaultdict[int, list[StoredPiece]] = defaultdict(list)
            for piece in merged(pieces):
                for hour in np.unique(piece.times_ns // hour_ns).tolist():
                    part = _measured(piece.between(hour * hour_ns, (hour + 1) * hour_ns))
                    if part.values.size:
                        hours[hour].append(part)
            for hour, parts in hours.items():
                self._write(metric, 0, HOUR_S, hour * hour_ns, partial(self._raw, parts))

    def _compact_day(self, day: int, metric: str, raw: Sequence[Segment], segments: Sequence[Segment]) -> None:
        turn = min(segment.turn for segment in raw)
        read = self._slabs(metric, raw)
        self._write(metric, 0, DAY_S, day * NS_PER_DAY, lambda path: self._raw(read(), path), turn)
        self._roll_up(day, metric, read, STEPS_S)
        self._commit(segments)

    def _roll_up(
        self, day: int, metric: str, read: Callable[[], Iterator[StoredPiece]], steps_s: Sequence[int]
    ) -> None:
        cells: list[Cells] = []
        for step_s in steps_s:
            step_ns = step_s * NS_PER_S
            cells = [part.coarser(step_ns) for part in cells] or [cells_of(piece, step_ns) for piece in read()]
            self._write(metric, step_s, DAY_S, day * NS_PER_DAY, partial(self._cells, cells))

    def _slabs(self, metric: str, segments: Sequence[Segment]) -> Callable[[], Iterator[StoredPiece]]:
        """A function that reads the merged samples of segments, as many entities at a time as fit into memory."""
        files, ordered = self.files, sorted(segments, key=lambda segment: segment.turn)

        def read() -> Iterator[StoredPiece]:
            count = sum(segment.sample_count for segment in segments)
            turns = max(-(-count // CELLS_AT_ONCE), 1)
            if turns == 1:
                yield from merged(_all(ordered, None))
                return
            for turn in range(turns):
                size = len(files.register)
                chosen = np.arange(size) * turns // max(size, 1) == turn
                yield from merged(_all(ordered, chosen))

        def _all(parts: Iterable[Segment], wanted: NDArray[np.bool_] | None) -> Iterator[StoredPiece]:
            for part in parts:
                yield from read_segment(files.folder / part.path, files.register, metric, wanted)

        return read

    def _raw(self, pieces: Iterable[StoredPiece], path: Path) -> WrittenSegment:
        return write_segment(path, pieces, self.files.register)

    def _cells(self, parts: Iterable[Cells], path: Path) -> WrittenSegment:
        return write_rollup(path, parts, self.files.register)

    def _write(
        self,
        metric: str,
        step_s: int,
        span_s: int,
        start_ns: int,
        write: Callable[[Path], WrittenSegment],
        turn: int | None = None,
    ) -> None:
        """Write a file that counts from the next commit."""
        self._number = number = max(self.files.catalogue.state(NUMBER), self._number) + 1
        name = f"{SEGMENTS}/{number:010}.parquet"
        done = write(self.files.folder / name)
        last_ns = done.last_ns + max(step_s * NS_PER_S - 1, 0)
        sizes = (done.first_ns, last_ns, done.sample_count, done.size_bytes)
        self._waiting.append(Segment(name, turn or number, metric, step_s, span_s, start_ns, *sizes))

    def _commit(
        self,
        removed: Sequence[Segment],
        *,
        facts: Sequence[StoredFact] = (),
        presence: dict[int, bytes] | None = None,
        state: dict[str, int] | None = None,
    ) -> None:
        """Let the written files count and others no more, and remove these."""
        if self._waiting:
            sync_folder(self.files.folder / SEGMENTS)
        counters = {NUMBER: max(self.files.catalogue.state(NUMBER), self._number), **(state or {})}
        with holding_turn(self.files.folder):
            self.files.catalogue.replace(self._waiting, removed, facts=facts, presence=presence, state=counters)
        self._waiting.clear()
        for segment in removed:
            (self.files.folder / segment.path).unlink(missing_ok=True)

    @contextmanager
    def _undone_on_error(self) -> Iterator[None]:
        """Remove the files that were written for a commit that did not come about."""
        try:
            yield
        except BaseException:
            counted = {segment.path for segment in self.files.catalogue.segments()}
            for segment in self._waiting:
                if segment.path not in counted:  # an interrupt may come right after the commit
                    (self.files.folder / segment.path).unlink(missing_ok=True)
            self._waiting.clear()
            raise


def _is_over(segment: Segment, now_ns: int, keep_s: float) -> bool:
    """Whether a segment is older than it is to be kept."""
    return segment.end_ns + round(keep_s * NS_PER_S) <= now_ns


def _age(segment: Segment) -> tuple[int, int, int]:
    """What orders segments from the oldest on, of one time the one with the shorter cells first."""
    return segment.start_ns, segment.step_s, segment.turn


def _measured(piece: StoredPiece) -> StoredPiece:
    """The piece without the entities and times that have no sample."""
    missing = np.isnan(piece.values)
    rows, columns = ~missing.all(axis=1), ~missing.all(axis=0)
    if rows.all() and columns.all():
        return piece
    values = piece.values[np.ix_(rows, columns)]
    return replace(piece, numbers=piece.numbers[rows], times_ns=piece.times_ns[columns], values=values)
