"""Segments of raw samples: Parquet with one row per series, the times of a whole grid in the metadata.

Columns: ``entity``, ``exponent``, ``numbers`` (list of int32, the value times ten to the exponent) and ``floats``
(list of float32, where the exponent is -1). A null is "not measured". The metadata under ``leadline`` list the grids:
series one after the other that have the same times; a grid begins with a row group. Values are split into the bytes
of the same rank and packed with zstd: the high bytes of counters hardly vary, so that they cost next to nothing.
"""

from __future__ import annotations

import base64
import json
import os
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.system.extras import require

from .pieces import EntityRegister, StoredPiece

if TYPE_CHECKING:
    from numpy.typing import NDArray

KEY = b"leadline"
FORMAT = 1
# Values of a row group, the least that is read of a metric. Judgement, measured with benches/bench_store.py: with twice
# as many a day of one VM is read a sixth slower; with half as many all VMs are read two fifths slower.
CELLS = 1 << 14
ROWS_MIN, ROWS_MAX = 4, 1024  # series of a row group
EXPONENT_MAX = 4  # decimal places that are tried. Judgement: counters have hundredths, latencies microseconds
NUMBER_MAX = 2**31 - 1
_LEVEL = 3  # of zstd


@dataclass(frozen=True, slots=True)
class WrittenSegment:
    """What a file has: its size, the first and last time, measured samples."""

    size_bytes: int
    first_ns: int
    last_ns: int
    sample_count: int


def as_decimals(values: NDArray[np.floating[Any]]) -> tuple[NDArray[np.int8], NDArray[np.int32]]:
    """Exponents [k] and numbers [k, n] that give back the very float32 values; exponent -1 where none do."""
    exponents = np.full(len(values), -1, dtype=np.int8)
    numbers = np.zeros(values.shape, dtype=np.int32)
    open_rows = np.arange(len(values))
    for exponent in range(EXPONENT_MAX + 1):
        some = np.asarray(values[open_rows], dtype=np.float64)
        missing = np.isnan(some)
        scaled = np.where(missing, 0.0, np.rint(some * 10.0**exponent))
        fits = np.abs(scaled).max(axis=1, initial=0.0) <= NUMBER_MAX
        same = missing | ((scaled / 10.0**exponent).astype(np.float32) == values[open_rows])
        exact = fits & same.all(axis=1)
        exponents[open_rows[exact]] = exponent
        numbers[open_rows[exact]] = scaled[exact].astype(np.int32)
        open_rows = open_rows[~exact]
        if not len(open_rows):
            break
    return exponents, numbers


def from_decimals(exponents: NDArray[np.int8], numbers: NDArray[np.int32]) -> NDArray[np.float32]:
    """The values [k, n]."""
    if not exponents.any():
        return numbers.astype(np.float32)
    return np.asarray(numbers / np.power(10.0, exponents)[:, None], dtype=np.float32)


def write_segment(path: Path, pieces: Iterable[StoredPiece], register: EntityRegister) -> WrittenSegment:
    """Write pieces to a new file; it is on the disk when this returns.

    Raises:
        OSError: it cannot be written; then there is none.
    """
    pa = require("pyarrow")
    number = pa.list_(pa.int32())
    schema = pa.schema(
        [("entity", pa.string()), ("exponent", pa.int8()), ("numbers", number), ("floats", pa.list_(pa.float32()))]
    )
    first_ns, last_ns, sample_count, grids = 2**63 - 1, -(2**63), 0, []
    with new_parquet(path, schema, ("numbers", "floats")) as out:
        for piece in pieces:
            exponents, numbers = as_decimals(piece.values)
            is_float, missing = exponents < 0, np.isnan(piece.values)
            text = register.text(piece.numbers)
            columns = {
                "entity": pa.array(text.split("\n"), pa.string()),
                "exponent": pa.array(exponents),
                "numbers": list_column(numbers, ~is_float, missing),
                "floats": list_column(piece.values, is_float, missing),
            }
            out.write_table(pa.table(columns, schema=schema), row_group_size=group_rows(len(piece.times_ns)))
            grids.append(_grid(piece, text, has_floats=bool(is_float.any())))
            first_ns, last_ns = min(first_ns, int(piece.times_ns[0])), max(last_ns, int(piece.times_ns[-1]))
            sample_count += missing.size - int(np.count_nonzero(missing))
        out.add_key_value_metadata({KEY: json.dumps({"format": FORMAT, "grids": grids}).encode()})
    return WrittenSegment(path.stat().st_size, first_ns, last_ns, sample_count)


