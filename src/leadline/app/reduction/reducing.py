"""Read data, piece by piece, until all is read or a limit is met; what was counted survives whatever ends it.

Pieces are drawn in an order that a seed makes, without repeats, so that a stop at any time leaves a random sample. When
all fits the limits they are read in their order instead, which is faster.
"""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline.app.reduction.answers import answer_of
from leadline.app.reduction.blocks import BLOCK_CELLS, PIECE_BYTES, blocks_of, cells_of, mixed, zeros_of
from leadline.app.reduction.kept import kept_folder, save_state
from leadline.app.reduction.model import Reduction, ReductionLimits, ReductionState
from leadline.app.reduction.places import PieceReader, places_below
from leadline.core.system.interrupts import kept, uninterrupted

BATCH_PIECES = 64  # 4 MiB. Judgement: Ctrl-C waits for one at most, half a second of a slow disk
PACKED_PIECES = 8192  # Judgement: 512 MiB whose blocks are compressed; ratios vary by less than 1 % then
SAVE_S = 10.0
SAVE_COST_MAX = 0.05  # of the time goes into saving
DEFAULT_BYTES = 8 * 2**30
_ROUNDS = 4

Progress = Callable[[float, int], None]  # the share that is done, bytes read so far


def new_state(path: Path, limits: ReductionLimits, seed: int | None = None) -> ReductionState:
    """List what there is at a path, and return the state of nothing read yet.

    Raises:
        InputError: it cannot be read.
        UsageError: it is no file, folder or block device, or there is no data in it.
    """
    places, left_out = places_below(path, kept_folder())
    fits = places.total_bytes <= limits.bytes_max and limits.seconds_max is None
    stamp = time.strftime("%Y%m%d-%H%M%S", time.gmtime())
    seed = secrets.randbits(32) if seed is None else seed
    state = ReductionState(f"{stamp}-{secrets.token_hex(2)}", str(path), seed, fits, places)
    state.left_out = left_out
    return state


def measure_reduction(
    state: ReductionState, limits: ReductionLimits, progress: Progress | None = None
) -> Reduction | None:
    """Read on until all is read or a limit is met; return what would be saved.

    None where data that is read in order is not at its end: its beginning says nothing of the rest.

    Raises:
        KeyboardInterrupt: Ctrl-C was pressed; what was counted is kept.
        ToolError: the state cannot be written.
    """
    with kept(lambda: f"what was read is kept; go on with: leadline bench reduction --resume {state.id}"):
        save_state(state)
        try:
            uninterrupted(lambda stop: _read_on(state, limits, progress, stop))
        finally:
            save_state(state)
    return reduction_so_far(state)


def reduction_so_far(state: ReductionState) -> Reduction | None:
    """Return what would be saved; None where what was read is no random sample, or nothing was read."""
    if not state.position or (state.is_sequential and not state.is_whole):
        return None
    return answer_of(state)


def _read_on(state: ReductionState, limits: ReductionLimits, progress: Progress | None, stop: threading.Event) -> None:
    started, before_s = time.monotonic(), state.seconds
    saved, cost_s = started, 0.0
    reader = PieceReader(state.places, state.left_out)
    try:
        while not state.is_whole and not stop.is_set():
            now = time.monotonic()
            if limits.seconds_max is not None and now - started >= limits.seconds_max:
                break
            count = BATCH_PIECES
            if not state.is_sequential:
                count = min(count, (limits.bytes_max - state.read_bytes) // PIECE_BYTES)
            if count < 1:
                break
            _read_batch(state, reader, drawn_pieces(state, count))
            state.seconds = before_s + time.monotonic() - started
            if progress is not None:
                progress(_share_done(state, limits, state.seconds - before_s), state.read_bytes)
            if time.monotonic() - saved >= max(SAVE_S, cost_s / SAVE_COST_MAX):
                begun = time.monotonic()
                save_state(state)
                saved = time.monotonic()
                cost_s = saved - begun
    finally:
        reader.close()


def _share_done(state: ReductionState, limits: ReductionLimits, seconds: float) -> float:
    shares = [state.read_share]
    if not state.is_sequential:
        shares.append(state.read_bytes / limits.bytes_max)
    if limits.seconds_max:
        shares.append(seconds / limits.seconds_max)
    return min(max(shares), 1.0)


def _read_batch(state: ReductionState, reader: PieceReader, pieces: NDArray[np.int64]) -> None:
    """Read pieces and count their blocks; `state` moves on behind them all."""
    cells, usable, contents = [], [], []
    for piece in np.sort(pieces).tolist():
        data, size = reader.read(piece)
        if size == 0:
            continue
        cells.append(zeros_of(size) if data is None else cells_of(data))
        usable.append(piece)
        contents.append(data)
        if data is None:
            state.hole_bytes += size
        else:
            state.read_bytes += size
    if usable:
        indexes, matrix = np.array(usable, np.int64), np.array(cells, np.uint64)
        blocks = [blocks_of(matrix, block_cells) for block_cells in BLOCK_CELLS]
        for table, (fingerprints, lengths) in zip(state.tables, blocks, strict=True):
            table.add(fingerprints, lengths, indexes)
        for row in np.flatnonzero(_is_packed(state, indexes)).tolist():
            state.packed_pieces += 1
            data = contents[row]
            if data is not None:
                state.packer.add(data, usable[row], [fingerprints[row] for fingerprints, _ in blocks])
    state.position += len(pieces)


def _is_packed(state: ReductionState, pieces: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pieces are compressed: the first ones in an order that is drawn; else drawn by their number."""
    if not state.is_sequential:
        return np.full(len(pieces), state.position < PACKED_PIECES)
    if state.places.piece_count <= PACKED_PIECES:
        return np.ones(len(pieces), np.bool_)
    limit = np.uint64(2**64 * PACKED_PIECES // state.places.piece_count)
    return mixed(pieces.astype(np.uint64) + np.uint64(state.seed % 2**64)) < limit


def drawn_pieces(state: ReductionState, count: int) -> NDArray[np.int64]:
    """Return the next pieces, int64 [at most ``count`` pieces]."""
    positions = np.arange(state.position, min(state.position + count, state.places.piece_count), dtype=np.int64)
    return positions if state.is_sequential else shuffled(positions, state.places.piece_count, state.seed)


def shuffled(positions: NDArray[np.int64], count: int, seed: int) -> NDArray[np.int64]:
    """Return which of ``count`` comes at each position of an order that a seed draws; no list of all is needed.

    Source: Black, Rogaway, "Ciphers with arbitrary finite domains" (2002): a Feistel network, walked until it hits.

    >>> sorted(shuffled(np.arange(5), 5, 1).tolist())
    [0, 1, 2, 3, 4]
    """
    half = max((count - 1).bit_length() + 1, 2) // 2
    mask, shift = np.uint64((1 << half) - 1), np.uint64(half)
    start = np.uint64(seed * 0x2545F4914F6CDD1D % 2**64)
    keys = mixed(np.arange(1, _ROUNDS + 1, dtype=np.uint64) + start)
    values = positions.astype(np.uint64)
    outside = np.ones(len(values), np.bool_)
    while outside.any():
        left, right = values[outside] >> shift, values[outside] & mask
        for key in keys:
            left, right = right, left ^ (mixed(right + key) & mask)
        values[outside] = (left << shift) | right
        outside = values >= np.uint64(count)
    return values.astype(np.int64)
