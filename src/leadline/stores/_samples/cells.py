"""Roll-ups: what the samples of a metric were in each cell of time, with a sketch of their distribution.

A sketch counts samples in buckets whose bounds grow by a fixed factor, so that any quantile is right within 1 % of
its value; buckets of many cells and entities add up. Zero has a bucket of its own, negative values mirror positive
ones.

Source: Masson, Rim, Lee: DDSketch: a fast and fully-mergeable quantile sketch with relative-error guarantees, 2019.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .pieces import StoredPiece

ERROR = 0.0099  # relative error of a quantile: a little below 1 %, since logarithms are of float32
_GAMMA = (1 + ERROR) / (1 - ERROR)
_SCALE = float(1 / np.log(_GAMMA))
_CENTRE = float(2 / (1 + _GAMMA))
_SHIFT = 8000  # float32 has logarithms from -103.3 to 88.8, which is buckets from -5218 to 4482
_KEYS = 1 << 16
_SLAB = 1 << 21  # samples that are sketched at a time: bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Roll-ups of one metric of some entities.

    Attributes:
        numbers: int32 [k], of the entities.
        starts_ns: int64 [n], where each cell begins, ascending.
        lowest: float32 [k, n]; NaN where nothing was measured. So are ``highest``.
        highest: float32 [k, n].
        total: float64 [k, n], the sum of the samples.
        count: int32 [k, n], measured samples.
        cell: int64 [b], row times n plus column of each bucket, ascending.
        key: int16 [b], the bucket; ascending within a cell.
        weight: int32 [b], samples in it.
    """

    numbers: NDArray[np.int32]
    starts_ns: NDArray[np.int64]
    lowest: NDArray[np.float32]
    highest: NDArray[np.float32]
    total: NDArray[np.float64]
    count: NDArray[np.int32]
    cell: NDArray[np.int64]
    key: NDArray[np.int16]
    weight: NDArray[np.int32]

    def coarser(self, step_ns: int) -> Cells:
        """The same in longer cells."""
        column, starts = _columns(self.starts_ns, step_ns)
        row, old = np.divmod(self.cell, max(len(self.starts_ns), 1))
        of = np.searchsorted(starts, np.arange(len(self.starts_ns)), side="right") - 1
        cell = row * len(starts) + of[old]
        return replace(
            self,
            starts_ns=column,
            lowest=np.fmin.reduceat(self.lowest, starts, axis=1),
            highest=np.fmax.reduceat(self.highest, starts, axis=1),
            total=np.add.reduceat(self.total, starts, axis=1),
            count=np.add.reduceat(self.count, starts, axis=1),
            **condensed(cell, self.key, self.weight),
        )

    def between(self, start_ns: int, end_ns: int) -> Cells:
        """The cells that begin in a span."""
        first, end = np.searchsorted(self.starts_ns, (start_ns, end_ns)).tolist()
        if (first, end) == (0, len(self.starts_ns)):
            return self
        row, column = np.divmod(self.cell, max(len(self.starts_ns), 1))
        inside = (column >= first) & (column < end)
        return replace(
            self,
            starts_ns=self.starts_ns[first:end],
            lowest=self.lowest[:, first:end],
            highest=self.highest[:, first:end],
            total=self.total[:, first:end],
            count=self.count[:, first:end],
            cell=row[inside] * (end - first) + column[inside] - first,
            key=self.key[inside],
            weight=self.weight[inside],
        )

    def quantile(self, share: float) -> NDArray[np.float64]:
        """The sample [k, n] below which a share of those of its cell lie, within 1 %; NaN where there is none."""
        values = np.full(self.count.size, np.nan)
        filled = np.flatnonzero(self.count.reshape(-1))
        if not len(filled):
            return values.reshape(self.count.shape)
        rank = np.floor(share * (self.count.reshape(-1)[filled] - 1)).astype(np.int64)
        upto = np.cumsum(self.weight, dtype=np.int64)
        before = upto[np.searchsorted(self.cell, filled)] - self.weight[np.searchsorted(self.cell, filled)]
        values[filled] = value_of(self.key[np.searchsorted(upto, before + rank, side="right")])
        quantiles: NDArray[np.float64] = np.clip(values.reshape(self.count.shape), self.lowest, self.highest)
        return quantiles


