"""PDH captures (esxtop batch mode, Windows perfmon) as columns: what both importers share.

The Rust reader finds the columns and reads the numbers; here columns are chosen by counter, instances become entities,
and slices of one packed table become series groups without copying.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from leadline._core import CoreError, PdhFile
from leadline.core.io.packed import PackedTable, PackedValues
from leadline.core.model.capture import CaptureBuilder, SeriesGroup, usual_interval_s
from leadline.core.model.errors import InputError
from leadline.core.model.metrics import RAW_PREFIX, metric
from leadline.core.model.units import factor

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Field, Request
    from leadline.core.io.source import Source
    from leadline.core.model.entities import Entity

# instance (None: the counter has none) and host name -> the entity, or None to leave the column out
Placer = Callable[[str | None, str], "Entity | None"]
Changes = tuple[tuple[np.ufunc, Any], ...]  # as of `PackedValues`


@dataclass(frozen=True, slots=True)
class Chosen:
    """Columns of one counter that are to be read: metric, entity per column, factor to the metric's unit."""

    object_name: str
    counter: str
    metric: str
    columns: NDArray[np.uint32]
    entities: list[Entity]
    scale: float


# Objects that only esxtop has; Windows has "Memory" and "PhysicalDisk" (one word) too.
_ESXTOP_MARKS = (
    *(f"\\{name}(" for name in ("Group Cpu", "Group Memory", "Vcpu", "Physical Cpu", "Virtual Disk", "Network Port")),
    *("\\Physical Cpu Load\\", "\\Physical Disk ", "\\Physical Disk(", "\\Memory\\Memory Overcommit ("),
    *("\\Memory\\Machine MBytes", "\\Memory\\Kernel MBytes", "\\Numa Node(", "\\PCPU Power State("),
)


def is_esxtop(head: str) -> bool:
    """Whether the beginning of a PDH capture names an object that only esxtop has."""
    return any(mark in head for mark in _ESXTOP_MARKS)


class PdhColumns:
    """An opened PDH capture."""

    def __init__(self, source: Source, encoding: str | None = None, data: bytes | None = None) -> None:
        self.source = source
        self._page: str | None = None
        path = str(source.path)
        try:
            if data is None:
                self.file = PdhFile.open(path, encoding)
            else:
                self.file = PdhFile.from_bytes(path, data, source.mtime_ns, encoding)
        except CoreError as error:
            raise as_input_error(error, source) from error
        self.counters: list[tuple[str, str]] = self.file.counters()
        self.hosts: list[str] = self.file.hosts
        of_counter = self.file.column_counter
        order = np.argsort(of_counter, kind="stable").astype(np.uint32)
        ends = np.cumsum(np.bincount(of_counter, minlength=len(self.counters)))
        self._columns = np.split(order, ends[:-1]) if len(self.counters) else []
        self._host_of = self.file.column_host
        self._instances: dict[bytes, list[str | None]] = {}

    def respelt(self, code_page: str) -> PdhColumns:
        """These columns with their names in another code page; for a file that was opened as windows-1252."""
        other = copy(self)
        other._page = code_page
        other.counters = [(_respelt(name, code_page), _respelt(counter, code_page)) for name, counter in self.counters]
        other.hosts = [_respelt(host, code_page) for host in self.hosts]
        return other

    def columns(self, counter_index: int) -> NDArray[np.uint32]:
        """Columns [k] of one of `counters`, in the file's order."""
        return self._columns[counter_index]

    def of_object(self, object_name: str) -> list[int]:
        """Indices into `counters` of an object's counters."""
        return [i for i, (name, _) in enumerate(self.counters) if name == object_name]

    def instances(self, columns: NDArray[np.uint32]) -> list[str | None]:
        """The instance of each column."""
        names: list[str | None] = self.file.instances(np.ascontiguousarray(columns))
        page = self._page
        return names if page is None else [None if name is None else _respelt(name, page) for name in names]

    def hosts_of(self, columns: NDArray[np.uint32]) -> list[str]:
        """The host of each column."""
        return [self.hosts[i] for i in self._host_of[columns]]

    def read(
        self,
        chosen: list[Chosen],
        builder: CaptureBuilder,
        *,
        sentinels: bool,
        request: Request,
        changes: Callable[[Chosen], Changes] = lambda _: (),
    ) -> list[SeriesGroup]:
        """The series of chosen columns, packed, added to the builder, in one pass over the file.

        Values are float64 [k, n]; float32 when every counter was asked for, which keeps more digits than esxtop
        prints. ``changes`` says what else is done to the values of a counter.
        """
        columns = np.concatenate([c.columns for c in chosen]) if chosen else np.empty(0, dtype=np.uint32)
        dtype: Literal["f64", "f32"] = "f32" if request.metrics is None else "f64"
        try:
            table = self.file.read(columns, sentinels=sentinels)
        except CoreError as error:
            raise as_input_error(error, self.source) from error
        for code, message, count in self.file.warnings():
            builder.warn(code, message, count)
        times, packed = _ascending(table.times_ns, table)
        interval_s = usual_interval_s(times)
        groups, first = [], 0
        for part in chosen:
            series = np.arange(first, first + len(part.columns), dtype=np.uint32)
            first += len(part.columns)
            scaling: Changes = ((np.multiply, part.scale),) if part.scale != 1.0 else ()
            values = PackedValues(packed, series, len(times), dtype, (*scaling, *changes(part)))
            groups.append(SeriesGroup(part.metric, part.entities, times, values, interval_s))
            builder.add(groups[-1])
        return groups


