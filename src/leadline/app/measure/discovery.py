"""How many of many differences may be called real: the limit below which chance alone explains too few of them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

FALSE_DISCOVERY_RATE = 0.05


def discovery_limit(p_values: NDArray[np.float64]) -> float:
    """Return the largest p-value that keeps the false discovery rate; -1 when none does.

    Args:
        p_values: of every test made, [test].

    Source: Benjamini and Hochberg, Controlling the False Discovery Rate (1995), procedure (1).

    >>> discovery_limit(np.array([0.001, 0.2, 0.02, 0.6]))
    0.02
    """
    if not len(p_values):
        return -1.0
    ordered = np.sort(p_values)
    passed = ordered <= FALSE_DISCOVERY_RATE * np.arange(1, len(ordered) + 1) / len(ordered)
    return float(ordered[np.flatnonzero(passed)[-1]]) if passed.any() else -1.0
