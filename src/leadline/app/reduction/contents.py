"""Which contents were seen how often, in bounded memory.

When there are too many contents, those are kept whose fingerprint lies below a limit. This draws contents, not blocks:
each content has the same chance however often it occurs, so that a whole scan estimates the number of contents without
bias. Source: Flajolet, "On adaptive sampling" (1990); Wegman's algorithm.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

KEPT_MAX = 1 << 18  # Judgement: half of it is left after the limit is halved, a standard error of 0.3 %; 8 MiB
PENDING_MAX = 1 << 16  # Judgement: rows that are merged at once; a merge sorts all that is kept
COLUMNS = ("fingerprints", "cells", "blocks", "pieces", "first")


@dataclass(slots=True)
class ContentTable:
    """Contents of one block size. Blocks of zeros are counted apart and are no content here.

    Attributes:
        halvings: how often the limit of fingerprints was halved; contents are kept with the chance 2 ** -halvings.
        fingerprints: of the contents kept, ascending, uint64 [content].
        cells: length of each, in cells of 4 KiB, int64 [content].
        blocks: how many blocks hold it, int64 [content].
        pieces: how many pieces hold it, int64 [content].
        first: the lowest of these, int64 [content].
        total_cells: cells of all blocks seen.
        zero_cells: cells of blocks of zeros.
        used_squares: the sum of squares of the other cells, by piece.
        pair_cells: cells of the different contents of each piece, over all pieces, without zeros.
        pair_squares: the sum of its squares, by piece.
        piece_count: pieces that were counted.
        kept_max: contents that are kept at most.
    """

    halvings: int = 0
    fingerprints: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    cells: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    blocks: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    pieces: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    first: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    total_cells: int = 0
    zero_cells: int = 0
    used_squares: int = 0
    pair_cells: int = 0
    pair_squares: int = 0
    piece_count: int = 0
    kept_max: int = KEPT_MAX
    _pending: list[tuple[NDArray[np.int64], ...]] = field(default_factory=list)
    _pending_count: int = 0

    @property
    def chance(self) -> float:
        """The chance of a content to be kept."""
        return float(2.0**-self.halvings)

    @property
    def used_cells(self) -> int:
        """Cells of blocks that are not zeros."""
        return self.total_cells - self.zero_cells

    def add(
        self, fingerprints: NDArray[np.uint64], lengths: NDArray[np.uint8], piece_indexes: NDArray[np.int64]
    ) -> None:
        """Count the blocks of pieces that were not counted before.

        Args:
            fingerprints: of blocks, uint64 [piece, block]; 0 of zeros.
            lengths: cells of blocks, uint8 [piece, block]; 0 where there is none.
            piece_indexes: which pieces they are, int64 [piece].
        """
        self.piece_count += len(fingerprints)
        self.total_cells += int(lengths.sum())
        self.zero_cells += int(lengths[fingerprints == 0].sum())
        is_used = (lengths > 0) & (fingerprints != 0)
        self.used_squares += int((np.where(is_used, lengths, 0).sum(axis=1, dtype=np.int64) ** 2).sum())
        which = np.broadcast_to(np.arange(len(fingerprints))[:, None], fingerprints.shape)[is_used]
        prints, cells = fingerprints[is_used], lengths[is_used].astype(np.int64)
        order = np.lexsort((prints, which))
        prints, cells, which = prints[order], cells[order], which[order]
        starts = np.flatnonzero(np.r_[True, (prints[1:] != prints[:-1]) | (which[1:] != which[:-1])][: len(prints)])
        blocks = np.diff(np.r_[starts, len(prints)])
        prints, cells, which = prints[starts], cells[starts], which[starts]
        by_piece = np.bincount(which, cells, minlength=len(fingerprints)).astype(np.int64)
        self.pair_cells += int(by_piece.sum())
        self.pair_squares += int((by_piece**2).sum())
        keep = self._below_limit(prints)
        ones = np.ones(int(keep.sum()), np.int64)
        self._pend((prints[keep], cells[keep], blocks[keep], ones, piece_indexes[which[keep]]))

    def settle(self) -> None:
        """Merge what was counted last into the columns."""
        if not self._pending:
            return
        parts = [tuple(getattr(self, name) for name in COLUMNS), *self._pending]
        prints, cells, blocks, pieces, first = (np.concatenate(column) for column in zip(*parts, strict=True))
        self._pending, self._pending_count = [], 0
        order = np.argsort(prints, kind="stable")
        prints = prints[order]
        starts = np.flatnonzero(np.r_[True, prints[1:] != prints[:-1]][: len(prints)])
        self.fingerprints, self.cells, self.first = prints[starts], cells[order][starts], first[order][starts]
        if len(starts):
            self.first = np.minimum.reduceat(first[order], starts)
            self.blocks = np.add.reduceat(blocks[order], starts)
            self.pieces = np.add.reduceat(pieces[order], starts)
        while len(self.fingerprints) > self.kept_max:
            self.halvings += 1
            keep = self._below_limit(self.fingerprints)
            for name in COLUMNS:
                setattr(self, name, getattr(self, name)[keep])

    def _pend(self, rows: tuple[NDArray[np.int64], ...]) -> None:
        self._pending.append(rows)
        self._pending_count += len(rows[0])
        if self._pending_count >= PENDING_MAX:
            self.settle()

    def _below_limit(self, fingerprints: NDArray[np.uint64]) -> NDArray[np.bool_]:
        if not self.halvings:
            return np.ones(len(fingerprints), np.bool_)
        return fingerprints < np.uint64(2 ** (64 - self.halvings))