def _respelt(text: str, code_page: str) -> str:
    """Text that was read as windows-1252, of which every byte is a character, read as another code page."""
    written = b"".join(c.encode("cp1252") if ord(c) > 255 else bytes((ord(c),)) for c in text)
    return written.decode(code_page, errors="replace")


@dataclass(frozen=True, slots=True)
class _Reordered:
    """A packed table whose samples are taken in another order [n]."""

    table: PackedTable
    order: NDArray[np.intp]

    def rows(self, series: NDArray[np.uint32], dtype: Literal["f64", "f32"]) -> NDArray[np.floating[Any]]:
        """The values [k, n] of some series, samples in this order."""
        return self.table.rows(series, dtype)[:, self.order]


def _ascending(times_ns: NDArray[np.int64], table: PackedTable) -> tuple[NDArray[np.int64], PackedTable]:
    """Times and table in the order of time: rows go back where a clock was set or recordings were joined."""
    if not np.any(times_ns[1:] < times_ns[:-1]):
        return times_ns, table
    order = np.argsort(times_ns, kind="stable")
    return times_ns[order], _Reordered(table, order)


class Chooser:
    """Chooses columns: known counters to canonical metrics, the others to raw ones when everything is asked for."""

    def __init__(self, table: PdhColumns, request: Request, tool: str) -> None:
        self.table = table
        self.request = request
        self.tool = tool
        self.chosen: list[Chosen] = []
        self._raw_placers: dict[str, Placer] = {}
        self._entities: dict[tuple[int, str, tuple[str | None, ...]], tuple[NDArray[np.bool_], list[Entity]]] = {}

    def choose(
        self,
        fields: Mapping[tuple[str, str], Field],
        placers: Mapping[str, Placer],
        raw_placer: Callable[[str], Placer],
    ) -> list[Chosen]:
        """Columns to read.

        Args:
            fields: (object, counter) to field; only those whose metric is asked for are chosen.
            placers: per object, from instance to entity; None leaves a column out of the canonical metrics.
            raw_placer: gives the placer of columns kept under the tool's own name, when everything is asked for.
        """
        everything = self.request.metrics is None
        for index, (object_name, counter) in enumerate(self.table.counters):
            field = fields.get((object_name, counter))
            columns = self.table.columns(index)
            if field is not None and self.request.wants(field.metric):
                scale = factor(field.unit, metric(field.metric).unit)
                columns = self._take(index, columns, field.metric, placers[object_name], scale)
            name = f"{RAW_PREFIX}{self.tool}.{object_name}.{counter}"
            if everything and field is None and object_name in placers:
                columns = self._take(index, columns, name, placers[object_name], 1.0)
            if everything and len(columns):
                raw = self._raw_placers.setdefault(object_name, raw_placer(object_name))
                self._take(index, columns, name, raw, 1.0)
        return self.chosen

    def _take(
        self, index: int, columns: NDArray[np.uint32], metric_name: str, placer: Placer, scale: float
    ) -> NDArray[np.uint32]:
        """Choose the columns the placer has an entity for; the columns that are left."""
        object_name, counter = self.table.counters[index]
        instances = self.table.instances(columns)
        key = (id(placer), object_name, tuple(instances))
        if key not in self._entities:
            hosts = self.table.hosts_of(columns)
            placed = [placer(name, host) for name, host in zip(instances, hosts, strict=True)]
            kept = np.array([entity is not None for entity in placed], dtype=bool)
            self._entities[key] = (kept, [entity for entity in placed if entity is not None])
        kept, entities = self._entities[key]
        if entities:
            self.chosen.append(Chosen(object_name, counter, metric_name, columns[kept], entities, scale))
        return columns[~kept]


def as_input_error(error: CoreError, source: Source) -> InputError:
    """The reader's error under the name the user knows the file by."""
    where = str(error.where).replace(str(source.path), source.name)
    return InputError(where, found=error.found, expected=error.expected, advice=error.advice)


def distinct(instances: Iterable[str | None]) -> list[str]:
    """Instances without repetition, in order; None left out."""
    return list(dict.fromkeys(name for name in instances if name is not None))