class new_parquet:
    """A Parquet file to fill, on the disk when the block ends well, removed when it does not."""

    def __init__(self, path: Path, schema: Any, split: Iterable[str]) -> None:  # noqa: ANN401 - PyArrow's
        self._path = path
        encodings = {f"{name}.list.element": "BYTE_STREAM_SPLIT" for name in split}
        rest = {name: "PLAIN" for name in schema.names if name not in split}
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
        pq, pa = require("pyarrow.parquet"), require("pyarrow")
        self._sink = pa.PythonFile(os.fdopen(self._file, "wb"), mode="w")
        self._out = pq.ParquetWriter(
            self._sink,
            schema,
            compression="zstd",
            compression_level=_LEVEL,
            use_dictionary=False,
            column_encoding={**encodings, **rest},
            write_statistics=False,
            store_schema=False,
        )

    def __enter__(self) -> Any:  # noqa: ANN401 - PyArrow's writer
        return self._out

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        try:
            self._out.close()
            if kind is None:
                self._sink.flush()
                os.fsync(self._file)
            self._sink.close()
        except OSError:
            kind = OSError
            raise
        finally:
            if kind is not None:
                self._path.unlink(missing_ok=True)


def list_column(values: NDArray[Any], filled: NDArray[np.bool_], missing: NDArray[np.bool_] | None = None) -> Any:  # noqa: ANN401
    """A column with the values of a row as a list; an empty one where the row is not filled."""
    pa = require("pyarrow")
    ends = np.append(0, np.cumsum(np.where(filled, values.shape[1], 0))).astype(np.int32)
    mask = None if missing is None else missing[filled].reshape(-1)
    mask = mask if mask is not None and mask.any() else None
    return pa.ListArray.from_arrays(pa.array(ends), pa.array(values[filled].reshape(-1), mask=mask, from_pandas=False))


