"""Fingerprints of blocks: equal blocks have equal fingerprints, at four block sizes from one pass over the bytes.

A *cell* is 4 KiB, a *piece* 64 KiB of a file or device: what is drawn and read at once. A larger block is known by the
fingerprints of its cells. The last block of a file is shorter, in whole cells; its last cell is padded with zeros, as
file systems store it.
"""

from __future__ import annotations

from hashlib import blake2b

import numpy as np
from numpy.typing import NDArray

CELL_BYTES = 4096
PIECE_CELLS = 16
PIECE_BYTES = CELL_BYTES * PIECE_CELLS
BLOCK_CELLS = (1, 2, 8, 16)  # 4, 8, 32 and 64 KiB
ABSENT = np.uint64(2**64 - 1)  # a cell beyond the end of a file
ZERO = np.uint64(0)  # the fingerprint of zeros
_START = np.uint64(0x9E3779B97F4A7C15)


def mixed(values: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Return each value mixed one to one, so that every bit of it moves every bit of the result.

    Source: Steele, Lea, Flood, "Fast splittable pseudorandom number generators" (2014), the finaliser of SplitMix64.
    """
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def cells_of(data: bytes) -> NDArray[np.uint64]:
    """Return the fingerprint of each 4 KiB of a piece, uint64 [16]; 0 of zeros, `ABSENT` behind its end.

    Args:
        data: bytes of the piece, up to 64 KiB.
    """
    cells = np.full(PIECE_CELLS, ABSENT)
    if len(data) % CELL_BYTES:
        data += bytes(-len(data) % CELL_BYTES)
    count = len(data) // CELL_BYTES
    if not count:
        return cells
    view = memoryview(data)
    is_used = np.atleast_1d(np.frombuffer(data, np.uint64).reshape(count, CELL_BYTES // 8).any(axis=1))
    for index in range(count):
        if is_used[index]:
            block = view[index * CELL_BYTES : (index + 1) * CELL_BYTES]
            digest = int.from_bytes(blake2b(block, digest_size=8).digest(), "little")
            cells[index] = min(max(digest, 1), 2**64 - 2)
        else:
            cells[index] = ZERO
    return cells


def zeros_of(size_bytes: int) -> NDArray[np.uint64]:
    """Return the cells of a piece of zeros that nobody has to read, uint64 [16]."""
    cells = np.full(PIECE_CELLS, ABSENT)
    cells[: -(-size_bytes // CELL_BYTES)] = ZERO
    return cells


def blocks_of(cells: NDArray[np.uint64], block_cells: int) -> tuple[NDArray[np.uint64], NDArray[np.uint8]]:
    """Return fingerprints and lengths of the blocks of pieces.

    Args:
        cells: fingerprints of cells, uint64 [piece, 16].
        block_cells: cells of a block.

    Returns:
        Fingerprints, uint64 [piece, block], 0 of zeros; lengths in cells, uint8 [piece, block], 0 where there is none.
    """
    grouped = cells.reshape(len(cells), -1, block_cells)
    lengths = (grouped != ABSENT).sum(axis=2).astype(np.uint8)
    if block_cells == 1:
        return grouped[:, :, 0], lengths
    fingerprints = np.full(grouped.shape[:2], _START)
    for index in range(block_cells):
        fingerprints = mixed(fingerprints + grouped[:, :, index])
    is_used = ((grouped != ZERO) & (grouped != ABSENT)).any(axis=2)
    return np.where(is_used, np.maximum(fingerprints, np.uint64(1)), ZERO), lengths
