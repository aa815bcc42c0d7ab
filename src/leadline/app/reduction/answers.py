"""Shares and ratios, with intervals, from what was read."""

from __future__ import annotations

from math import sqrt

import numpy as np
from numpy.typing import NDArray

from leadline.app.reduction.blocks import BLOCK_CELLS, CELL_BYTES
from leadline.app.reduction.contents import ContentTable
from leadline.app.reduction.model import (
    BlockReduction,
    Reduction,
    ReductionEstimate,
    ReductionState,
    VsanReduction,
)
from leadline.app.reduction.packing import LZ4, ZSTD, PackedBlocks, esa_bytes, vsan_bytes
from leadline.app.reduction.unseen import contents_between

_NORMAL_95 = 1.96
_BYTES = 1  # the column of `PackedBlocks.rows` where bytes begin
_PIECE = 3


def answer_of(state: ReductionState) -> Reduction:
    """Return what would be saved, as far as was read."""
    packed = state.packer.settle()
    rows = []
    for block_cells, table, blocks in zip(BLOCK_CELLS, state.tables, packed, strict=True):
        table.settle()
        rows.append(_block_reduction(state, block_cells, table, blocks))
    return Reduction(
        state.id,
        state.path,
        len(state.places.paths),
        state.places.total_bytes,
        state.read_bytes,
        state.hole_bytes,
        state.read_share,
        state.is_whole,
        round(state.seconds, 3),
        state.packed_pieces,
        state.left_out,
        tuple(rows),
        _vsan(state, state.tables[0], packed[0]),
    )


def duplicate_share(table: ContentTable, read_share: float) -> ReductionEstimate:
    """Return the share of bytes in blocks whose content another block holds already; zeros left out."""
    fewest, most, best = _contents_share(table, read_share)
    return ReductionEstimate(1.0 - best, 1.0 - most, 1.0 - fewest)


def _contents_share(table: ContentTable, read_share: float) -> tuple[float, float, float]:
    """Return the different contents as a share of all blocks that are not zeros: fewest, most, most likely."""
    if not table.used_cells:
        return 1.0, 1.0, 1.0
    total = table.used_cells / read_share
    fewest, most = contents_between(table, read_share)
    off = _NORMAL_95 * _used_error(table, read_share)
    low, high = min(fewest / (total * (1 + off)), 1.0), min(most / (total * max(1 - off, 1e-6)), 1.0)
    if read_share < 1.0:
        return low, high, (low + high) / 2
    return low, high, min(float(table.cells.sum()) / table.chance / total, 1.0)


def _used_error(table: ContentTable, read_share: float) -> float:
    """Return the standard error of the cells that are not zeros, as a share of them; pieces were drawn."""
    spread = max(table.used_squares - table.used_cells**2 / table.piece_count, 0.0)
    return sqrt(spread * (1.0 - read_share)) / table.used_cells


def _block_reduction(
    state: ReductionState, block_cells: int, table: ContentTable, blocks: PackedBlocks
) -> BlockReduction:
    shares = _contents_share(table, state.read_share)
    codecs = {}
    for codec in (LZ4, ZSTD):
        sizes = blocks.rows[:, _BYTES + codec]
        is_measured = len(sizes) > 0 and bool(sizes.all())
        codecs[codec] = _ratios(state, table, blocks, sizes, shares) if is_measured else (None, None)
    return BlockReduction(
        block_cells * CELL_BYTES,
        table.zero_cells / max(table.total_cells, 1),
        ReductionEstimate(1.0 - shares[2], 1.0 - shares[1], 1.0 - shares[0]),
        codecs[LZ4][0],
        codecs[ZSTD][0],
        codecs[LZ4][1],
        codecs[ZSTD][1],
    )


def _ratios(
    state: ReductionState,
    table: ContentTable,
    blocks: PackedBlocks,
    sizes: NDArray[np.int64],
    shares: tuple[float, float, float],
) -> tuple[ReductionEstimate, ReductionEstimate]:
    """Return the ratio of compression alone, and of deduplication before it."""
    packed_share = state.packed_pieces / state.places.piece_count
    part, error = _packed_part(blocks, sizes, np.ones(len(sizes)), packed_share)
    alone = _inverse(part, part - _NORMAL_95 * error, part + _NORMAL_95 * error)
    once, once_error = _packed_part_once(state, table, blocks, sizes, packed_share)
    low, high = once - _NORMAL_95 * once_error, once + _NORMAL_95 * once_error
    return alone, _inverse(shares[2] * once, shares[0] * low, shares[1] * high)


def _inverse(part: float, low: float, high: float) -> ReductionEstimate:
    """Return bytes before by bytes after from what is stored of a byte."""
    return ReductionEstimate(1.0 / max(part, 1e-6), 1.0 / max(high, 1e-6), 1.0 / max(low, 1e-6))


def _packed_part(
    blocks: PackedBlocks, sizes: NDArray[np.int64], weights: NDArray[np.float64], packed_share: float
) -> tuple[float, float]:
    """Return what is stored of a byte, and its standard error; pieces were drawn, so blocks of a piece go together.

    Source: Cochran, "Sampling techniques" (1977), 6.4: the variance of a ratio.
    """
    before, after = weights * blocks.rows[:, 0] * CELL_BYTES, weights * sizes
    part = float(after.sum() / before.sum())
    _, piece = np.unique(blocks.rows[:, _PIECE], return_inverse=True)
    off = np.bincount(piece, after - part * before)
    return part, float(sqrt((off**2).sum() * max(1.0 - packed_share, 0.0)) / before.sum())


def _packed_part_once(
    state: ReductionState, table: ContentTable, blocks: PackedBlocks, sizes: NDArray[np.int64], packed_share: float
) -> tuple[float, float]:
    """Return the same of contents, each once: one that many pieces hold had many chances to be compressed.

    Source: Horvitz, Thompson (1952): each counts by the inverse of its chance.
    """
    prints, index = np.unique(blocks.fingerprints, return_index=True)
    place = np.searchsorted(table.fingerprints, prints)
    is_kept = place < len(table.fingerprints)
    is_kept[is_kept] = table.fingerprints[place[is_kept]] == prints[is_kept]
    if not is_kept.any():
        return _packed_part(blocks, sizes, np.ones(len(sizes)), packed_share)
    index, pieces = index[is_kept], table.pieces[place[is_kept]]
    chance = min(state.packed_pieces / max(table.piece_count, 1), 1.0)
    weights = np.asarray(1.0 / (1.0 - (1.0 - chance) ** pieces), np.float64)
    once = PackedBlocks(blocks.fingerprints[index], blocks.rows[index])
    return _packed_part(once, sizes[index], weights, packed_share * table.chance)


def _vsan(state: ReductionState, table: ContentTable, blocks: PackedBlocks) -> VsanReduction | None:
    """Return the ratios of vSAN; None where LZ4 is not measured."""
    by_lz4 = blocks.rows[:, _BYTES + LZ4]
    if not len(by_lz4) or not by_lz4.all():
        return None
    shares = _contents_share(table, state.read_share)
    compression, dedup = _ratios(state, table, blocks, vsan_bytes(by_lz4), shares)
    esa, _ = _ratios(state, table, blocks, esa_bytes(by_lz4), shares)
    return VsanReduction(float((by_lz4 <= CELL_BYTES // 2).mean()), compression, dedup, esa)
