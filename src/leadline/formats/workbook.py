"""Sheets of an Excel workbook as rows with named columns, whatever the locale they were written in.

Cells hold numbers as numbers or as the text a locale prints; flags as flags or words; times as times, serial numbers
or text. What cannot be read is left out and counted, never guessed.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta
from math import isfinite
from pathlib import Path
from typing import Any

from leadline.core.io.compressed import UNREADABLE
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.errors import InputError, LeadlineError, LimitError

UNPACKED_BYTES_MAX = 512 * 1024**2  # Judgement: six times the sheets of 5,000 VMs; the reader takes as much again
# Source: Excel specifications and limits: a cell has at most 32,767 characters; six bytes each where they are escaped.
TEXT_BYTES_MAX = 512 * 1024
# The reader holds the rectangle from the first to the last cell, so one stray cell far away would take all memory.
_FAR_CELL = re.compile(rb' r ?= ?"(?:[A-Z]{3,}[0-9]|[A-Z]+(?:[2-9][0-9]{5}|[0-9]{7}))')
_PLAIN_XML = bytes.maketrans(b"\t\n\r'", b'   "')  # the other ways to write blanks and quotes
ROW_COUNT_MAX = 199_999
_EXCEL_EPOCH = datetime(1899, 12, 30)  # noqa: DTZ001 - Excel's serial times have no zone
_SHEET_NAME = re.compile(rb'<(?:\w+:)?sheet\s[^>]*?name="([^"]*)"')
_TRUE = frozenset({"true", "yes", "1"})
_FALSE = frozenset({"false", "no", "0"})

_PLAIN = re.compile(r"[+-]?[0-9]{1,15}")
_DECIMAL = re.compile(r"([+-]?[0-9]{0,15})[.,]([0-9]{1,15})")
_GROUPED = re.compile(r"[+-]?[0-9]{1,3}(?:([.,])[0-9]{2,3}(?:\1[0-9]{2,3})*)?")
_BLANKS = re.compile("[ \u00a0\u202f'\u2019]")

_YEAR_FIRST = re.compile(r"([0-9]{4})[-/.]([0-9]{1,2})[-/.]([0-9]{1,2})")
_YEAR_LAST = re.compile(r"([0-9]{1,2})([-/.])([0-9]{1,2})\2 ?([0-9]{4})")
_TIME = re.compile(r"([0-9]{1,2})[:.]([0-9]{2})(?:[:.]([0-9]{2}))?\s*([AaPp])?")


def sheet_names(path: Path) -> list[str]:
    """Names of a workbook's sheets; none when the file is no workbook. Cheap: reads one small part."""
    with suppress(*UNREADABLE):
        with zipfile.ZipFile(path) as archive, archive.open("xl/workbook.xml") as stream:
            return [name.decode("utf-8", "replace") for name in _SHEET_NAME.findall(stream.read(1 << 20))]
    return []


@dataclass(slots=True)
class SheetRow:
    """One row of a sheet."""

    sheet: WorkbookSheet
    cells: list[Any]

    def cell(self, column: str) -> Any:  # noqa: ANN401 - what the cell holds
        """The cell as it is; None when the sheet has no such column or the cell is empty."""
        index = self.sheet.columns.get(column)
        value = None if index is None or index >= len(self.cells) else self.cells[index]
        return None if value == "" else value

    def text(self, column: str) -> str | None:
        """The cell as text; a whole number without its decimals."""
        value = self.cell(column)
        if value is None:
            return None
        if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
            value = int(value)
        return str(value).strip() or None

    def number_of(self, column: str) -> float | None:
        """The cell as a number; None when it is empty, or (counted) when it is none."""
        value = self.cell(column)
        number = to_number(value) if isinstance(value, str) else value
        if value is None or (isinstance(number, int | float) and not isinstance(number, bool)):
            return None if number is None or not isfinite(number) else float(number)
        self.sheet.unreadable(column, "numbers")
        return None

    def count(self, column: str) -> int | None:
        """The cell as a whole number that is not negative."""
        number = self.number_of(column)
        if number is None or (number.is_integer() and 0 <= number < 1e15):
            return None if number is None else int(number)
        self.sheet.unreadable(column, "whole numbers")
        return None

    def flag(self, column: str) -> bool | None:
        """The cell as true or false."""
        value = self.cell(column)
        if value is None or isinstance(value, bool):
            return value
        word = (self.text(column) or "").casefold()
        if word in _TRUE or word in _FALSE:
            return word in _TRUE
        self.sheet.unreadable(column, "true or false")
        return None

    def time(self, column: str) -> datetime | None:
        """The cell as a local time without a zone."""
        value = self.cell(column)
        moment = None
        if isinstance(value, datetime):
            moment = value.replace(tzinfo=None)
        elif isinstance(value, date):
            moment = datetime(value.year, value.month, value.day)  # noqa: DTZ001 - the sheet has no zone
        elif isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < 200_000:
            moment = _EXCEL_EPOCH + timedelta(days=float(value))
        elif isinstance(value, str):
            moment = to_time(value, day_first=self.sheet.day_first)
        if moment is None and value is not None:
            self.sheet.unreadable(column, "times")
        return moment


