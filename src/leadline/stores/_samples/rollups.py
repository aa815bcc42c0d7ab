"""Segments of roll-ups: Parquet with one row per series, the starts of the cells in the metadata.

Columns: ``entity``, ``exponent``; ``lowest``, ``highest`` (int32) and ``total`` (int64) times ten to the exponent, or
``float_lowest``, ``float_highest`` and ``float_total`` where it is -1; ``count``; ``buckets``, how many buckets the
sketch of each cell has, with their ``key`` and ``weight`` one cell after the other.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.system.extras import require

from .cells import Cells
from .segments import (
    EXPONENT_MAX,
    FORMAT,
    KEY,
    NUMBER_MAX,
    WrittenSegment,
    as_decimals,
    flat_column,
    from_decimals,
    grid_rows,
    group_rows,
    list_column,
    new_parquet,
    packed_times,
    unpacked_times,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from .pieces import EntityRegister

LOSS_MAX = 1e-6  # of a total; what float32 makes of decimals is a tenth of that
_LISTS = ("lowest", "highest", "total", "float_lowest", "float_highest", "float_total", "count", "buckets")
_SKETCH = ("key", "weight")
_KINDS = ("int32", "int32", "int64", "float32", "float32", "float64", "int32", "int32", "int32", "int32")


def write_rollup(path: Path, parts: Iterable[Cells], register: EntityRegister) -> WrittenSegment:
    """Write cells of one length to a new file; it is on the disk when this returns.

    Raises:
        OSError: it cannot be written; then there is none.
    """
    pa = require("pyarrow")
    names = (*_LISTS, *_SKETCH)
    kinds = [(name, pa.list_(getattr(pa, kind)())) for name, kind in zip(names, _KINDS, strict=True)]
    schema = pa.schema([("entity", pa.string()), ("exponent", pa.int8()), *kinds])
    first_ns, last_ns, sample_count, grids = 2**63 - 1, -(2**63), 0, []
    with new_parquet(path, schema, names) as out:
        for part in parts:
            text = register.text(part.numbers)
            columns, has_floats = _columns_of(part)
            entity = pa.array(text.split("\n"), pa.string())
            out.write_table(
                pa.table({"entity": entity, **columns}, schema=schema), row_group_size=group_rows(len(part.starts_ns))
            )
            grids.append(
                {
                    "rows": len(part.numbers),
                    "group_rows": group_rows(len(part.starts_ns)),
                    "times": packed_times(part.starts_ns),
                    "has_floats": has_floats,
                    "entities": base64.b64encode(zlib.compress(text.encode(), 1)).decode(),
                }
            )
            first_ns, last_ns = min(first_ns, int(part.starts_ns[0])), max(last_ns, int(part.starts_ns[-1]))
            sample_count += int(part.count.sum())
        out.add_key_value_metadata({KEY: json.dumps({"format": FORMAT, "grids": grids}).encode()})
    return WrittenSegment(path.stat().st_size, first_ns, last_ns, sample_count)


def _columns_of(part: Cells) -> tuple[dict[str, Any], bool]:
    pa = require("pyarrow")
    k, n = part.count.shape
    missing = part.count == 0
    exponents, numbers, total = _decimals(part)
    is_float = exponents < 0
    rows_end = np.searchsorted(part.cell, np.arange(k + 1) * n).astype(np.int32)
    widths = np.bincount(part.cell, minlength=k * n).astype(np.int32).reshape(k, n)
    everyone = np.ones(k, dtype=bool)
    return {
        "exponent": pa.array(exponents),
        "lowest": list_column(numbers[:, :n], ~is_float, missing),
        "highest": list_column(numbers[:, n:], ~is_float, missing),
        "total": list_column(total, ~is_float),
        "float_lowest": list_column(part.lowest, is_float, missing),
        "float_highest": list_column(part.highest, is_float, missing),
        "float_total": list_column(part.total, is_float),
        "count": list_column(part.count, everyone),
        "buckets": list_column(widths, everyone),
        "key": pa.ListArray.from_arrays(pa.array(rows_end), pa.array(part.key.astype(np.int32))),
        "weight": pa.ListArray.from_arrays(pa.array(rows_end), pa.array(part.weight)),
    }, bool(is_float.any())


def _decimals(part: Cells) -> tuple[NDArray[np.int8], NDArray[np.int32], NDArray[np.int64]]:
    """Exponents [k], numbers [k, 2n] of lowest and highest, totals [k, n]; exponent -1 where decimals lose something.

    The samples between the lowest and the highest may have more decimal places than these.
    """
    exponents, numbers = as_decimals(np.hstack([part.lowest, part.highest]))
    open_rows = np.flatnonzero(exponents >= 0)
    while len(open_rows):
        scaled = part.total[open_rows] * np.power(10.0, exponents[open_rows])[:, None]
        loss = np.abs(scaled - np.rint(scaled))
        open_rows = open_rows[(loss > LOSS_MAX * np.abs(scaled)).any(axis=1)]
        more = np.abs(numbers[open_rows].astype(np.int64)).max(axis=1, initial=0) * 10
        fits = (exponents[open_rows] < EXPONENT_MAX) & (more <= NUMBER_MAX)
        exponents[open_rows[~fits]] = -1
        open_rows = open_rows[fits]
        exponents[open_rows] += 1
        numbers[open_rows] *= 10
    total = np.rint(part.total * np.power(10.0, np.maximum(exponents, 0))[:, None])
    exponents[np.abs(total).max(axis=1, initial=0) > 2**53] = -1
    return exponents, numbers, np.where(exponents[:, None] < 0, 0, total).astype(np.int64)


def read_rollup(path: Path, register: EntityRegister, wanted: NDArray[np.bool_] | None) -> list[Cells]:
    """The cells of a file, of all entities or of those that are wanted by number (and neighbours of theirs).

    Raises:
        FileNotFoundError: it was replaced meanwhile.
    """
    parts = []
    for rows in grid_rows(path, register, ["exponent", *_LISTS, *_SKETCH], wanted):
        starts_ns = unpacked_times(rows.grid["times"])
        exponents = rows.table["exponent"].to_numpy()
        shape = (len(exponents), len(starts_ns))
        is_float = exponents < 0
        flat = {name: flat_column(rows.table[name])[0] for name in (*_LISTS, *_SKETCH)}
        count = flat["count"].reshape(shape)
        filled = {}
        for name, kind in (("lowest", np.float32), ("highest", np.float32), ("total", np.float64)):
            values = np.empty(shape, dtype=kind)
            numbers = flat[name].reshape(-1, shape[1])
            chosen = exponents[~is_float]
            scale = np.power(10.0, chosen)[:, None]
            values[~is_float] = from_decimals(chosen, numbers) if kind is np.float32 else numbers / scale
            values[is_float] = flat[f"float_{name}"].reshape(-1, shape[1])
            filled[name] = values if name == "total" else np.where(count == 0, np.float32(np.nan), values)
        cell = np.repeat(np.arange(count.size, dtype=np.int64), flat["buckets"])
        key = flat["key"].astype(np.int16)
        part = Cells(rows.numbers, starts_ns, count=count, cell=cell, key=key, weight=flat["weight"], **filled)
        parts.append(part)
    return parts if wanted is None else [_of(part, wanted) for part in parts]


def _of(part: Cells, wanted: NDArray[np.bool_]) -> Cells:
    """The cells of wanted entities."""
    inside = part.numbers < len(wanted)
    inside[inside] = wanted[part.numbers[inside]]
    row, column = np.divmod(part.cell, max(len(part.starts_ns), 1))
    kept = inside[row]
    new_row = (np.cumsum(inside) - 1)[row[kept]]
    fields = {name: getattr(part, name)[inside] for name in ("numbers", "lowest", "highest", "total", "count")}
    cell = new_row * len(part.starts_ns) + column[kept]
    return replace(part, **fields, cell=cell, key=part.key[kept], weight=part.weight[kept])
