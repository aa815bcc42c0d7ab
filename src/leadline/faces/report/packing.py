"""Series inside a page: thinned, as half-precision numbers, deflated, in blocks that are unpacked when they are drawn.

A pack is a catalogue (JSON: metrics, entities, one column per property of the series) and binary blocks of up to
`BLOCK_SERIES` series. A block holds the low bytes of all its values, their high bytes, then the same of the distances
between kept samples for the series of which not every sample is kept; bytes of one place next to each other deflate
better. A value is a 16-bit float times a power of two of its series: 11 significant bits, which is the three digits
that are shown. NaN stays NaN. `assets/store.js` reads it.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.units import UNITS
from leadline.faces.report.downsample import POINTS_PER_BUCKET, thinned
from leadline.faces.visible import visible_in_page

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.model.capture import SeriesGroup

BLOCK_SERIES = 256
POINTS_TOTAL = 1_500_000  # of all series together: keeps a report of 20,000 series small enough to mail
POINTS_MIN, POINTS_MAX = 64, 600
BUCKET_WIDTH_MAX = 30_000  # distances of kept samples must fit 16 bits
HALF_EXPONENT = 14  # the largest value of a series is scaled into [2**14, 2**15): the top of half precision
NS_PER_MS = 1_000_000
STATISTICS = ("min", "median", "p95", "max", "mean", "spread")


@dataclass(frozen=True, slots=True)
class Pack:
    """Series ready to be put into a page; every string is base64 of raw deflate."""

    catalogue: str
    times: str
    blocks: tuple[str, ...]
    series_count: int
    empty_count: int  # series without a single measured value, which are left out

    @property
    def size_bytes(self) -> int:
        """Characters in the page."""
        return len(self.catalogue) + len(self.times) + sum(map(len, self.blocks))


@dataclass(slots=True)
class _Packer:
    origin_ns: int
    names: dict[str, dict[Any, int]] = field(default_factory=lambda: {"metric": {}, "entity": {}, "times": {}})
    vectors: list[NDArray[np.int64]] = field(default_factory=list)
    columns: dict[str, list[Any]] = field(
        default_factory=lambda: {
            name: [] for name in ("metric", "entity", "source", "times", "count", "exponent", *STATISTICS)
        }
    )
    values: list[NDArray[np.uint16]] = field(default_factory=list)
    steps: list[NDArray[np.uint16]] = field(default_factory=list)
    blocks: list[str] = field(default_factory=list)
    pending: int = 0
    empty: int = 0

    def index(self, kind: str, key: Any) -> int:  # noqa: ANN401 - any hashable
        known = self.names[kind]
        return known.setdefault(key, len(known))

    def close_block(self) -> None:
        if not self.pending:
            return
        raw = _planes(self.values, np.uint16) + _planes(self.steps, np.uint16)
        self.blocks.append(deflated(raw))
        self.values, self.steps, self.pending = [], [], 0


def pack(groups: Iterable[SeriesGroup], *, origin_ns: int, points: int) -> Pack:
    """Pack series for a page.

    Args:
        groups: the series; since-boot samples are left out.
        origin_ns: the moment times are counted from, UTC nanoseconds.
        points: about how many samples to keep of each series (see `points_of`).
    """
    packer = _Packer(origin_ns)
    for group in groups:
        measured = group.measured()
        if len(measured.times_ns):
            _add_group(packer, measured, points)
    packer.close_block()
    return Pack(
        deflated(json.dumps(_catalogue(packer), separators=(",", ":")).encode("ascii")),
        deflated(_times(packer)),
        tuple(packer.blocks),
        len(packer.columns["metric"]),
        packer.empty,
    )


def points_of(series_count: int) -> int:
    """How many samples of each series are kept when there are that many: fewer the more there are.

    >>> points_of(100), points_of(5_000), points_of(1_000_000)
    (600, 300, 64)
    """
    return min(max(POINTS_TOTAL // max(series_count, 1), POINTS_MIN), POINTS_MAX)


def _add_group(packer: _Packer, group: SeriesGroup, points: int) -> None:
    count = len(group.times_ns)
    buckets = max(points // POINTS_PER_BUCKET, -(-count // BUCKET_WIDTH_MAX), 1)
    metric = packer.index("metric", group.metric)
    vector = packer.index("times", group.times_ns.tobytes())
    if vector == len(packer.vectors):
        packer.vectors.append(group.times_ns)
    for start in range(0, len(group.entities), BLOCK_SERIES):
        values = np.asarray(group.values[start : start + BLOCK_SERIES], dtype=np.float64)
        values = np.where(np.isfinite(values), values, np.nan)
        marks = statistics(values)
        for row, kept in enumerate(thinned(values, buckets)):
            if np.isnan(marks["max"][row]):
                packer.empty += 1
                continue
            halves, exponent = halved(values[row, kept])
            packer.values.append(halves)
            if len(kept) < count:
                packer.steps.append(np.diff(kept, prepend=0).astype(np.uint16))
            entity = packer.index("entity", group.entities[start + row])
            cells = (metric, entity, group.source, vector, len(kept), exponent)
            for name, cell in zip(("metric", "entity", "source", "times", "count", "exponent"), cells, strict=True):
                packer.columns[name].append(cell)
            for name in STATISTICS:
                packer.columns[name].append(_short(marks[name][row]))
            packer.pending += 1
            if packer.pending == BLOCK_SERIES:
                packer.close_block()


def statistics(values: NDArray[np.float64]) -> dict[str, NDArray[np.float64]]:
    """Statistics of every row of values [k, n], NaN left out; NaN where a row has no measured value.

    ``spread`` is the distance of the 95th and 5th percentile over the mean of the absolute values: 0 for a constant,
    free of the unit. Percentiles are the nearest rank (Hyndman and Fan 1996, definition 1), of the samples recorded.
    """
    ordered = np.sort(values, axis=1)
    known = np.isfinite(values).sum(axis=1)
    row = np.arange(len(values))

    def at(share: float) -> NDArray[np.float64]:
        position = np.clip(np.ceil(share * known).astype(np.int64) - 1, 0, None)
        ranked: NDArray[np.float64] = np.where(known > 0, ordered[row, position], np.nan)
        return ranked

    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(known > 0, np.nansum(values, axis=1) / known, np.nan)
        size = np.nansum(np.abs(values), axis=1) / known
        spread = np.where(size > 0, (at(0.95) - at(0.05)) / size, 0.0)
    return {"min": at(0.0), "median": at(0.5), "p95": at(0.95), "max": at(1.0), "mean": mean, "spread": spread}


def halved(values: NDArray[np.float64]) -> tuple[NDArray[np.uint16], int]:
    """Values [n] as the bits of half-precision floats, and the power of two they are to be multiplied by."""
    largest = float(np.nanmax(np.abs(values))) if np.isfinite(values).any() else 0.0
    exponent = 0 if largest == 0.0 else int(np.frexp(largest)[1]) - HALF_EXPONENT - 1
    return np.ldexp(values, -exponent).astype(np.float16).view(np.uint16), exponent


def deflated(raw: bytes) -> str:
    """Raw deflate, base64."""
    squeezer = zlib.compressobj(6, zlib.DEFLATED, -15)
    return base64.b64encode(squeezer.compress(raw) + squeezer.flush()).decode("ascii")


def _planes(arrays: list[NDArray[Any]], dtype: type) -> bytes:
    if not arrays:
        return b""
    whole = np.concatenate(arrays).astype(np.dtype(dtype).newbyteorder("<"))
    return whole.view(np.uint8).reshape(len(whole), -1).T.tobytes()


def _times(packer: _Packer) -> bytes:
    """Per vector its samples' distances in ticks, as planes of 32 bits; the first from the origin."""
    tick = _tick_ms(packer)
    ticks = [
        np.diff((vector - packer.origin_ns) // NS_PER_MS // tick, prepend=0).astype(np.uint32)
        for vector in packer.vectors
    ]
    return _planes(ticks, np.uint32)


def _tick_ms(packer: _Packer) -> int:
    """One millisecond, or more where a gap of months would not fit 32 bits."""
    spans = [int(vector[-1] - packer.origin_ns) // NS_PER_MS for vector in packer.vectors]
    tick = 1
    while max(spans, default=0) // tick >= 2**32:
        tick *= 10
    return tick


def _catalogue(packer: _Packer) -> dict[str, Any]:
    return {
        "origin_ms": packer.origin_ns // NS_PER_MS,
        "tick_ms": _tick_ms(packer),
        "block_series": BLOCK_SERIES,
        "vectors": [len(vector) for vector in packer.vectors],
        "metrics": list(_metrics(packer.names["metric"])),
        "entities": [
            [visible_in_page(entity.label()), visible_in_page(str(entity)), entity.kind.value]
            for entity in packer.names["entity"]
        ],
        "columns": packer.columns,
    }


def _metrics(names: Iterable[str]) -> Iterator[list[str]]:
    for name in names:
        known = metric_of(name)
        layer = known.layer.value if known.kinds else "other"
        yield [visible_in_page(name), UNITS[known.unit].symbol, layer, known.meaning]


def _short(value: float) -> float | None:
    return None if np.isnan(value) else float(f"{value:.4g}")
