"""Values that are kept packed and unpacked when they are looked at.

A capture of 60,000 columns holds more numbers than fit into memory side by side, but whoever looks at it looks at one
metric at a time. Packing loses nothing: what comes back are the very numbers the recorder wrote.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

RECENT_BYTES_MAX = 32 * 1024**2  # Judgement: a metric is looked at several times in a row, a large one not often


class PackedTable(Protocol):
    """Where packed series lie: `leadline._core.PdhTable`."""

    def rows(self, series: NDArray[np.uint32], dtype: Literal["f64", "f32"]) -> NDArray[np.floating[Any]]:
        """The values [k, n] of some series."""


class PackedValues:
    """Values [k, n] of some series of a packed table; NaN is "not measured".

    Args:
        table: where they lie.
        series: uint32 [k], which of them.
        sample_count: n.
        dtype: of the unpacked values.
        changes: NumPy functions with a second operand, scalar or [k, 1], that are applied in order after unpacking.
    """

    def __init__(
        self,
        table: PackedTable,
        series: NDArray[np.uint32],
        sample_count: int,
        dtype: Literal["f64", "f32"] = "f64",
        changes: Sequence[tuple[np.ufunc, Any]] = (),
    ) -> None:
        self._table = table
        self._series = series
        self._sample_count = sample_count
        self._dtype = dtype
        self._changes = tuple(changes)
        self._unpacked: weakref.ref[NDArray[np.floating[Any]]] | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """Series and samples."""
        return len(self._series), self._sample_count

    def unpacked(self) -> NDArray[np.floating[Any]]:
        """The values [k, n]; not to be written to, since they are made anew when nobody holds them."""
        values = None if self._unpacked is None else self._unpacked()
        if values is None:
            values = self._table.rows(self._series, self._dtype)
            for function, operand in self._changes:
                function(values, operand, out=values)
            values.flags.writeable = False
            self._unpacked = weakref.ref(values)
            _remember(values)
        return values

    def take(self, rows: Sequence[int]) -> PackedValues:
        """Only some of the series."""
        chosen = np.asarray(rows, dtype=np.intp)
        changes = [(function, operand[chosen] if np.ndim(operand) else operand) for function, operand in self._changes]
        return PackedValues(self._table, self._series[chosen], self._sample_count, self._dtype, changes)


class _Recent:
    """What was unpacked lately and how many bytes that is."""

    def __init__(self) -> None:
        self.arrays: deque[NDArray[np.floating[Any]]] = deque()
        self.bytes = 0


_recent = _Recent()


def _remember(values: NDArray[np.floating[Any]]) -> None:
    """Keep what was unpacked lately, the latest in any case, so that it is not unpacked again at once."""
    _recent.arrays.append(values)
    _recent.bytes += values.nbytes
    while len(_recent.arrays) > 1 and _recent.bytes > RECENT_BYTES_MAX:
        _recent.bytes -= _recent.arrays.popleft().nbytes
