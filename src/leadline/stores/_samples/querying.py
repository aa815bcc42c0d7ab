"""Roll-ups of any span: kept ones where they are, and raw samples where they are not."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.model.errors import UsageError

from .catalogue import NS_PER_DAY, NS_PER_S, Segment
from .cells import Cells, cells_of, on_grid
from .compaction import DAY_S
from .files import StoreFiles, StoreView
from .rollups import read_rollup

if TYPE_CHECKING:
    from numpy.typing import NDArray

_EDGE_S = 600  # cells of days of which a span has only a part, where there are any


@dataclass(frozen=True, slots=True)
class StoredRollUps:
    """The roll-ups of a metric."""

    files: StoreFiles
    metric: str

    def cells(self, start_ns: int, end_ns: int, step_ns: int, wanted: NDArray[np.bool_] | None) -> Cells:
        """Cells of one length of the span from the start of its first cell to the end of its last.

        Raises:
            UsageError: what is kept has longer cells.
        """
        first, last = start_ns // step_ns, -(-end_ns // step_ns)
        starts_ns = np.arange(first, max(last, first), dtype=np.int64) * step_ns
        parts: list[Cells] = []
        if len(starts_ns):
            for source in self._sources(first * step_ns, last * step_ns, wanted):
                parts.extend(source.cells(step_ns, first * step_ns, last * step_ns))
        return on_grid(parts, _numbers(parts), starts_ns, step_ns)

    def whole(self, start_ns: int, end_ns: int) -> Cells:
        """One cell per entity, of all of a span; where raw samples are gone, of the shortest cells it touches."""
        parts: list[Cells] = []
        for source in self._sources(start_ns, end_ns, None):
            parts.extend(map(_single, source.longest(start_ns, end_ns)))
        return on_grid(parts, _numbers(parts), np.zeros(1, dtype=np.int64), 1 << 62)

    def _sources(self, start_ns: int, end_ns: int, wanted: NDArray[np.bool_] | None) -> Iterator[_DaySource]:
        view = self.files.view([self.metric], None)
        days: defaultdict[int, list[Segment]] = defaultdict(list)
        for segment in view.segments:
            days[segment.day].append(segment)
        logged = {
            day
            for entry in view.entries
            for piece in entry.pieces
            if piece.metric == self.metric
            for day in np.unique(piece.times_ns // NS_PER_DAY).tolist()
        }
        for day in sorted(days.keys() | logged):
            if day * NS_PER_DAY < end_ns and (day + 1) * NS_PER_DAY > start_ns:
                view_of_day = StoreView(days[day], view.entries if day in logged else [])
                yield _DaySource(self, day, view_of_day, wanted)


@dataclass(frozen=True, slots=True)
class _DaySource:
    """What there is of a day."""

    rollups: StoredRollUps
    day: int
    view: StoreView
    wanted: NDArray[np.bool_] | None

    def cells(self, step_ns: int, start_ns: int, end_ns: int) -> list[Cells]:
        """Cells of no more than a step, of a span that begins and ends with a step."""
        kept = sorted({segment.step_s for segment in self.view.segments if segment.step_s}, reverse=True)
        fitting = [step_s for step_s in kept if step_ns % (step_s * NS_PER_S) == 0]
        inside = max(self.day * NS_PER_DAY, start_ns), min((self.day + 1) * NS_PER_DAY, end_ns)
        if self._has_all_raw and (self._has_newer or not fitting):
            return self._of_raw(step_ns, inside)
        if not fitting:
            raise UsageError(
                f"a step of {step_ns / NS_PER_S:g} s",
                found=f"raw samples of {np.datetime64(self.day, 'D')} are gone",
                expected=f"a multiple of {min(kept)} s",
                advice="Ask for longer cells or a later time.",
            )
        parts = [part.between(*inside) for part in self._of_kept(fitting[0])]
        return [*parts, *(self._of_raw(step_ns, inside) if self._has_newer else [])]

    def longest(self, start_ns: int, end_ns: int) -> list[Cells]:
        """Cells as long as they may be, of all of a span."""
        first_ns, last_ns = self.day * NS_PER_DAY, (self.day + 1) * NS_PER_DAY
        if start_ns <= first_ns and end_ns >= last_ns:
            return self.cells(DAY_S * NS_PER_S, first_ns, last_ns)
        if self._has_all_raw:
            return self._of_raw(DAY_S * NS_PER_S, (max(start_ns, first_ns), min(end_ns, last_ns)))
        kept = [segment.step_s for segment in self.view.segments if segment.step_s >= _EDGE_S]
        edge_ns = min(kept, default=_EDGE_S) * NS_PER_S
        return self.cells(edge_ns, start_ns // edge_ns * edge_ns, -(-end_ns // edge_ns) * edge_ns)

    @property
    def _has_all_raw(self) -> bool:
        """Whether the raw samples of the day are there."""
        spans = {segment.span_s for segment in self.view.segments if segment.step_s == 0}
        return DAY_S in spans or not any(segment.step_s for segment in self.view.segments)

    @property
    def _has_newer(self) -> bool:
        """Whether there are samples that the kept cells do not have."""
        return bool(self.view.entries) or any(s.step_s == 0 and s.span_s != DAY_S for s in self.view.segments)

    def _of_raw(self, step_ns: int, span_ns: tuple[int, int]) -> list[Cells]:
        pieces = self.rollups.files.raw(self.view, self.rollups.metric, span_ns, self.wanted)
        return [cells_of(piece, step_ns) for piece in pieces if piece.values.size]

    def _of_kept(self, step_s: int) -> list[Cells]:
        files = self.rollups.files
        paths = [files.folder / segment.path for segment in self.view.segments if segment.step_s == step_s]
        return [part for path in paths for part in read_rollup(path, files.register, self.wanted)]


def _numbers(parts: Sequence[Cells]) -> NDArray[np.int32]:
    return np.unique(np.concatenate([part.numbers for part in parts])) if parts else np.empty(0, np.int32)


def _single(part: Cells) -> Cells:
    """All cells of each entity as one, which begins at 0."""
    moved = part if len(part.starts_ns) == 1 else part.coarser(1 << 62)
    fields = {name: getattr(moved, name) for name in Cells.__slots__}
    return Cells(**{**fields, "starts_ns": np.zeros(1, dtype=np.int64)})
