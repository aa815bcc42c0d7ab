"""Data of a known share of duplicates, and its truth by brute force."""

from __future__ import annotations

from pathlib import Path

import numpy as np

CELL = 4096


def write_data(path: Path, cells: int, duplicate_share: float, seed: int, *, zero_share: float = 0.0) -> None:
    """Random cells of which a share copies another one; the copies are spread anywhere."""
    draw = np.random.default_rng(seed)
    zeros = round(cells * zero_share)
    used = cells - zeros
    distinct = used - round(used * duplicate_share)
    order = np.concatenate([np.arange(distinct), draw.integers(0, distinct, used - distinct), np.full(zeros, -1)])
    draw.shuffle(order)
    contents = draw.bytes(distinct * CELL)
    with path.open("wb") as file:
        for index in order.tolist():
            file.write(bytes(CELL) if index < 0 else contents[index * CELL : (index + 1) * CELL])


def true_shares(paths: list[Path], block_bytes: int) -> tuple[float, float]:
    """The shares of zeros and of duplicates, of all blocks; by cells, the last of a file padded."""
    seen: set[bytes] = set()
    total = zeros = distinct = 0
    for path in paths:
        data = path.read_bytes()
        data += bytes(-len(data) % CELL)
        for start in range(0, len(data), block_bytes):
            block = data[start : start + block_bytes]
            total += len(block)
            if not any(block):
                zeros += len(block)
            elif block not in seen:
                seen.add(block)
                distinct += len(block)
    return zeros / total, 1.0 - distinct / max(total - zeros, 1)
