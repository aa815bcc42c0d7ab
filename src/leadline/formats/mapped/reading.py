"""A table and its map become a capture.

Mapped columns have the unit of their metric; numbers of every other column are kept as ``raw.table.COLUMN`` of the
table's entity, in the table's own unit, so that a comparison sees them. A cell without a number is not measured.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.formats.mapped.table_map import MapColumn, MapTime, TableMap, read_map
from leadline.formats.mapped.text_table import TextTable, read_text_table

if TYPE_CHECKING:
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]
    Times = NDArray[np.int64]

TOOL = "table"
NS = {"s": 1_000_000_000, "ms": 1_000_000, "us": 1_000, "ns": 1}
NS_MAX, NS_DIGITS = 4.2e18, 19  # 2103
# Since 1970 in that unit: 1973 to 2100. Smaller numbers count from a start of their own.
SIZES = (("s", 1e8, 4.2e9), ("ms", 1e11, 4.2e12), ("us", 1e14, 4.2e15), ("ns", 1e17, 4.2e18))
NOTHING = {"", "-", "nan", "null", "none", "n/a", "na", "undefined", "inf", "-inf", "+inf", "infinity", "-infinity"}
# Thousands are in groups of three; anything else with that mark is no number.
_GROUPS = {
    ".": re.compile(r"[-+]?\d{1,3}(,\d{3})+(\.\d*)?"),
    ",": re.compile(r"[-+]?\d{1,3}(\.\d{3})+(,\d*)?"),
}
_COMMA_FIRST = str.maketrans(",.", ".,")  # a point left over makes it no number
_SPACES = str.maketrans("", "", " \u00a0\u202f\u2009'_")


@dataclass(frozen=True, slots=True)
class _Use:
    """A column with what it means and whose it is."""

    name: str
    metric: str
    column: MapColumn | None
    entity: Entity | None


def read_mapped(source: Source, request: Request, map_file: Path) -> Capture:
    """The capture of a table.

    Raises:
        InputError: the map or the table is damaged, a column that the map names is not there, or a cell is no number.
    """
    table_map = read_map(map_file)
    table = read_text_table(source, table_map.delimiter, truncate_last=request.truncate_last)
    reader = _Reader(source.name, str(map_file), table_map, table, CaptureBuilder(source.name, TOOL, TOOL))
    return reader.capture(source, request)


@dataclass(slots=True)
class _Reader:
    name: str
    map_name: str
    table_map: TableMap
    table: TextTable
    builder: CaptureBuilder

    def capture(self, source: Source, request: Request) -> Capture:
        """The capture, with a warning of what was left out."""
        if self.table.was_cut:
            self.builder.warn("cut", "the last row was cut off and left out")
        times, is_known = self._times(source, request)
        owners = self._owners()
        read = self._long if self.table_map.long is not None else self._wide
        read(times, owners, request)
        return self.builder.build(clock_known=is_known)

    def _column(self, name: str, why: str) -> list[str]:
        if name not in self.table.columns:
            known = ", ".join(list(self.table.columns)[:8])
            raise InputError(
                f"{self.map_name}: {why}",
                found=f"column {name!r}, which {self.name} does not have",
                expected=f"one of its {len(self.table.columns)} columns: {known} ...",
                advice=f"`leadline import --suggest-map {self.name}` lists them.",
            )
        return self.table.columns[name]

    def _times(self, source: Source, request: Request) -> tuple[Times, bool]:
        time = self.table_map.time
        cells = self._column(time.column, "time.column")
        numbers = None if time.format else as_numbers(cells, self.table_map.decimal)
        if numbers is not None and not np.isnan(numbers).any():
            return self._counted_times(numbers, time, source, request)
        zone = Request(timezone=time.timezone or request.timezone)
        known = all(_has_zone(cell, time) for cell in cells) or zone.timezone is not None
        if not known:
            self.builder.warn("no-zone", "times have no zone; they were taken to be UTC")
        times = [self._moment(cell, line, time, zone) for cell, line in zip(cells, self.table.lines, strict=True)]
        return np.array(times, dtype=np.int64), known

    def _counted_times(self, numbers: Floats, time: MapTime, source: Source, request: Request) -> tuple[Times, bool]:
        largest = float(numbers.max(initial=0.0))
        unit: str = time.unit or next((name for name, least, most in SIZES if least <= largest < most), "s")
        impossible = np.flatnonzero((numbers < 0) | (numbers >= NS_MAX / NS[unit]))
        if len(impossible):
            row = int(impossible[0])
            raise InputError(
                f"{self.name}:{self.table.lines[row]}: column {time.column}",
                found=repr(self.table.columns[time.column][row][:40]),
                expected=f"a time in {unit}, 0 or more",
                advice="Set time.unit in the map: s, ms, us or ns.",
            )
        whole: Times = np.round(numbers * NS[unit]).astype(np.int64)
        if unit == "ns":  # a float has no whole numbers beyond 2^53
            texts = (cell.strip().translate(_SPACES) for cell in self.table.columns[time.column])
            pairs = zip(texts, whole.tolist(), strict=True)
            exact = [int(text) if text.isdecimal() and len(text) <= NS_DIGITS else at for text, at in pairs]
            whole = np.array(exact, dtype=np.int64)
        if time.start is not None:
            try:
                start = datetime.fromisoformat(time.start)
            except ValueError as error:
                raise InputError(
                    f"{self.map_name}: time.start",
                    found=repr(time.start),
                    expected="an ISO 8601 moment",
                    advice="For example 2026-11-20T08:00:00Z.",
                ) from error
            return whole + to_ns(start, Request(timezone=time.timezone or request.timezone)), True
        if largest * NS[unit] < 1e8 * NS["s"]:
            text = "times count from a start that is not known; the last is taken to be when the file was written"
            self.builder.warn("no-start", text)
            return whole + (source.mtime_ns - int(whole.max(initial=0))), False
        return whole, True

    def _moment(self, cell: str, line: int, time: MapTime, zone: Request) -> int:
        try:
            text = cell.strip()
            moment = datetime.strptime(text, time.format) if time.format else datetime.fromisoformat(text)  # noqa: DTZ007
            return to_ns(moment, zone)
        except (ValueError, OverflowError) as error:
            raise InputError(
                f"{self.name}:{line}: column {time.column}",
                found=repr(cell[:40]),
                expected=f"a time as {time.format}" if time.format else "an ISO 8601 time, or seconds since 1970",
                advice="Set time.format in the map, as strptime has it.",
            ) from error

    def _owners(self) -> list[Entity] | None:
        """The entity of each row; None where all rows have the same."""
        entity = self.table_map.entity
        if entity.column is None:
            return None
        names = self._column(entity.column, "entity.column")
        return [Entity(entity.kind, name.strip() or "unnamed") for name in names]

    def _uses(self, names: Iterable[str]) -> Iterator[_Use]:
        """What every column means; one that nothing maps is raw."""
        by_name = {column.column: column for column in self.table_map.columns if column.column is not None}
        patterns = [column for column in self.table_map.columns if column.match is not None]
        matched: set[str] = set()
        for name in names:
            column = by_name.get(name)
            if column is not None:
                yield _Use(name, column.metric, column, self._entity_of(column, ""))
                continue
            for candidate in patterns:
                match = candidate.pattern.full_match(name)
                if match is not None:
                    matched.add(candidate.match or "")
                    part = match.get("entity") or ""
                    yield _Use(name, candidate.metric, candidate, self._entity_of(candidate, part))
                    break
            else:
                yield _Use(name, f"raw.{TOOL}.{name}", None, None)
        idle = [column.match for column in patterns if column.match not in matched]
        if idle:
            self.builder.warn("unused", f"no column matches {idle[0]!r} of the map", len(idle))

    def _entity_of(self, column: MapColumn, part: str) -> Entity | None:
        whole = self.table_map.fixed()
        if column.kind is not None:
            return Entity(column.kind, part or "unnamed", whole)
        if column.entity is not None and column.entity.name is not None:
            parent = whole if column.entity.kind != self.table_map.entity.kind else None
            return Entity(column.entity.kind, column.entity.name, parent)
        return None

    def _wide(self, times: Times, owners: list[Entity] | None, request: Request) -> None:
        for column in self.table_map.columns:
            if column.column is not None:
                self._column(column.column, f"columns: {column.metric}")
        named = {self.table_map.time.column, self.table_map.entity.column}
        for use in self._uses(name for name in self.table.columns if name not in named):
            if request.wants(use.metric):
                numbers = self._numbers(use, self.table.columns[use.name], self.table.lines)
                if numbers is not None:
                    self._add_by_owner(use, times, numbers, owners)

    def _add_by_owner(self, use: _Use, times: Times, numbers: Floats, owners: list[Entity] | None) -> None:
        fixed = self.table_map.fixed()
        if use.column is not None and use.column.entity is not None and use.column.entity.column is not None:
            names = self._column(use.column.entity.column, f"columns: {use.metric}: entity.column")
            owners = [Entity(use.column.entity.kind, name.strip() or "unnamed", fixed) for name in names]
        if owners is None or use.entity is not None:
            entity = use.entity or fixed
            if entity is not None:
                self._add(use, entity, times, numbers)
            return
        rows: dict[Entity, list[int]] = defaultdict(list)
        for row, owner in enumerate(owners):
            rows[owner].append(row)
        for owner, indices in rows.items():
            self._add(use, owner, times[indices], numbers[indices])

    def _long(self, times: Times, owners: list[Entity] | None, request: Request) -> None:
        long = self.table_map.long
        if long is None:
            return
        names, values = self._column(long.name, "long.name"), self._column(long.value, "long.value")
        rows: dict[str, list[int]] = defaultdict(list)
        for row, name in enumerate(names):
            rows[name.strip()].append(row)
        missing = [c.column for c in self.table_map.columns if c.column is not None and c.column not in rows]
        if missing:
            known = ", ".join(list(rows)[:8])
            raise InputError(
                f"{self.map_name}: columns",
                found=f"{missing[0]!r}, which column {long.name} of {self.name} never says",
                expected=f"one of {len(rows)}: {known} ...",
                advice="Correct its name in the map.",
            )
        for use in self._uses(rows):
            indices = rows[use.name]
            if not request.wants(use.metric):
                continue
            lines = [self.table.lines[row] for row in indices]
            numbers = self._numbers(use, [values[row] for row in indices], lines)
            if numbers is not None:
                part = None if owners is None else [owners[row] for row in indices]
                self._add_by_owner(use, times[indices], numbers, part)

    def _numbers(self, use: _Use, cells: list[str], lines: Sequence[int]) -> Floats | None:
        """The numbers of a column; None for texts that the map does not name.

        Raises:
            InputError: the map names the column, and a cell is no number.
        """
        numbers = as_numbers(cells, self.table_map.decimal)
        if numbers is not None or use.column is None:
            return numbers
        row = next(row for row, cell in enumerate(cells) if as_numbers([cell], self.table_map.decimal) is None)
        raise InputError(
            f"{self.name}:{lines[row]}: column {use.name}",
            found=repr(cells[row][:40]),
            expected=f"a number with decimal {self.table_map.decimal!r}",
            advice="Set decimal in the map, or take the column out of it.",
        )

    def _add(self, use: _Use, entity: Entity, times: Times, numbers: Floats) -> None:
        order = np.argsort(times, kind="stable")
        times, numbers = times[order], numbers[order]
        last = np.append(times[1:] != times[:-1], True) if len(times) else np.zeros(0, dtype=bool)
        if not last.all():
            text = "rows of the same moment are there twice; the last one counts"
            self.builder.warn("twice", text, int(np.sum(~last)))
            times, numbers = times[last], numbers[last]
        if np.isnan(numbers).all():
            return
        column = use.column
        with np.errstate(over="ignore", invalid="ignore"):  # numbers that no monitoring system writes
            if column is not None and column.counts != "level":
                numbers = self._per_second(column, times, numbers)
            values = numbers * (1.0 if column is None else column.factor())
        self.builder.add_series(use.metric, entity, times, np.where(np.isinf(values), np.nan, values))

    def _per_second(self, column: MapColumn, times: Times, numbers: Floats) -> Floats:
        """Counted things per second; NaN in the first row of a counter, and where it began again."""
        rates = np.full(len(numbers), np.nan)
        if len(times) < 2:
            return rates
        seconds = np.diff(times) / NS["s"]
        if column.counts == "amount":
            rates[1:] = numbers[1:] / seconds
            rates[0] = numbers[0] / float(np.median(seconds))
            return rates
        steps = np.diff(numbers)
        again = steps < 0
        if again.any():
            text = f"counter {column.label} began again; that step is not measured"
            self.builder.warn("reset", text, int(again.sum()))
        rates[1:] = np.where(again, np.nan, steps / seconds)
        return rates


def _has_zone(cell: str, time: MapTime) -> bool:
    text = cell.strip()
    if time.format is not None:
        return "%z" in time.format or "%Z" in time.format
    return text.endswith(("Z", "z")) or bool(re.search(r"[+-]\d\d:?\d\d$", text[10:]))


def as_numbers(cells: Sequence[str], decimal: str) -> Floats | None:
    """The numbers of cells, NaN where there is nothing; None where one is a text.

    >>> as_numbers(["1,5", "", "2 000 %"], ",").tolist()
    [1.5, nan, 2000.0]
    """
    numbers = np.empty(len(cells), dtype=np.float64)
    for index, cell in enumerate(cells):
        text = cell.strip().rstrip("%").translate(_SPACES)
        if text.lower() in NOTHING:
            numbers[index] = np.nan
            continue
        if _GROUPS[decimal].fullmatch(text):
            text = text.replace("," if decimal == "." else ".", "")
        try:
            numbers[index] = float(text if decimal == "." else text.translate(_COMMA_FIRST))
        except ValueError:
            return None
    numbers[np.isinf(numbers)] = np.nan
    return numbers
