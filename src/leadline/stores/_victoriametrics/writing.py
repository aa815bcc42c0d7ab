"""Samples as remote write has them: protobuf by hand, packed with snappy.

``WriteRequest`` is a list of ``TimeSeries`` (field 1), each with ``Label`` (1: name, value) and ``Sample`` (2: double
value, int64 milliseconds). A sample has a fixed length as long as its time takes six bytes (until 2109), so that all
samples of a group are one array.

Source: Prometheus, prompb/types.proto and remote.proto; Protocol Buffers, "Encoding"; Prometheus remote write 1.0.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.system.extras import require

if TYPE_CHECKING:
    from numpy.typing import NDArray

SAMPLE_BYTES = 18
_BYTES_OF_TIME = 6
TIME_MS_MIN, TIME_MS_MAX = 1 << 35, (1 << 42) - 1  # of a varint of six bytes: 1971 to 2109
REQUEST_BYTES = 4 * 1024**2  # Judgement: an eighth of what VictoriaMetrics takes at once (-maxInsertRequestSize)
SAMPLES_MAX = 100_000  # of a series in one request
DECIMALS_MAX = 6  # that are tried. Judgement: counters have hundredths, latencies microseconds


def label_bytes(labels: Iterable[tuple[str, str]]) -> bytes:
    """The labels of a series, in the order of their names; those without a value are left out."""
    parts = []
    for name, value in sorted(labels):
        if value:
            words = (name.encode(), value.encode())
            content = b"".join(bytes([10 + 8 * place]) + _varint(len(w)) + w for place, w in enumerate(words))
            parts.append(b"\x0a" + _varint(len(content)) + content)
    return b"".join(parts)


def series_bytes(
    labels: Sequence[bytes], times_ms: NDArray[np.int64], values: NDArray[np.floating[Any]]
) -> Iterator[bytes]:
    """Series in pieces that fit into a request.

    Args:
        labels: of each of k series, as of `label_bytes`.
        times_ms: int64 [n], UTC milliseconds.
        values: [k, n]; NaN is not measured, and not sent.
    """
    inside = (times_ms >= TIME_MS_MIN) & (times_ms <= TIME_MS_MAX)
    if not inside.all():
        times_ms, values = times_ms[inside], values[:, inside]
    for first in range(0, len(times_ms), SAMPLES_MAX):
        part = slice(first, first + SAMPLES_MAX)
        size = len(times_ms[part])
        rows = max(REQUEST_BYTES // (size * SAMPLE_BYTES + 256), 1)
        for row in range(0, len(labels), rows):
            yield _series(labels[row : row + rows], times_ms[part], values[row : row + rows, part])


def _series(labels: Sequence[bytes], times_ms: NDArray[np.int64], values: NDArray[np.floating[Any]]) -> bytes:
    measured = ~np.isnan(values)
    samples = np.empty((*values.shape, SAMPLE_BYTES), dtype=np.uint8)
    samples[..., :3] = (0x12, SAMPLE_BYTES - 2, 0x09)
    samples[..., 3:11] = shortest(values).astype("<f8")[..., None].view(np.uint8)
    samples[..., 11] = 0x10
    for place in range(_BYTES_OF_TIME):
        more = 0x80 if place + 1 < _BYTES_OF_TIME else 0
        samples[..., 12 + place] = (times_ms >> 7 * place & 0x7F) | more
    parts = []
    counts = measured.sum(axis=1).tolist()
    for row, (text, count) in enumerate(zip(labels, counts, strict=True)):
        if count:
            content = samples[row] if count == len(times_ms) else samples[row][measured[row]]
            parts += [b"\x0a", _varint(len(text) + count * SAMPLE_BYTES), text, content.tobytes()]
    return b"".join(parts)


def shortest(values: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    """Doubles with few decimal places that are the same float32 values: 12.34, not 12.34000015.

    VictoriaMetrics keeps decimal numbers: such ones take a fraction of the space.
    """
    exact = values.astype(np.float32)
    doubles = exact.astype(np.float64)
    is_open = np.isfinite(exact) & (doubles != np.rint(doubles))
    for decimals in range(1, DECIMALS_MAX + 1):
        if not is_open.any():
            break
        some = doubles[is_open]
        rounded = np.rint(some * 10.0**decimals) / 10.0**decimals
        same = rounded.astype(np.float32) == some.astype(np.float32)
        places = np.flatnonzero(is_open)[same]
        doubles.reshape(-1)[places] = rounded[same]
        is_open.reshape(-1)[places] = False
    return doubles


def requests(parts: Iterable[bytes]) -> Iterator[bytes]:
    """Requests packed with snappy."""
    waiting: list[bytes] = []
    size = 0
    for part in parts:
        if waiting and size + len(part) > REQUEST_BYTES:
            yield _packed(waiting)
            waiting, size = [], 0
        waiting.append(part)
        size += len(part)
    if size:
        yield _packed(waiting)


def _packed(parts: Sequence[bytes]) -> bytes:
    packed: bytes = require("pyarrow").compress(b"".join(parts), codec="snappy", asbytes=True)
    return packed


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    low = []
    while number >= 0x80:
        low.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes((*low, number))
