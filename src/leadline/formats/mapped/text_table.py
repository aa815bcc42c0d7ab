"""Tables of text: CSV, TSV and the like, and JSON lines, as columns of texts."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from leadline.core.io.source import Source
from leadline.core.model.errors import InputError

DELIMITERS = ",;\t|"
ROWS_LOOKED_AT = 20
COLUMNS_MAX = 100_000
DEPTH_MAX = 8
# Judgement: a table with fewer than one cell in a hundred filled is none, and would take memory beyond the file's size.
SPARSE_MAX, CELLS_MIN = 100, 1_000_000


@dataclass(frozen=True, slots=True)
class TextTable:
    """Columns by name; every cell is a text, an empty one where there is nothing.

    Attributes:
        lines: the line of the file each row begins in.
        was_cut: the last row was incomplete and left out.
    """

    columns: dict[str, list[str]]
    lines: list[int]
    was_cut: bool = False

    @property
    def row_count(self) -> int:
        """How many rows."""
        return len(self.lines)


def delimiter_of(head: str) -> str:
    """The delimiter that parts the first rows into equally many cells, the most of them."""
    rows = [line for line in head.splitlines()[:ROWS_LOOKED_AT] if line.strip()][:-1] or head.splitlines()[:1]
    best, cells = ",", 1
    for delimiter in DELIMITERS:
        counts = {len(row) for row in csv.reader(rows, delimiter=delimiter)}
        if len(counts) == 1 and (count := counts.pop()) > cells:
            best, cells = delimiter, count
    return best


def is_json_lines(head: str) -> bool:
    """Whether the text is a JSON object a line."""
    return head.lstrip().startswith("{")


def read_text_table(source: Source, delimiter: str | None = None, *, truncate_last: bool = False) -> TextTable:
    """The table of a file.

    Raises:
        InputError: no table, a row with another number of cells, a name that comes twice, or no JSON.
    """
    text = source.text()
    if is_json_lines(text[:4096]):
        return _json_lines(source.name, text, truncate_last=truncate_last)
    return _delimited(source.name, text, delimiter or delimiter_of(source.head_text), truncate_last=truncate_last)


def _delimited(name: str, text: str, delimiter: str, *, truncate_last: bool) -> TextTable:
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, skipinitialspace=True)
    header: list[str] | None = None
    rows: list[list[str]] = []
    lines: list[int] = []
    was_cut = False
    try:
        for row in reader:
            if not any(cell.strip() for cell in row) or (header is None and row[0].startswith("#")):
                continue
            if header is None:
                header = _header(name, row)
                continue
            if len(row) != len(header):
                is_last = not text.endswith(("\n", "\r")) and reader.line_num >= text.count("\n") + 1
                if is_last or truncate_last:
                    was_cut = True
                    break
                raise InputError(
                    f"{name}:{reader.line_num}",
                    found=f"{len(row)} cells",
                    expected=f"{len(header)}, as in the header",
                    advice="Name the delimiter in the map, or correct the row.",
                )
            rows.append(row)
            lines.append(reader.line_num)
    except csv.Error as error:
        raise InputError(
            f"{name}:{reader.line_num}", found=f"no table ({error})", expected="cells", advice="Export it again."
        ) from error
    if header is None:
        raise InputError(name, found="no row", expected="a header and rows", advice="Export it again.")
    columns = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in header]
    return TextTable(dict(zip(header, columns, strict=True)), lines, was_cut)


def _header(name: str, row: list[str]) -> list[str]:
    header = [cell.strip() for cell in row]
    twice = sorted(cell for cell, count in Counter(header).items() if count > 1)
    if twice or len(header) > COLUMNS_MAX:
        raise InputError(
            name,
            found=f"column {twice[0]!r} twice" if twice else f"{len(header):,} columns",
            expected=f"a header of different names, at most {COLUMNS_MAX:,}",
            advice="Export it with a header row.",
        )
    return header


def _json_lines(name: str, text: str, *, truncate_last: bool) -> TextTable:
    rows: list[dict[str, str]] = []
    lines: list[int] = []
    was_cut = False
    parts = text.splitlines()
    for number, line in enumerate(parts, start=1):
        if not line.strip():
            continue
        try:
            rows.append(dict(_flat(json.loads(line), "", 0)))
        except (ValueError, AttributeError, RecursionError) as error:  # AttributeError: no object
            if number == len(parts) and (truncate_last or not text.endswith("\n")):
                was_cut = True
                break
            raise InputError(
                f"{name}:{number}", found=repr(line[:40]), expected="a JSON object", advice="Export it again."
            ) from error
        lines.append(number)
    names = dict.fromkeys(key for row in rows for key in row)
    filled = sum(len(row) for row in rows)
    if len(names) > COLUMNS_MAX or len(names) * len(rows) > max(CELLS_MIN, SPARSE_MAX * filled):
        raise InputError(
            name,
            found=f"{len(names):,} keys in {len(rows):,} objects, of which each has few",
            expected=f"objects with the same keys, at most {COLUMNS_MAX:,}",
            advice="Write what differs from line to line as a value, not as a key.",
        )
    return TextTable({key: [row.get(key, "") for row in rows] for key in names}, lines, was_cut)


def _flat(node: dict[str, Any], path: str, depth: int) -> Iterator[tuple[str, str]]:
    """Cells by dotted key; lists are left out."""
    for key, value in node.items():
        name = f"{path}{key}"
        if isinstance(value, dict) and depth < DEPTH_MAX:
            yield from _flat(value, f"{name}.", depth + 1)
        elif isinstance(value, bool):
            yield name, str(int(value))
        elif value is None:
            yield name, ""
        elif isinstance(value, str | int | float):
            yield name, value if isinstance(value, str) else repr(value)
