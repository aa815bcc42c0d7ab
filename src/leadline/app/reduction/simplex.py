"""Small linear programs: dense simplex method in two phases.

For tens of rows and a hundred unknowns; larger ones need a library.
Source: Chvatal, "Linear programming" (1983), chapters 2, 3 and 8.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

_SMALL = 1e-9
_STEPS_MAX = 20_000
_GREEDY_STEPS = 2_000  # then Bland's rule, which cannot cycle


def smallest(
    objective: NDArray[np.float64], rows: NDArray[np.float64], low: NDArray[np.float64], high: NDArray[np.float64]
) -> float | None:
    """Return the least ``objective @ x`` of all x >= 0 with ``low <= rows @ x <= high``; None where there is no such x.

    Args:
        objective: float64 [n].
        rows: float64 [m, n].
        low: float64 [m], 0 or more.
        high: float64 [m], finite.

    >>> smallest(np.array([1.0, 1.0]), np.array([[1.0, 2.0]]), np.array([4.0]), np.array([9.0]))
    2.0
    """
    scale = 1.0 / np.maximum(high, _SMALL)
    rows, low, high = rows * scale[:, None], low * scale, high * scale
    unit = 1.0 / np.maximum(np.abs(rows).max(axis=0), 1e-4)  # unknowns of like size
    rows, costs = rows * unit, objective * unit
    count, width = rows.shape
    needed = np.flatnonzero(low > 0)
    # Unknowns, what is left to `high`, what is beyond `low`, and what still lacks at `low`, which phase one removes.
    table = np.zeros((count + len(needed), width + count + 2 * len(needed) + 1))
    table[:count, :width], table[:count, -1] = rows, high
    table[:count, width : width + count] = np.eye(count)
    table[count:, :width], table[count:, -1] = rows[needed], low[needed]
    surplus, lacking = width + count, width + count + len(needed)
    table[count:, surplus:lacking] = -np.eye(len(needed))
    table[count:, lacking:-1] = np.eye(len(needed))
    basis = np.r_[np.arange(width, width + count), np.arange(lacking, lacking + len(needed))]
    first = np.zeros(table.shape[1] - 1)
    first[lacking:] = 1.0
    if needed.size and (_solved(table, basis, first, lacking) or 0.0) > 1e-7:
        return None
    second = np.zeros(table.shape[1] - 1)
    second[:width] = costs
    second[lacking:] = 1e4 * max(float(np.abs(costs).max()), 1.0)  # those left at 0 stay there
    return _solved(table, basis, second, lacking)


def _solved(
    table: NDArray[np.float64], basis: NDArray[np.int64], costs: NDArray[np.float64], usable: int
) -> float | None:
    """Improve the basis in place until no column below ``usable`` lowers the costs; None where nothing bounds them."""
    reduced = costs - costs[basis] @ table[:, :-1]
    for step in range(_STEPS_MAX):
        better = np.flatnonzero(reduced[:usable] < -_SMALL)
        if not better.size:
            break
        column = int(better[0] if step >= _GREEDY_STEPS else better[np.argmin(reduced[better])])
        rising = table[:, column] > _SMALL
        if not rising.any():
            return None
        ratios = np.full(len(table), np.inf)
        ratios[rising] = np.maximum(table[rising, -1], 0.0) / table[rising, column]
        ties = np.flatnonzero(ratios <= ratios.min() + 1e-12)
        row = int(ties[np.argmin(basis[ties])])
        table[row] /= table[row, column]
        others = table[:, column].copy()
        others[row] = 0.0
        table -= np.outer(others, table[row])
        reduced -= reduced[column] * table[row, :-1]
        basis[row] = column
    return float(costs[basis] @ table[:, -1])
