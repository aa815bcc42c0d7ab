"""The tables of AWR and Statspack reports, from text and from HTML, as rows of cells under named columns.

In text a line of dashes says where each column ends. In HTML a table's ``summary`` says what it shows; reports of old
versions have only a heading before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

_RULER = re.compile(r"\s*(?:~{3,}|-+)(?: +-+)+\s*")
_END = re.compile(r"\s{4,}-{20,}\s*")
_TITLE = re.compile(r"(?P<title>\S.*?)\s(?:(?:for )?DB(?:/Inst)?: |Snaps: )")
_UNDERLINE = re.compile(r"\s*~{3,}\s*")
_TILDES = re.compile(r"~+")
# SQL*Plus starts a page after some lines: an empty line and the name of the column that the report is selected from.
_PAGE = re.compile(r"\n[^\S\n]*\nOUTPUT[^\S\n]*\n(?:-{40,}[^\S\n]*\n)?")
_HEADER_LINES_MAX = 4
_CELL_CHARACTERS_MAX = 4096
_HEADINGS = frozenset({"h1", "h2", "h3", "h4"})
_CELLS = frozenset({"td", "th"})


@dataclass(slots=True)
class ReportTable:
    """A table of a report.

    Attributes:
        title: what it shows, in lower case: a heading, in HTML after the table's summary.
        columns: names of the columns, in lower case, words separated by one space.
        rows: cells of each row that follows the header without a gap.
        body: in text the lines up to the table's end, with the rows and what stands between them.
        cuts: in text where each column ends.
    """

    title: str
    columns: tuple[str, ...]
    rows: list[list[str]] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    cuts: tuple[int, ...] = ()

    def column(self, pattern: str, but: str = "") -> int | None:
        """The place of the first column whose name fits a pattern and not another."""
        for place, name in enumerate(self.columns):
            if re.search(pattern, name) and not (but and re.search(but, name)):
                return place
        return None


def without_pages(text: str) -> str:
    r"""The text of a report without the page breaks of SQL*Plus.

    >>> without_pages("Event\n\nOUTPUT\n" + "-" * 80 + "\nWaits\n")
    'Event\nWaits\n'
    """
    return _PAGE.sub("\n", text.replace("\f", "\n"))


def tables_of_text(lines: list[str]) -> list[ReportTable]:
    """The tables of a report in text, in order."""
    tables: list[ReportTable] = []
    title = ""
    current: ReportTable | None = None
    is_dense = False  # rows follow each other without a gap so far
    for number, line in enumerate(lines):
        if _RULER.fullmatch(line):
            cuts = tuple(match.end() for match in re.finditer(r"-+|~+", line))
            current = ReportTable(title, _names(lines, number, cuts), cuts=cuts)
            tables.append(current)
            is_dense = True
            continue
        match = _TITLE.match(line)
        if match is not None and not line[0].isspace():
            title, current = _plain(match["title"]), None
        elif number + 1 < len(lines) and lines[number + 1].startswith("~~~"):
            title, current = _plain(re.split(r"\s{3,}", line.strip())[0]), None
        elif _END.fullmatch(line):
            current = None
        elif current is not None:
            current.body.append(line)
            is_dense = is_dense and bool(line.strip())
            if is_dense:
                current.rows.append(cells_of(line, current.cuts))
    return tables


def cells_of(line: str, cuts: tuple[int, ...]) -> list[str]:
    """The cells of a line whose columns end at some places; the last takes what is left."""
    starts = (0, *cuts[:-1])
    ends: tuple[int | None, ...] = (*cuts[:-1], None)
    return [line[start:end].strip() for start, end in zip(starts, ends, strict=True)]


def _names(lines: list[str], ruler: int, cuts: tuple[int, ...]) -> tuple[str, ...]:
    """The names of columns, from the lines above a line of dashes."""
    above: list[list[str]] = []
    for line in reversed(lines[max(ruler - _HEADER_LINES_MAX, 0) : ruler]):
        if not line.strip() or line.startswith("-") or _UNDERLINE.fullmatch(line) or _END.fullmatch(line):
            break
        above.append(cells_of(_TILDES.sub(lambda match: " " * len(match[0]), line), cuts))
    return tuple(_plain(" ".join(part for part in reversed(parts) if part)) for parts in zip(*above, strict=True))


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def tables_of_html(text: str) -> tuple[list[ReportTable], str]:
    """The tables of a report in HTML, in order, and the text outside of them, a line for each piece."""
    reader = _HtmlTables()
    reader.feed(text)
    reader.close()
    return reader.tables, "\n".join(reader.outside)


class _HtmlTables(HTMLParser):
    """Collects tables and the headings before them."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tables: list[ReportTable] = []
        self.outside: list[str] = []
        self._heading = ""
        self._current: ReportTable | None = None
        self._row: list[str] | None = None
        self._cell: list[str] | None = None
        self._skips = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Begin a table, a row or a cell."""
        if tag in ("style", "script"):
            self._skips = True
        elif tag == "table":
            self._end_row()
            summary = _plain(dict(attrs).get("summary") or "")
            self._current = ReportTable(f"{summary} {self._heading}".strip(), ())
            self.tables.append(self._current)
        elif tag == "tr" and self._current is not None:
            self._end_row()
            self._row = []
        elif tag in _CELLS and self._row is not None:
            self._end_cell()
            self._cell = []
        elif tag in _HEADINGS:
            self._heading = ""

    def handle_endtag(self, tag: str) -> None:
        """End a table, a row or a cell."""
        if tag in ("style", "script"):
            self._skips = False
        elif tag in _CELLS:
            self._end_cell()
        elif tag == "tr":
            self._end_row()
        elif tag == "table":
            self._end_row()
            self._current = None

    def handle_data(self, data: str) -> None:
        """Keep the text of a cell, or a heading outside of tables."""
        if self._cell is not None:
            self._cell.append(data)
        elif self._current is None and not self._skips and data.strip():
            self._heading = _plain(data[:_CELL_CHARACTERS_MAX])
            self.outside.append(data.strip()[:_CELL_CHARACTERS_MAX])

    def _end_cell(self) -> None:
        if self._cell is not None and self._row is not None:
            self._row.append(" ".join("".join(self._cell).split()))
        self._cell = None

    def _end_row(self) -> None:
        self._end_cell()
        if self._row and self._current is not None:
            if self._current.columns:
                self._current.rows.append(self._row)
            else:
                self._current.columns = tuple(_plain(name) for name in self._row)
        self._row = None


def named(tables: list[ReportTable], pattern: str) -> Iterator[ReportTable]:
    """The tables whose title fits a pattern."""
    for table in tables:
        if re.search(pattern, table.title):
            yield table
