"""Bounds of what was not seen, and the linear programs behind them."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from leadline.app.reduction.answers import duplicate_share
from leadline.app.reduction.blocks import mixed
from leadline.app.reduction.contents import ContentTable
from leadline.app.reduction.simplex import smallest


@pytest.mark.parametrize("seed", range(20))
def test_linear_programs_equal_those_of_a_library(seed: int) -> None:
    solver = pytest.importorskip("ortools.linear_solver.pywraplp")
    draw = np.random.default_rng(seed)
    rows = draw.random((8, 15)) * (draw.random((8, 15)) < 0.7)
    point = draw.random(15) * 10
    low = np.maximum(rows @ point - draw.random(8) * 3, 0.0)
    high = rows @ point + draw.random(8) * 3
    objective = draw.normal(size=15) if seed % 2 else draw.random(15)
    objective = np.where(rows.any(axis=0), objective, 1.0)
    peer = solver.Solver.CreateSolver("GLOP")
    unknowns = [peer.NumVar(0, peer.infinity(), "") for _ in objective]
    for row, least, most in zip(rows, low, high, strict=True):
        peer.Add(sum(a * x for a, x in zip(row.tolist(), unknowns, strict=True)) >= float(least))
        peer.Add(sum(a * x for a, x in zip(row.tolist(), unknowns, strict=True)) <= float(most))
    peer.Minimize(sum(a * x for a, x in zip(objective.tolist(), unknowns, strict=True)))
    assert peer.Solve() == solver.Solver.OPTIMAL
    assert smallest(objective, rows, low, high) == pytest.approx(peer.Objective().Value(), rel=1e-6, abs=1e-6)


def test_a_program_that_nothing_fits_has_no_answer() -> None:
    rows = np.array([[1.0, 0.0], [1.0, 0.0]])
    assert smallest(np.ones(2), rows, np.array([4.0, 0.0]), np.array([9.0, 3.0])) is None


def sampled(order: NDArray[np.int64], read_share: float, seed: int) -> ContentTable:
    """A table of a share of the pieces of blocks with these contents."""
    cells = mixed(order.astype(np.uint64) + np.uint64(12345)).reshape(-1, 16)
    pick = np.random.default_rng(seed).permutation(len(cells))[: int(read_share * len(cells))]
    table = ContentTable()
    table.add(cells[pick], np.ones((len(pick), 16), np.uint8), pick)
    return table


def layouts(name: str, share: float, draw: np.random.Generator) -> NDArray[np.int64]:
    """Contents of 5,000 pieces with a share of duplicates, in ways that copies lie in real data."""
    cells = 80_000
    distinct = round(cells * (1 - share))
    if name == "spread":
        order: NDArray[np.int64] = np.r_[np.arange(distinct), draw.integers(0, distinct, cells - distinct)]
        draw.shuffle(order)
        return order
    if name == "one content":  # all duplicates are of one block
        order = np.r_[np.arange(distinct), np.zeros(cells - distinct, int)]
        draw.shuffle(order)
        return order
    if name == "whole pieces":  # copies of files: cells come and go together
        pieces: NDArray[np.int64] = np.arange(cells).reshape(-1, 16)
        copied = round(len(pieces) * share)
        pieces[len(pieces) - copied :] = pieces[draw.integers(0, len(pieces) - copied, copied)]
        draw.shuffle(pieces)
        flat: NDArray[np.int64] = np.ravel(pieces)
        return flat
    within: NDArray[np.int64] = np.arange(cells).reshape(-1, 16)  # repeated within a piece
    within[:, 16 - round(16 * share) :] = within[:, :1]
    whole: NDArray[np.int64] = np.ravel(within)
    return whole


@pytest.mark.parametrize("name", ["spread", "one content", "whole pieces", "within"])
@pytest.mark.parametrize("share", [0.0, 0.25, 0.75])
@pytest.mark.parametrize("read_share", [0.02, 0.2, 0.6])
def test_the_interval_contains_the_truth_however_copies_lie(name: str, share: float, read_share: float) -> None:
    for seed in range(4):
        order = layouts(name, share, np.random.default_rng(seed))
        true = 1 - len(np.unique(order)) / len(order)
        estimate = duplicate_share(sampled(order, read_share, seed), read_share)
        assert estimate.low - 1e-9 <= true <= estimate.high + 1e-9, (seed, true, estimate)
        assert 0.0 <= estimate.low <= estimate.value <= estimate.high <= 1.0