def cells_of(piece: StoredPiece, step_ns: int) -> Cells:
    """The cells of samples whose times ascend."""
    slab = max(_SLAB // max(len(piece.times_ns), 1), 1)
    if len(piece.numbers) > slab:
        parts = [
            cells_of(replace(piece, numbers=piece.numbers[i : i + slab], values=piece.values[i : i + slab]), step_ns)
            for i in range(0, len(piece.numbers), slab)
        ]
        return stacked(parts)
    column, starts = _columns(piece.times_ns, step_ns)
    values, missing = piece.values, np.isnan(piece.values)
    plain = np.where(missing, np.float32(0), values).astype(np.float64)
    of = np.repeat(np.arange(len(starts)), np.diff(np.append(starts, len(piece.times_ns))))
    cell = np.arange(len(values))[:, None] * len(starts) + of
    keys = key_of(values)
    buckets = (
        condensed(cell.reshape(-1), keys.reshape(-1))
        if not missing.any()
        else condensed(cell[~missing], keys[~missing])
    )
    return Cells(
        piece.numbers,
        column,
        np.fmin.reduceat(values, starts, axis=1),
        np.fmax.reduceat(values, starts, axis=1),
        np.add.reduceat(plain, starts, axis=1),
        np.add.reduceat((~missing).astype(np.int32), starts, axis=1),
        **buckets,
    )


def stacked(parts: Sequence[Cells]) -> Cells:
    """Cells of the same times and different entities as one."""
    width = len(parts[0].starts_ns)
    firsts = np.cumsum([0, *(len(part.numbers) for part in parts)]) * width
    joined = {
        name: np.concatenate([getattr(part, name) for part in parts])
        for name in ("numbers", "lowest", "highest", "total", "count", "key", "weight")
    }
    cell = np.concatenate([part.cell + first for part, first in zip(parts, firsts.tolist(), strict=False)])
    return Cells(starts_ns=parts[0].starts_ns, cell=cell, **joined)


def on_grid(parts: Sequence[Cells], numbers: NDArray[np.int32], starts_ns: NDArray[np.int64], step_ns: int) -> Cells:
    """Cells of some entities at regular starts, of parts that add up; parts have cells of no more than a step."""
    shape = (len(numbers), len(starts_ns))
    lowest, highest = np.full(shape, np.nan, np.float32), np.full(shape, np.nan, np.float32)
    total, count = np.zeros(shape), np.zeros(shape, np.int32)
    row_of = np.zeros(max((int(part.numbers.max(initial=-1)) for part in parts), default=-1) + 1, dtype=np.int64)
    known = numbers[numbers < len(row_of)]
    row_of[known] = np.arange(len(numbers))[numbers < len(row_of)]
    cells, keys, weights = [], [], []
    for finer in parts:
        part = finer.coarser(step_ns) if len(finer.starts_ns) else finer
        rows, columns = row_of[part.numbers], (part.starts_ns - starts_ns[0]) // step_ns
        place = np.ix_(rows, columns)
        lowest[place] = np.fmin(lowest[place], part.lowest)
        highest[place] = np.fmax(highest[place], part.highest)
        total[place] += part.total
        count[place] += part.count
        row, column = np.divmod(part.cell, max(len(part.starts_ns), 1))
        cells.append(rows[row] * shape[1] + columns[column])
        keys.append(part.key)
        weights.append(part.weight)
    buckets = condensed(
        np.concatenate(cells or [np.empty(0, np.int64)]),
        np.concatenate(keys or [np.empty(0, np.int16)]),
        np.concatenate(weights or [np.empty(0, np.int32)]),
    )
    return Cells(numbers, starts_ns, lowest, highest, total, count, **buckets)


def condensed(
    cell: NDArray[np.integer[Any]], key: NDArray[np.int16], weight: NDArray[np.int32] | None = None
) -> dict[str, Any]:
    """Buckets in order, each once, as fields of `Cells`; without weights each counts once."""
    whole = cell.astype(np.int64) * _KEYS + (key.astype(np.int64) + _KEYS // 2)
    if weight is None:
        whole.sort()
    elif np.any(whole[1:] < whole[:-1]):
        order = np.argsort(whole)
        whole, weight = whole[order], weight[order]
    firsts = np.flatnonzero(np.append(True, whole[1:] != whole[:-1])) if len(whole) else np.empty(0, np.int64)
    if weight is None:
        summed = np.diff(np.append(firsts, len(whole))).astype(np.int32)
    else:
        summed = np.add.reduceat(weight, firsts).astype(np.int32) if len(whole) else weight
    once = whole[firsts]
    return {"cell": once // _KEYS, "key": (once % _KEYS - _KEYS // 2).astype(np.int16), "weight": summed}


def key_of(values: NDArray[np.float32]) -> NDArray[np.int16]:
    """The bucket of each value; NaN has that of zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        rank = np.ceil(np.log(np.abs(values)) * np.float32(_SCALE)) + np.float32(_SHIFT)
    rank = np.where(np.isfinite(rank), rank, np.where(np.isinf(values), np.float32(2 * _SHIFT), np.float32(0)))
    return np.where(values < 0, -rank, rank).astype(np.int16)


def value_of(keys: NDArray[np.int16]) -> NDArray[np.float64]:
    """The middle of each bucket."""
    size = np.abs(keys.astype(np.float64))
    middle = np.where(
        size >= 2 * _SHIFT, np.inf, np.exp((np.minimum(size, 2 * _SHIFT - 1) - _SHIFT) / _SCALE) * _CENTRE
    )
    return np.where(size == 0, 0.0, np.copysign(middle, keys))


def _columns(times_ns: NDArray[np.int64], step_ns: int) -> tuple[NDArray[np.int64], NDArray[np.intp]]:
    """Where the cells begin that have samples, and the first sample of each."""
    column = times_ns // step_ns
    starts = np.flatnonzero(np.append(True, column[1:] != column[:-1]))
    return column[starts] * step_ns, starts
