"""Captures on disk: Parquet with one row per series, readable with Polars, DuckDB or pandas without Leadline.

Columns: ``source``, ``entity_kind``, ``entity``, ``metric``, ``unit``, ``layer``, ``interval_s``, ``since_boot``,
``times`` (list of UTC nanosecond timestamps), ``values`` (list of doubles; NaN is "not measured"). Sources, inventory
and results of load tools are JSON in the file's metadata under ``leadline``.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.core.io.outputs import Output
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo, Warn
from leadline.core.model.entities import Entity, Fact, Inventory
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.metrics import metric as metric_of
from leadline.core.model.result import Operation, Result
from leadline.core.system.extras import require

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pyarrow as pa

FORMAT = 1
KEY = b"leadline"
ROWS_PER_WRITE = 4096  # series per row group: bounds memory while writing a wide capture
CELLS_PER_WRITE = 1 << 20  # values per row group: bounds memory while writing a long capture


def save(capture: Capture, output: Output | Path) -> None:
    """Write a capture; the file appears whole or not at all. A path may only replace what Leadline wrote.

    Raises:
        UsageError: it must not or cannot be written there.
        ToolError: writing failed; what was there before still is. Or PyArrow is not installed.
    """
    pq = require("pyarrow.parquet")  # 0.3 s that only saving needs

    schema = _schema().with_metadata({KEY: json.dumps(_head_of(capture)).encode()})
    with (
        Output.of(output).aside() as path,
        pq.ParquetWriter(
            path, schema, compression="zstd", use_dictionary=["entity_kind", "metric", "unit", "times"]
        ) as out,
    ):
        for rows in _gathered(capture):
            out.write_table(rows.cast(schema))


def _gathered(capture: Capture) -> Iterator[pa.Table]:
    """Batches put together to row groups of a useful size."""
    import pyarrow as pa  # noqa: PLC0415 - see save

    waiting: list[pa.Table] = []
    for batch in batches(capture):
        waiting.append(batch)
        if _is_full(waiting):
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)


def _is_full(waiting: list[pa.Table]) -> bool:
    """Whether tables are a row group of a useful size."""
    row_count = sum(part.num_rows for part in waiting)
    cell_count = sum(len(chunk.values) for part in waiting for chunk in part["values"].chunks)
    return row_count >= ROWS_PER_WRITE or cell_count >= CELLS_PER_WRITE


def batches(capture: Capture) -> Iterator[pa.Table]:
    """The capture as Arrow tables of a few thousand series each."""
    import pyarrow as pa  # noqa: PLC0415 - see save

    schema = _schema()
    named: dict[tuple[int, int], tuple[pa.Array, pa.Array]] = {}  # groups share columns of entities
    for group in capture.groups:
        known = metric_of(group.metric)
        for first in range(0, len(group.entities), ROWS_PER_WRITE):
            entities = group.entities[first : first + ROWS_PER_WRITE]
            k, n = len(entities), len(group.times_ns)
            key = (id(group.entities), first)
            if key not in named:
                named[key] = pa.array([e.kind.value for e in entities]), pa.array([str(e) for e in entities])
            offsets = pa.array(np.arange(k + 1, dtype=np.int32) * n)
            times = pa.array(np.tile(group.times_ns, k)).cast(pa.timestamp("ns", tz="UTC"))
            values = np.ascontiguousarray(group.values[first : first + k], dtype=np.float64)
            columns = {
                "source": pa.array(np.full(k, group.source, dtype=np.int32)),
                "entity_kind": named[key][0],
                "entity": named[key][1],
                "metric": pa.array([group.metric] * k),
                "unit": pa.array([known.unit] * k),
                "layer": pa.array([known.layer.value] * k),
                "interval_s": pa.array(np.full(k, group.interval_s)),
                "since_boot": pa.array(np.full(k, group.since_boot)),
                "times": pa.ListArray.from_arrays(offsets, times),
                "values": pa.ListArray.from_arrays(offsets, pa.array(values.reshape(-1))),
            }
            yield pa.table(columns, schema=schema)


def table(capture: Capture) -> pa.Table:
    """The whole capture as one Arrow table.

    Raises:
        ToolError: PyArrow is not installed.
    """
    pa = require("pyarrow")

    parts = list(batches(capture))
    return pa.concat_tables(parts) if parts else _schema().empty_table()


def load(path: Path, name: str) -> Capture:
    """A capture that `save` wrote.

    Raises:
        InputError: it is not Parquet, or not written by Leadline, or by a newer one.
        ToolError: PyArrow is not installed.
    """
    pa, pq = require("pyarrow"), require("pyarrow.parquet")

    try:
        file = pq.ParquetFile(path)
        head = json.loads((file.schema_arrow.metadata or {}).get(KEY, b"null"))
    except (pa.ArrowException, OSError, ValueError, RecursionError) as error:
        raise _bad(name, f"unreadable Parquet ({_first_line(error)})") from error
    if not isinstance(head, dict) or head.get("format") != FORMAT:
        raise _bad(name, "Parquet without Leadline's metadata, or of another format version")
    try:
        capture = _from_head(head)
        for index in range(file.num_row_groups):
            capture.groups.extend(_groups_of(file.read_row_group(index)))
    except (pa.ArrowException, OSError, ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise _bad(name, f"damaged Parquet ({_first_line(error)})") from error
    return capture


def _first_line(error: Exception) -> str:
    return next(iter(str(error).splitlines()), type(error).__name__)


def _bad(name: str, problem: str) -> InputError:
    return InputError(name, found=problem, expected="a capture saved by `leadline import`", advice="Import again.")


def _schema() -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - see save

    text = pa.string()
    return pa.schema(
        [
            ("source", pa.int32()),
            ("entity_kind", text),
            ("entity", text),
            ("metric", text),
            ("unit", text),
            ("layer", text),
            ("interval_s", pa.float64()),
            ("since_boot", pa.bool_()),
            ("times", pa.list_(pa.timestamp("ns", tz="UTC"))),
            ("values", pa.list_(pa.float64())),
        ]
    )


def _groups_of(rows: pa.Table) -> Iterator[SeriesGroup]:
    """Neighbouring series of one metric, source and times as groups again."""
    flat = {name: rows[name].to_pylist() for name in ("source", "entity", "metric", "interval_s", "since_boot")}
    times = rows["times"].combine_chunks()
    values = rows["values"].combine_chunks()
    bounds = np.asarray(times.offsets)
    all_times = np.asarray(times.values.cast("int64"))
    all_values = np.asarray(values.values)
    first = 0
    for row in range(1, rows.num_rows + 1):
        same = row < rows.num_rows and all(
            flat[key][row] == flat[key][first] for key in ("source", "metric", "since_boot")
        )
        group_times = all_times[bounds[first] : bounds[first + 1]]
        if same and np.array_equal(all_times[bounds[row] : bounds[row + 1]], group_times):
            continue
        if np.any(group_times[1:] < group_times[:-1]):
            message = "times that go back"
            raise ValueError(message)
        yield SeriesGroup(
            flat["metric"][first],
            [Entity.parse(text) for text in flat["entity"][first:row]],
            group_times,
            all_values[bounds[first] : bounds[row]].reshape(row - first, len(group_times)),
            flat["interval_s"][first],
            flat["source"][first],
            flat["since_boot"][first],
        )
        first = row


def _head_of(capture: Capture) -> dict[str, Any]:
    facts = [
        [str(entity), {name: [f.value, f.source, f.guessed] for name, f in settings.items()}]
        for entity, settings in capture.inventory.facts.items()
    ]
    return {
        "format": FORMAT,
        "sources": [asdict(source) for source in capture.sources],
        "facts": facts,
        "links": [[str(guest), str(vm)] for guest, vm in capture.inventory.links.items()],
        "results": [_result_out(result) for result in capture.results],
    }


def _from_head(head: dict[str, Any]) -> Capture:
    sources = [SourceInfo(**{**s, "warnings": tuple(Warn(**w) for w in s["warnings"])}) for s in head["sources"]]
    inventory = Inventory()
    for text, settings in head["facts"]:
        inventory.facts[Entity.parse(text)] = {name: Fact(*parts) for name, parts in settings.items()}
    inventory.links = {Entity.parse(guest): Entity.parse(vm) for guest, vm in head["links"]}
    return Capture([], sources, inventory, [_result_in(result) for result in head["results"]])


def _result_out(result: Result) -> dict[str, Any]:
    plain = {name: getattr(result, name) for name in Result.__dataclass_fields__ if name != "operations"}
    operations = []
    for operation in result.operations:
        fields: dict[str, Any] = {name: getattr(operation, name) for name in Operation.__dataclass_fields__}
        histogram = operation.histogram
        if histogram is not None:
            fields["histogram"] = {
                "lower": histogram.lower.tolist(),
                "upper": histogram.upper.tolist(),
                "counts": histogram.counts.tolist(),
                "unit": histogram.unit,
            }
        operations.append(fields)
    return {**plain, "operations": operations}


def _result_in(plain: dict[str, Any]) -> Result:
    operations = []
    for fields in plain["operations"]:
        histogram = fields["histogram"]
        restored = None if histogram is None else Histogram.of(**histogram)
        operations.append(Operation(**{**fields, "histogram": restored}))
    return Result(**{**plain, "operations": tuple(operations)})