@dataclass(slots=True)
class WorkbookSheet:
    """A sheet whose first row names its columns."""

    name: str
    columns: dict[str, int]
    cells: list[list[Any]]
    builder: CaptureBuilder
    day_first: bool | None = field(default=None)

    def __iter__(self) -> Iterator[SheetRow]:
        for cells in self.cells:
            yield SheetRow(self, cells)

    def unreadable(self, column: str, expected: str) -> None:
        """Count a cell that was left out."""
        self.builder.warn("cell", f"cells of {self.name}, column {column!r} that are not {expected} were left out")

    def texts(self, column: str) -> Iterator[str]:
        """The cells of a column that are texts."""
        return (value for row in self if isinstance(value := row.cell(column), str))


def read_sheets(path: Path, builder: CaptureBuilder, wanted: Iterable[str]) -> dict[str, WorkbookSheet]:
    """The wanted sheets that are there and have a header row.

    Raises:
        InputError: the workbook is damaged, or protected by a password.
        LimitError: it is larger than the documented limits.
    """
    name = builder.info.name
    _check_size(path, name)
    try:
        return _read_sheets(path, builder, set(wanted))
    except BaseException as error:
        # A panic of the reader does not derive from Exception; what else does not is the user's or the system's.
        if isinstance(error, LeadlineError) or not (
            isinstance(error, Exception) or type(error).__name__ == "PanicException"
        ):
            raise
        raise _damaged(name, str(error).splitlines()[0] if str(error) else type(error).__name__) from error


def _read_sheets(path: Path, builder: CaptureBuilder, wanted: set[str]) -> dict[str, WorkbookSheet]:
    import python_calamine  # noqa: PLC0415 - only workbooks need it

    sheets = {}
    with python_calamine.CalamineWorkbook.from_path(path) as workbook:
        for name in workbook.sheet_names:
            if name not in wanted:
                continue
            rows = workbook.get_sheet_by_name(name).to_python()
            if rows:
                header = [str(title).strip() for title in rows[0]]
                columns = {title: i for i, title in reversed(list(enumerate(header))) if title}
                sheets[name] = WorkbookSheet(
                    name, columns, [row for row in rows[1:] if any(c != "" for c in row)], builder
                )
    return sheets


def _check_size(path: Path, name: str) -> None:
    """Refuse what would take all memory: bombs, endless cells, and cells that lie far outside of everything else.

    Every part is unpacked once, so that one which is larger than the archive says is found, too.
    """
    try:
        with zipfile.ZipFile(path) as archive:
            byte_count = sum(member.file_size for member in archive.infolist())
            is_large = byte_count > UNPACKED_BYTES_MAX
            problem = "a sheet that is too large" if is_large else _oddity_of(archive)
    except UNREADABLE as error:
        raise _damaged(name, str(error)) from error
    if problem is not None:
        raise LimitError(
            name,
            found=problem,
            expected=f"at most {ROW_COUNT_MAX} rows, 702 columns and {UNPACKED_BYTES_MAX >> 20} MiB unpacked",
            advice="Export fewer machines at a time, or delete what lies outside of the table.",
        )


