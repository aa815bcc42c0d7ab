"""Tables as SQL*Plus, SQLcl and SQL Developer print them and people paste them.

.. code-block:: text

    EVENT                          TOTAL_WAITS       EVENT                          TOTAL_WAITS
    ------------------------------ -----------       ------------------------------ -----------
    db file sequential read              30705       TIME_WAITED
    log file sync                          428       -----------
                                                     db file sequential read              30705
    2 rows selected.                                       16998

Headings repeat on each page, columns that do not fit the line go to the next one with their headings (right), long
names go on below themselves, and columns may be padded with tabs. Also columns between commas, semicolons, tabs or
bars. What is around the tables (prompts, statements, counts of rows) belongs to none.

Source: SQL*Plus User's Guide and Reference, "Formatting SQL*Plus Reports" and SET (LINESIZE, PAGESIZE, RECSEP, TAB).
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

from leadline.core.model.numbers import NUMBER_MAX
from leadline.formats.stamps import YEARS

_RULER = re.compile(r"(?=[^\n]*[-_=]{2})[-_=|+ ]+")
_GROUP = re.compile(r"[-_=]+")
_END = re.compile(
    r"[\w@.:/\[\] -]{0,80}SQL>.*|\s*\d{1,9} (?:\w{1,20} ){1,2}\w{1,20}\."
    r"|\s*(?:no rows selected|Elapsed: .*|ERROR at line.*)",
    re.IGNORECASE,
)
_SEPARATORS = (",", ";", "\t", "|")
_TEXTS = frozenset({"event", "event_name", "name"})  # columns that are wide and go on in the next line
_HEADING_LINES_MAX = 3
_GROUPS_MAX = 8
_LINE_MAX = 4096
_NUMBER = re.compile(r"[+-]?(?=[.,]?\d)[\d.,]{1,40}(?:[eE][+-]?\d{1,3})?")
_DECIMAL_COMMA = re.compile(r"\d*,(?:\d{1,2}|\d{4,})")
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MOMENT = re.compile(
    r"(\d{1,2})-([A-Za-z]{3})-(\d{2}|\d{4}) (\d{1,2})[.:](\d\d)[.:](\d\d)(?:[.,]\d{1,9})?"
    r"(?: ([AP]M))?(?: ([+-]\d\d:\d\d))?"
)


@dataclass(slots=True)
class ShellTable:
    """A table: names of its columns in lower case with ``_`` between words, and its rows, as many cells each."""

    columns: tuple[str, ...]
    rows: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class _Layout:
    """Where the columns of one line of a row stand, and the names above them; no spans: only words tell."""

    names: tuple[str, ...]
    spans: tuple[tuple[int, int], ...]

    def cells(self, line: str) -> list[str] | None:
        """The cells of a line as they are printed, with the blanks before them; None where they cross columns."""
        if not self.spans:
            return None
        ends = [begin for begin, _ in self.spans[1:]]
        gaps = [(end, begin) for (_, end), begin in zip(self.spans, ends, strict=False)]
        if line[: self.spans[0][0]].strip() or any(line[end:begin].strip(" |") for end, begin in gaps):
            return None
        last = len(self.spans) - 1
        cells = [line[begin : end if place < last else None].rstrip() for place, (begin, end) in enumerate(self.spans)]
        return None if any("  " in cell.strip() for cell in cells) else cells


@dataclass(slots=True)
class _Heading:
    """The heading of a table: one layout for each line of its rows; a separator where it has no columns."""

    layouts: list[_Layout]
    separator: str = ""

    @property
    def columns(self) -> tuple[str, ...]:
        return tuple(name for layout in self.layouts for name in layout.names)

    def layout_after(self, count: int) -> _Layout:
        """The layout of the line that goes on after some cells of a row."""
        for layout in self.layouts:
            if count <= 0:
                return layout
            count -= len(layout.names)
        return self.layouts[0]


def shell_tables(lines: list[str], is_known: Callable[[tuple[str, ...]], bool]) -> tuple[list[ShellTable], int]:
    """The tables whose columns are known, also those without rows, and how many lines in them are no row."""
    return _ShellReader([line[:_LINE_MAX] for line in lines], is_known).read()


def plain_name(text: str) -> str:
    """The name of a column in lower case.

    >>> plain_name("Avg wait (ms)"), plain_name("TIME_WAITED_MICRO")
    ('avg_wait_ms', 'time_waited_micro')
    """
    return re.sub(r"[^a-z0-9#$]+", "_", text.casefold()).strip("_")


def shell_number(text: str, *, decimal_comma: bool = False) -> float:
    """A number as the shells print it; NaN where it is none, as ``####`` of one too wide for its column.

    >>> shell_number("1,234,567"), shell_number(".68"), shell_number("1.2E+10"), shell_number("####")
    (1234567.0, 0.68, 12000000000.0, nan)
    >>> shell_number("32,78", decimal_comma=True)
    32.78
    """
    match = _NUMBER.fullmatch(text.strip())
    if match is None:
        return math.nan
    group, point = (".", ",") if decimal_comma else (",", ".")
    try:
        value = float(match[0].replace(group, "").replace(point, "."))
    except ValueError:
        return math.nan
    return value if abs(value) < NUMBER_MAX else math.nan


def has_decimal_comma(tables: list[ShellTable]) -> bool:
    """Whether a number in some tables has a comma where thousands have none."""
    return any(_DECIMAL_COMMA.fullmatch(cell) for table in tables for row in table.rows for cell in row)


def shell_moment(text: str) -> datetime | None:
    """A time with its date, as ISO or as Oracle prints it in English; None for another text.

    >>> shell_moment("24-NOV-26 01.00.05.270 PM"), shell_moment("2026-11-24 13:00:05")
    (datetime.datetime(2026, 11, 24, 13, 0, 5), datetime.datetime(2026, 11, 24, 13, 0, 5))
    """
    text = text.strip()
    match = _MOMENT.fullmatch(text)
    try:
        if match is None:
            moment = datetime.fromisoformat(re.sub(r"(\.\d{6})\d{1,9}", r"\1", text)) if len(text) >= 16 else None
        else:
            day, month, year, hour, minute, second, half, zone = match.groups()
            number = _MONTHS.index(month.casefold()) + 1
            clock = int(hour) % 12 + (12 if half == "PM" else 0) if half else int(hour)
            whole = int(year) + (2000 if len(year) == 2 else 0)
            printed = f"{whole}-{number:02}-{int(day):02}T{clock:02}:{minute}:{second}{zone or ''}"
            moment = datetime.fromisoformat(printed)
    except ValueError:
        return None
    return moment if moment is not None and moment.year in YEARS else None


class _ShellReader:
    """Reads tables line by line."""

    def __init__(self, lines: list[str], is_known: Callable[[tuple[str, ...]], bool]) -> None:
        self.raw = lines
        self.lines = [line.expandtabs(8).rstrip() if "\t" in line or line[-1:].isspace() else line for line in lines]
        self.is_known = is_known
        self.tables: list[ShellTable] = []
        self.left_out = 0
        self.heading: _Heading | None = None
        self.begun: list[str] = []  # cells of a row that goes on in the next line
        self.is_dense = False  # rows follow each other without a gap so far
        self.names: dict[str, str] = {}
        self.last_length = 0  # of the latest name, or of its part in the line above

    def read(self) -> tuple[list[ShellTable], int]:
        """The tables and the number of lines that are no row."""
        at = 0
        while at < len(self.lines):
            after, heading = self._heading_at(at)
            if after > at:
                self._drop_begun()
                self.heading, self.is_dense = heading, True
                if heading is not None:
                    self.tables.append(ShellTable(heading.columns))
                at = after
                continue
            self._take(at)
            at += 1
        self._drop_begun()
        return self.tables, self.left_out

    def _is_ruler(self, at: int) -> bool:
        return at < len(self.lines) and _RULER.fullmatch(self.lines[at]) is not None

    def _heading_at(self, at: int) -> tuple[int, _Heading | None]:
        """Where the rows begin below a heading that begins in a line, and the heading where it is known."""
        if not self.lines[at] or _RULER.fullmatch(self.lines[at]):
            return (at + 1, self.heading if self.is_dense else None) if self.lines[at] else (at, None)
        for count in range(1, _HEADING_LINES_MAX + 1):
            if self._is_ruler(at + count) and all(self.lines[at : at + count]):
                layouts = [_layout(self.lines[at : at + count], self.lines[at + count])]
                end = at + count + 1
                while len(layouts) < _GROUPS_MAX and self._is_ruler(end + 1) and self.lines[end]:
                    layouts.append(_layout([self.lines[end]], self.lines[end + 1]))
                    end += 2
                heading = _Heading(layouts)
                if self.is_known(heading.columns):
                    return end, heading
                if count == 1 and self._separated_at(at)[1] is None:
                    return end, None
        return self._separated_at(at)

    def _separated_at(self, at: int) -> tuple[int, _Heading | None]:
        """The same for a heading with separators between the names."""
        for separator in _SEPARATORS:
            if separator in self.raw[at]:
                cells = _split(self.raw[at].lstrip("\ufeff"), separator)
                names = tuple(plain_name(cell) for cell in cells or ())
                if self.is_known(names):
                    return at + 1, _Heading([_Layout(names, ())], separator)
        return at, None

    def _take(self, at: int) -> None:
        """Take one line as a row, or as the end of a table."""
        line = self.lines[at]
        if not line:
            self._drop_begun()
            self.is_dense = False
            return
        if self.heading is None:
            return
        if _END.fullmatch(line):
            self.heading = None
            return
        if self.heading.separator:
            cells = _split(self.raw[at], self.heading.separator)
            if cells is not None and len(cells) == len(self.heading.columns):
                self.tables[-1].rows.append(self._shared(cells))
            else:
                self.left_out += 1
            return
        self._take_line(self.heading, line)

    def _take_line(self, heading: _Heading, line: str) -> None:
        layout = heading.layout_after(len(self.begun))
        cells = layout.cells(line)
        if cells is not None and len(heading.layouts) == 1 and self._goes_on(layout, cells):
            return
        cells = cells or _by_words(line, layout.names)
        if cells is None:
            if self.is_dense or self.begun:
                self.left_out += 1
            else:
                self.heading = None
            self.begun = []
            return
        self.is_dense = True
        self.begun += self._shared(cells)
        texts = [cell for name, cell in zip(layout.names, cells, strict=True) if name in _TEXTS]
        self.last_length = len(texts[0].rstrip()) if texts else 0
        if len(self.begun) == len(heading.columns):
            self.tables[-1].rows.append(self.begun)
            self.begun = []

    def _goes_on(self, layout: _Layout, cells: list[str]) -> bool:
        """Whether a line holds the rest of the name in the row above, which is then joined."""
        filled = [place for place, cell in enumerate(cells) if cell.strip()]
        rows = self.tables[-1].rows
        if len(filled) != 1 or len(cells) < 2 or not self.is_dense or not rows or not rows[-1][filled[0]]:
            return False
        place = filled[0]
        if math.isfinite(shell_number(cells[place])) or layout.names[place] not in _TEXTS:
            return False
        begin, end = layout.spans[place]
        room = end - begin - self.last_length
        rest = cells[place].strip()
        if room > len(rest.partition(" ")[0]):  # it would have had room there
            return False
        rows[-1][place] += (" " if room > 0 or cells[place].startswith(" ") else "") + rest
        self.last_length = len(cells[place])
        return True

    def _shared(self, cells: list[str]) -> list[str]:
        """The cells without blanks around them; equal names are one string, so that long recordings stay small."""
        bare = [cell.strip() for cell in cells]
        return [self.names.setdefault(cell, cell) if cell[:1].isalpha() else cell for cell in bare]

    def _drop_begun(self) -> None:
        self.left_out += bool(self.begun)
        self.begun = []


def _layout(headings: list[str], ruler: str) -> _Layout:
    """The columns below some lines of names, which are joined from above."""
    spans = tuple((match.start(), match.end()) for match in _GROUP.finditer(ruler))
    layout = _Layout((), spans)
    lines = [layout.cells(line) for line in headings]
    if all(cells is not None for cells in lines):
        columns = zip(*(cells for cells in lines if cells is not None), strict=True)
        names = tuple(plain_name(" ".join(cell.strip() for cell in column)) for column in columns)
        if all(names):
            return _Layout(names, spans)
    words = tuple(plain_name(word) for word in headings[-1].split())
    return _Layout(words, spans if len(words) == len(spans) else ())


def _split(line: str, separator: str) -> list[str] | None:
    """The cells of a line with separators; None where its quotes do not fit."""
    try:
        line = line.strip().strip("|") if separator == "|" else line
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return None


def _by_words(line: str, names: tuple[str, ...]) -> list[str] | None:
    """The cells of a line whose columns do not stand below their headings; None where words do not tell."""
    wide = re.split(r" {2,}", line.strip())
    if len(wide) == len(names):
        return wide
    words = line.split()
    texts = [place for place, name in enumerate(names) if name in {"event", "event_name"}]
    rest = len(words) - len(names)
    if len(texts) != 1 or rest < 0:
        return None
    place = texts[0]
    return [*words[:place], " ".join(words[place : place + rest + 1]), *words[place + rest + 1 :]]