def group_rows(sample_count: int) -> int:
    """How many series of so many samples a row group has."""
    return min(max(CELLS // max(sample_count, 1), ROWS_MIN), ROWS_MAX)


def _grid(piece: StoredPiece, text: str, *, has_floats: bool) -> dict[str, Any]:
    return {
        "rows": len(piece.numbers),
        "group_rows": group_rows(len(piece.times_ns)),
        "times": packed_times(piece.times_ns),
        "interval_s": piece.interval_s if piece.interval_s > 0 else None,
        "origin": piece.origin,
        "has_floats": has_floats,
        "entities": base64.b64encode(zlib.compress(text.encode(), 1)).decode(),
    }


def packed_times(times_ns: NDArray[np.int64]) -> str:
    """Times as text: their second differences, packed."""
    return base64.b64encode(zlib.compress(np.diff(times_ns, n=2, prepend=[0, 0]).tobytes())).decode()


@lru_cache(maxsize=256)  # all metrics of a day have the same
def unpacked_times(text: str) -> NDArray[np.int64]:
    """Times int64 [n] of `packed_times`."""
    times_ns = np.cumsum(np.cumsum(np.frombuffer(zlib.decompress(base64.b64decode(text)), dtype=np.int64)))
    times_ns.flags.writeable = False
    return times_ns


@dataclass(frozen=True, slots=True)
class GridRows:
    """Rows of a grid of an open file: the entities of whole row groups, and these as a table."""

    grid: dict[str, Any]
    numbers: NDArray[np.int32]
    table: Any


@lru_cache(maxsize=256)  # segments never change, and reading what is in one takes a third of a question
def _footer(path: Path, _state: tuple[int, int, int]) -> tuple[Any, list[dict[str, Any]]]:
    """What Parquet knows of a file, and its grids."""
    footer = require("pyarrow.parquet").read_metadata(path)
    grids: list[dict[str, Any]] = json.loads(footer.metadata[KEY])["grids"]
    return footer, grids


def grid_rows(
    path: Path, register: EntityRegister, columns: list[str], wanted: NDArray[np.bool_] | None
) -> Iterator[GridRows]:
    """The rows of each grid of a file that are in row groups of wanted entities.

    Raises:
        FileNotFoundError: it was replaced meanwhile.
    """
    pa, pq = require("pyarrow"), require("pyarrow.parquet")
    with pa.memory_map(str(path)) as opened:
        state = path.stat()
        footer, grids = _footer(path, (state.st_ino, state.st_mtime_ns, state.st_size))
        file = pq.ParquetFile(opened, metadata=footer)
        group = 0
        for grid in grids:
            size = grid["group_rows"]
            count = -(-grid["rows"] // size)
            numbers = register.of_text(register.unpacked(grid["entities"]))
            groups = np.arange(count)
            if wanted is not None:
                inside = numbers < len(wanted)
                inside[inside] = wanted[numbers[inside]]
                groups = np.unique(np.flatnonzero(inside) // size)
            if len(groups):
                if len(groups) < count:
                    numbers = np.concatenate([numbers[size * part : size * (part + 1)] for part in groups])
                names = [name for name in columns if name != "floats" or grid["has_floats"]]
                table = file.read_row_groups((groups + group).tolist(), columns=names, use_threads=len(groups) > 16)
                yield GridRows(grid, numbers, table)
            group += count


def numbers_in(path: Path, register: EntityRegister) -> Iterator[NDArray[np.int32]]:
    """The numbers of the entities of a file, of each grid.

    Raises:
        FileNotFoundError: it was replaced meanwhile.
    """
    state = path.stat()
    for grid in _footer(path, (state.st_ino, state.st_mtime_ns, state.st_size))[1]:
        yield register.of_text(register.unpacked(grid["entities"]))


@lru_cache(maxsize=1 << 14)  # asked for each time a store is maintained
def distance_s(path: Path) -> float:
    """How far apart the samples of most series of a file are, seconds; infinite where they have one each."""
    grids = json.loads(require("pyarrow.parquet").read_metadata(path).metadata[KEY])["grids"]
    times_ns = unpacked_times(max(grids, key=lambda grid: grid["rows"] * len(unpacked_times(grid["times"])))["times"])
    return float(np.median(np.diff(times_ns))) / 1e9 if len(times_ns) > 1 else float("inf")


def read_segment(
    path: Path, register: EntityRegister, metric: str, wanted: NDArray[np.bool_] | None
) -> list[StoredPiece]:
    """The samples of a file, of all entities or of those that are wanted by number.

    Raises:
        FileNotFoundError: it was replaced meanwhile.
    """
    pieces = []
    for rows in grid_rows(path, register, ["exponent", "numbers", "floats"], wanted):
        grid, times_ns = rows.grid, unpacked_times(rows.grid["times"])
        exponents = rows.table["exponent"].to_numpy()
        chosen = np.ones(len(exponents), dtype=bool)
        if wanted is not None:
            chosen = rows.numbers < len(wanted)
            chosen[chosen] = wanted[rows.numbers[chosen]]
        is_float = exponents < 0
        numbers, missing = _matrix(rows.table["numbers"], len(times_ns), chosen[~is_float])
        values = from_decimals(exponents[~is_float & chosen], numbers)
        if missing is not None:
            values[missing] = np.nan
        if grid["has_floats"]:
            floats, missing = _matrix(rows.table["floats"], len(times_ns), chosen[is_float])
            whole = np.empty((int(chosen.sum()), len(times_ns)), dtype=np.float32)
            whole[~is_float[chosen]] = values
            whole[is_float[chosen]] = floats if missing is None else np.where(missing, np.float32(np.nan), floats)
            values = whole
        interval_s = grid["interval_s"] or float("nan")
        pieces.append(StoredPiece(metric, rows.numbers[chosen], times_ns, values, interval_s, grid["origin"]))
    return pieces


def _matrix(
    column: Any,  # noqa: ANN401 - PyArrow's
    width: int,
    chosen: NDArray[np.bool_],
) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:
    """Some of the lists of a column as rows, and which items of them are null; None where none is."""
    items, missing = flat_column(column)
    rows = items.reshape(-1, width)
    if chosen.all():
        return rows, None if missing is None else missing.reshape(rows.shape)
    return rows[chosen], None if missing is None else missing.reshape(rows.shape)[chosen]


def flat_column(column: Any) -> tuple[NDArray[Any], NDArray[np.bool_] | None]:  # noqa: ANN401 - PyArrow's
    """All items of a column of lists, and which of them are null; None where none is."""
    whole = column.combine_chunks()
    items = whole.flatten() if not hasattr(whole, "chunks") else whole.chunk(0).flatten()
    if items.null_count == 0:
        return items.to_numpy(), None
    return items.fill_null(0).to_numpy(), items.is_null().to_numpy(zero_copy_only=False)