def _oddity_of(archive: zipfile.ZipFile) -> str | None:
    """What in the parts of a workbook is larger than any table, in words; None where nothing is."""
    for member in archive.infolist():
        if not member.filename.startswith("xl/") or member.filename.startswith("xl/media/"):
            continue
        is_sheet, is_xml = member.filename.startswith("xl/worksheets/"), member.filename.endswith(".xml")
        tail = b""
        with archive.open(member) as stream:
            while chunk := stream.read(TEXT_BYTES_MAX):
                if is_xml and len(chunk) == TEXT_BYTES_MAX and b"<" not in chunk:
                    return f"a cell of more than {TEXT_BYTES_MAX >> 10} KiB"
                if is_sheet:
                    chunk = chunk.translate(_PLAIN_XML)
                    if _FAR_CELL.search(tail + chunk):
                        return "a sheet that is too large"
                    tail = chunk[-40:]
    return None


def _damaged(name: str, why: str) -> InputError:
    return InputError(
        name,
        found=f"unreadable as a workbook ({why[:120]})",
        expected="a complete .xlsx file without a password",
        advice="Export or copy it again.",
    )


def to_number(text: str) -> float | None:
    """The number a locale's text means, or None. Groups of three digits after one kind of sign are thousands.

    >>> [to_number(text) for text in ("1,048,576", "1.048.576", "1 048 576", "2,5", "1.234,5", "1,024", "-1", "n/a")]
    [1048576.0, 1048576.0, 1048576.0, 2.5, 1234.5, 1024.0, -1.0, None]
    """
    bare = _BLANKS.sub("", text.strip())
    if _PLAIN.fullmatch(bare):
        return float(bare)
    grouped = _GROUPED.fullmatch(bare)
    if grouped is not None and len(bare) < 24 and bare[-4] in ".," and bare.lstrip("+-")[0] != "0":
        return float(re.sub("[.,]", "", bare))
    decimal = _DECIMAL.fullmatch(bare)
    if decimal is not None:
        return float(f"{decimal[1]}.{decimal[2]}")
    whole, sign, part = bare.rpartition("," if bare.rfind(",") > bare.rfind(".") else ".")
    if sign and part.isascii() and part.isdigit() and sign not in whole and _GROUPED.fullmatch(whole):
        return float(f"{re.sub('[.,]', '', whole)}.{part}")
    return None


def day_is_first(texts: Iterable[str]) -> bool | None:
    """Whether dates like 03/04/2026 put the day first, as far as one of them tells; None when none does.

    >>> day_is_first(["03/04/2026 10:00", "25/04/2026 10:00"]), day_is_first(["4/25/2026"]), day_is_first(["3/4/2026"])
    (True, False, None)
    """
    for text in texts:
        match = _YEAR_LAST.match(text.strip())
        if match is not None and match[2] == "/" and (int(match[1]) > 12) != (int(match[3]) > 12):
            return int(match[1]) > 12
    return None


def to_time(text: str, *, day_first: bool | None) -> datetime | None:
    """The local time a locale's text means; None when it is none, or when day and month cannot be told apart.

    Dots and dashes put the day first; slashes do as ``day_first`` says.
    """
    bare = text.strip()
    year_first, year_last = _YEAR_FIRST.match(bare), _YEAR_LAST.match(bare)
    if year_first is not None:
        end, (year, month, day) = year_first.end(), (int(year_first[i]) for i in (1, 2, 3))
    elif year_last is not None:
        end, (one, two, year) = year_last.end(), (int(year_last[i]) for i in (1, 3, 4))
        first = True if year_last[2] != "/" else day_first
        if first is None and one != two:
            return None
        day, month = (one, two) if first else (two, one)
    else:
        return None
    clock = _TIME.match(bare[end:].lstrip(" T,"))
    hour, minute, second = (int(clock[i] or 0) for i in (1, 2, 3)) if clock else (0, 0, 0)
    if clock is not None and clock[4]:
        hour = hour % 12 + (12 if clock[4] in "Pp" else 0)
    try:
        return datetime(year, month, day, hour, minute, second)  # noqa: DTZ001 - the sheet has no zone
    except ValueError:
        return None
