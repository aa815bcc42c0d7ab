"""Tables as the shells of databases print them and people paste them: ``psql`` and ``mysql``, one or several in a file.

.. code-block:: text

     pid | state  | query              +---+------+      -[ RECORD 1 ]---        *** 1. row ***
    -----+--------+----------          | Id| Info |      pid   | 812               Id: 5
     812 | active | select 1 +         +---+------+      state | active          Info: NULL
         |        | from t             | 5 | NULL |
    (1 row)                            +---+------+

Also without borders (``psql -A``) and as CSV. Prompts, the statements behind them, counts of rows and times that the
shell printed between tables belong to no table and are passed over; any other line is refused.

Source: PostgreSQL ``src/fe_utils/print.c``; MySQL ``client/mysql.cc``, print_table_data.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field

_UNICODE = str.maketrans("│─┼┌┬┐├┤└┴┘║═╬╔╦╗╠╣╚╩╝╪╫", "|-+++++++++" + "|-+++++++++" + "++")
_DASHES = re.compile(r"-{2,}(?:\+-{2,})*\s*")
_BORDER = re.compile(r"\s*\+-{2,}(?:\+-{2,})*\+\s*")
_MARKDOWN = re.compile(r"\|(?:[ :]?-{2,}[ :]?\|)+")
_RECORD = re.compile(r"[+-]?-?\[ RECORD \d{1,9} \][-+]*\s*|\s*\*{5,60} {0,4}\d{1,9}\. row {0,4}\*{5,60}\s*")
_FOOTER = re.compile(
    r"\s*(?:\(\d{1,9} (?:rows?|行|строк\w?|Zeilen?|lignes?|filas?)\)|\d{1,9} rows? in set\b.*|Empty set\b.*"
    r"|Query OK\b.*|Time: [\d.,]{1,20} ms.*|Timing is .*"
    r"|Expanded display .*|Pager .*|Output format .*|You are now connected .*|Null display .*"
    r"|\\[a-z!]\S*(?: .*)?|Tuples only .*|Database changed|Bye)\s*",
    re.IGNORECASE,
)
_PROMPT = re.compile(
    r"(?:[\w.@:/-]{1,80}[=\-*!^('\"$][*!]?[#>]|mysql>|MariaDB \[[^\]\n]{1,80}\]>|    ->|\s{0,4}->)(?:\s.*|$)"
)
_STATEMENT = re.compile(r"(?:select|with|show|table|explain)\b", re.IGNORECASE)
_WATCH = re.compile(r"(.{8,80}?) \((?:every|alle|chaque) [\d.]{1,9} ?s\)\s*")
_FIELD = re.compile(r"(?P<name>[\w?%(), ]{1,64}?)\s*\|(?: (?P<value>.*))?")
_COLON = re.compile(r"\s*(?P<name>[\w@%(), ]{1,64}): ?(?P<value>.*)")
_NAME = re.compile(r"[\w?%()/., -]{1,64}")
_MARKS = "+\u21b5.\u2026"  # psql's, at the right edge of a cell that goes on in the next line
_SEPARATORS = ("|", ",", ";", "\t")
_KNOWN_MIN = 2


class TableError(ValueError):
    """A line that belongs to no table; ``line`` counts from 1."""

    def __init__(self, line: int, problem: str) -> None:
        super().__init__(problem)
        self.line = line


@dataclass(slots=True)
class PrintedTable:
    """A table of a shell.

    Attributes:
        columns: names in lower case.
        title: the time that psql printed above it while it watched, else empty.
        rows: the line each begins at, counted from 1, and its cells, as many as columns.
    """

    columns: tuple[str, ...]
    title: str = ""
    rows: list[tuple[int, list[str]]] = field(default_factory=list)

    def records(self) -> Iterator[tuple[int, dict[str, str]]]:
        """Each row with its line, as cells by column."""
        for line, cells in self.rows:
            yield line, dict(zip(self.columns, cells, strict=True))


def printed_tables(lines: list[str], known: frozenset[str]) -> list[PrintedTable]:
    """The tables in some lines; those without borders need two columns of ``known`` names.

    Raises:
        TableError: a line is of no table.
    """
    return _Reader([line.translate(_UNICODE).rstrip() for line in lines], known).read()


def table_columns(lines: list[str], known: frozenset[str]) -> Iterator[frozenset[str]]:
    """The columns of each table that begins in some lines, whatever else is in them."""
    reader = _Reader([line.translate(_UNICODE).rstrip() for line in lines], known)
    names: set[str] = set()
    for at in range(len(lines)):
        header = reader.header_at(at)
        if header is not None:
            yield frozenset(header[0])
        field_ = reader.field_at(at)
        if field_ is not None:
            names.add(field_[0])
    if names:
        yield frozenset(names)


@dataclass(slots=True)
class _Reader:
    lines: list[str]
    known: frozenset[str]
    tables: list[PrintedTable] = field(default_factory=list)
    title: str = ""

    def read(self) -> list[PrintedTable]:
        """All tables; a line of none raises TableError."""
        at, is_statement = 0, False
        while at < len(self.lines):
            line = self.lines[at]
            header = self.header_at(at)
            if header is not None:
                at, is_statement = self._rows(at, *header), False
            elif _RECORD.fullmatch(line):
                at, is_statement = self._records(at), False
            elif (watch := _WATCH.fullmatch(line)) is not None:
                self.title, at = watch[1].strip(), at + 1
            elif not line or _FOOTER.fullmatch(line):
                at += 1
            elif _PROMPT.match(line) or _STATEMENT.match(line):
                is_statement, at = not line.endswith((";", "\\g", "\\G", "\\gx")), at + 1
            elif is_statement:
                is_statement, at = not line.endswith(";"), at + 1
            elif self.field_at(at) is not None:
                at = self._records(at)
            else:
                raise TableError(at + 1, f"{line.strip()[:60]!r} is no row of a table")
        return [table for table in self.tables if table.rows]

    def header_at(self, at: int) -> tuple[tuple[str, ...], str, int] | None:
        """Columns, the line of dashes or the separator, and where the rows begin; None where no table begins."""
        line = self.lines[at]
        after = self.lines[at + 1] if at + 1 < len(self.lines) else ""
        if line.startswith("|") and _MARKDOWN.fullmatch(after):
            after = re.sub("[ :]", "-", after).replace("|", "+")
        elif _BORDER.fullmatch(line) and at + 2 < len(self.lines) and _BORDER.fullmatch(self.lines[at + 2]):
            line, after, at = after, line, at + 1
        elif not line or not _DASHES.fullmatch(after) or _DASHES.fullmatch(line):
            return self._open_header(at)
        cells = [cell.strip().casefold() for cell in line.strip().strip("|").split("|")]
        is_whole = len(cells) == after.strip().strip("+").count("+") + 1
        return (tuple(cells), after, at + 2) if is_whole and all(map(_NAME.fullmatch, cells)) else None

    def _open_header(self, at: int) -> tuple[tuple[str, ...], str, int] | None:
        """The header of a table without borders: names alone, of which two are known."""
        line = self.lines[at]
        for separator in _SEPARATORS:
            if separator not in line:
                continue
            names = tuple(name.strip().strip('"').casefold() for name in line.split(separator))
            is_known = len(self.known.intersection(names)) >= min(_KNOWN_MIN, len(names))
            if is_known and len(set(names)) == len(names) and all(map(_NAME.fullmatch, names)):
                if separator == "|" and len(names) == 2 and self._is_field_next(at):
                    return None
                return names, separator, at + 1
        return None

    def _is_field_next(self, at: int) -> bool:
        return at + 1 < len(self.lines) and self.field_at(at + 1) is not None

    def field_at(self, at: int) -> tuple[str, str] | None:
        """Name and value of a line of an expanded record whose name is known."""
        for shape in (_FIELD, _COLON):
            match = shape.fullmatch(self.lines[at])
            if match is not None and match["name"].strip().casefold() in self.known:
                return match["name"].strip().casefold(), match["value"] or ""
        return None

    def _add(self, columns: tuple[str, ...], line: int, cells: list[str]) -> None:
        """A row, of the latest table where it has these columns."""
        last = self.tables[-1] if self.tables else None
        if last is None or last.columns != columns or last.title != self.title:
            last = PrintedTable(columns, self.title)
            self.tables.append(last)
        last.rows.append((line, cells))

    def _rows(self, at: int, columns: tuple[str, ...], ruler: str, begin: int) -> int:
        """Add the rows of a table; where it ends."""
        self.tables.append(PrintedTable(columns, self.title))
        if ruler in _SEPARATORS:
            return self._open_rows(begin, columns, ruler)
        is_boxed = ruler.lstrip().startswith("+")
        edges = [place for place, sign in enumerate(ruler) if sign == "+"]
        edges = edges if is_boxed else [-1, *edges, len(ruler.rstrip())]
        at, going_on = begin, False
        while at < len(self.lines):
            line, number = self.lines[at], at + 1
            if is_boxed and _BORDER.fullmatch(line):
                at += 1
                if at < len(self.lines) and not self.lines[at].startswith("|"):
                    break
                continue
            if not line or _FOOTER.fullmatch(line) or _PROMPT.match(line) or _WATCH.fullmatch(line):
                break
            while is_boxed and not line.endswith("|") and at + 1 < len(self.lines):  # a statement of several lines
                if self.lines[at + 1].startswith(("| ", "+-")):
                    break
                at += 1
                line = f"{line}\n{self.lines[at]}"
            cells, more = _cells(line, edges, len(columns), is_boxed)
            if cells is None:
                raise TableError(number, f"{line.strip()[:60]!r} has other columns than the header")
            if going_on:
                row = self.tables[-1].rows[-1][1]
                row[:] = [_joined(a, b) for a, b in zip(row, cells, strict=True)]
            else:
                self._add(columns, number, cells)
            going_on = more
            at += 1
        return at

    def _open_rows(self, at: int, columns: tuple[str, ...], separator: str) -> int:
        while at < len(self.lines):
            line, number = self.lines[at], at + 1
            if not line or _FOOTER.fullmatch(line):
                break
            while separator != "|" and line.count('"') % 2 and at + 1 < len(self.lines):
                at += 1
                line = f"{line}\n{self.lines[at]}"
            cells = line.split("|") if separator == "|" else _csv_cells(line, separator)
            if separator == "|" and len(cells) > len(columns):
                cells[len(columns) - 1 :] = ["|".join(cells[len(columns) - 1 :])]
            if separator == "|" and len(cells) == 1 and self.tables[-1].rows:  # a statement of several lines
                self.tables[-1].rows[-1][1][-1] += f"\n{line}"
                at += 1
                continue
            if len(cells) != len(columns):
                raise TableError(number, f"{len(cells)} cells, the header has {len(columns)}")
            if [cell.strip().casefold() for cell in cells] != list(columns):
                self._add(columns, number, [cell.strip() for cell in cells])
            at += 1
        return at

    def _records(self, at: int) -> int:
        """Add one record of expanded display; where it ends."""
        begin = at
        if _RECORD.fullmatch(self.lines[at]):
            at += 1
        is_colon = self.lines[begin].lstrip().startswith("*") or (begin == at and "|" not in self.lines[at])
        shape = _COLON if is_colon else _FIELD
        record: dict[str, str] = {}
        name = ""
        while at < len(self.lines):
            line = self.lines[at]
            is_end = not line or _RECORD.fullmatch(line) or _FOOTER.fullmatch(line) or _PROMPT.match(line)
            if is_end or _WATCH.fullmatch(line):
                break
            match = shape.fullmatch(line)
            key = "" if match is None else match["name"].strip().casefold()
            is_further = name and (not key or (is_colon and key not in self.known))
            if match is not None and key in record and not is_further:
                break
            if match is not None and key and not is_further:
                name, record[key] = key, (match["value"] or "").strip()
            elif name and (is_colon or re.match(r"\s*\|", line)):
                text = line if is_colon else line.partition("|")[2]
                record[name] = f"{record[name].rstrip('+').rstrip()}\n{text.strip()}"
            else:
                raise TableError(at + 1, f"{line.strip()[:60]!r} is no field of a record")
            at += 1
        if record:
            self._add(tuple(record), begin + 1, [value.rstrip("+").rstrip() for value in record.values()])
        return at


def _cells(line: str, edges: list[int], count: int, is_boxed: bool) -> tuple[list[str] | None, bool]:
    """The cells of a row and whether it goes on in the next line; None where it has another number of them."""
    inner = edges[1:-1]
    if all(place < len(line) and line[place] in "|:" for place in inner):
        last = len(line) if not is_boxed else len(line.rstrip().removesuffix("|"))
        spans = zip([place + 1 for place in edges[:-1]], [*inner, max(last, edges[-2] + 1)], strict=True)
        raw = [line[begin:end] for begin, end in spans]
    else:
        raw = (line.strip().removeprefix("|").removesuffix("|") if is_boxed else line).split("|")
        if len(raw) > count > 1:  # a bar within the last cell, which is the statement
            raw[count - 1 :] = ["|".join(raw[count - 1 :])]
    if len(raw) != count:
        return None, False
    return [_bare(cell) for cell in raw], any(map(_goes_on, raw))


def _goes_on(cell: str) -> bool:
    """Whether a cell goes on in the next line: a new line of its text, or one that was wrapped."""
    return len(cell) > 2 and cell[0] in " ." and cell[-1] in _MARKS


def _bare(cell: str) -> str:
    return (cell[:-1] if _goes_on(cell) and cell[-1] in "+\u21b5" else cell).strip()


def _joined(text: str, further: str) -> str:
    """The text of a cell with that of the next line."""
    if further.startswith((".", "\u2026")):
        return text.rstrip(".\u2026") + further[1:]
    return f"{text}\n{further}" if further else text


def _csv_cells(line: str, separator: str) -> list[str]:
    try:
        return next(csv.reader([line], delimiter=separator, strict=True), [])
    except csv.Error:
        return []
