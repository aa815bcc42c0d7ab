"""Sizes of blocks when each is compressed alone, as arrays and vSAN do.

LZ4 comes with pyarrow, an optional package; without it the sizes of LZ4 are not measured.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import zstandard
from numpy.typing import NDArray

from leadline.app.reduction.blocks import BLOCK_CELLS, CELL_BYTES

ZSTD_LEVEL = 3  # Source: zstd(1), the default level
LZ4, ZSTD = 0, 1


def lz4_packer() -> Callable[[bytes], int] | None:
    """Return what gives the size of a block by LZ4; None where pyarrow is not installed or lacks it."""
    try:
        import pyarrow as pa  # noqa: PLC0415 - optional
    except ImportError:
        return None
    if not pa.Codec.is_available("lz4_raw"):
        return None
    codec = pa.Codec("lz4_raw")
    return lambda block: len(codec.compress(block, asbytes=True))


@dataclass(slots=True)
class PackedBlocks:
    """Blocks of one size that were compressed.

    Attributes:
        fingerprints: of each block, uint64 [block].
        rows: cells, bytes by LZ4 (0: not measured), bytes by zstd, piece; int64 [block, 4].
    """

    fingerprints: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, np.uint64))
    rows: NDArray[np.int64] = field(default_factory=lambda: np.empty((0, 4), np.int64))


class BlockPacker:
    """Compresses the blocks of pieces and keeps their sizes; a block that does not shrink is stored as it is."""

    def __init__(self) -> None:
        self.packed = [PackedBlocks() for _ in BLOCK_CELLS]
        self._lz4 = lz4_packer()
        self._zstd = zstandard.ZstdCompressor(level=ZSTD_LEVEL, write_checksum=False, write_content_size=False)
        self._prints: list[list[int]] = [[] for _ in BLOCK_CELLS]
        self._rows: list[list[tuple[int, int, int, int]]] = [[] for _ in BLOCK_CELLS]

    def add(self, data: bytes, piece_index: int, fingerprints: list[NDArray[np.uint64]]) -> None:
        """Compress the blocks of a piece that are not zeros.

        Args:
            data: bytes of the piece.
            piece_index: which it is.
            fingerprints: of its blocks, for each block size, uint64 [block]; 0 of zeros.
        """
        if len(data) % CELL_BYTES:
            data += bytes(-len(data) % CELL_BYTES)
        for size, block_cells in enumerate(BLOCK_CELLS):
            step = block_cells * CELL_BYTES
            for index, start in enumerate(range(0, len(data), step)):
                fingerprint = int(fingerprints[size][index])
                if fingerprint:
                    block = data[start : start + step]
                    by_lz4 = min(self._lz4(block), len(block)) if self._lz4 else 0
                    by_zstd = min(len(self._zstd.compress(block)), len(block))
                    self._prints[size].append(fingerprint)
                    self._rows[size].append((len(block) // CELL_BYTES, by_lz4, by_zstd, piece_index))

    def settle(self) -> list[PackedBlocks]:
        """Return all sizes so far, for each block size."""
        for size, packed in enumerate(self.packed):
            if self._prints[size]:
                prints = np.array(self._prints[size], np.uint64)
                packed.fingerprints = np.concatenate([packed.fingerprints, prints])
                packed.rows = np.concatenate([packed.rows, np.array(self._rows[size], np.int64)])
                self._prints[size], self._rows[size] = [], []
        return self.packed


def vsan_bytes(by_lz4: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what vSAN's original architecture stores of blocks of 4 KiB: 2 KiB where they fit, else all.

    Source: C. Hogan, "VSAN 6.2 part 1 - deduplication and compression" (2016).

    >>> vsan_bytes(np.array([2048, 2049])).tolist()
    [2048, 4096]
    """
    return np.where(by_lz4 <= CELL_BYTES // 2, CELL_BYTES // 2, CELL_BYTES)


def esa_bytes(by_lz4: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return what vSAN's Express architecture stores of blocks of 4 KiB: whole sectors of 512 bytes.

    Source: VMware blog 2026-05-07, "vSAN compression and global deduplication in VCF 9.1": blocks of 4 KiB, steps of
    512 bytes, LZ4 before 9.1; D. Epping, "vSAN 8.0 ESA and compression by default?" (2022): up to 8 to 1.

    >>> esa_bytes(np.array([512, 513])).tolist()
    [512, 1024]
    """
    return np.minimum(-(-by_lz4 // 512) * 512, CELL_BYTES)
