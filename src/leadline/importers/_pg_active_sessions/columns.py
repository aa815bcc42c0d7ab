"""The columns of a CSV file of sessions: each is an index per row into the texts that occur in it."""

from __future__ import annotations

import csv
import re
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from numpy.typing import NDArray

    Column = tuple[NDArray[np.integer[Any]], list[str]]  # indices [n], -1 where the cell is empty; the texts

_ROWS_PER_PIECE = 1 << 14  # bounds memory: most cells repeat, and a piece is let go once its cells are numbered
_CELL_BYTES_MAX = 1 << 23
_WHOLE = re.compile(r"-?\d{1,18}", re.ASCII)


class _Numbering(dict[str, int]):
    """The number of each text, in the order of their coming; an empty cell has -1."""

    def __init__(self) -> None:
        super().__init__({"": -1})

    def __missing__(self, text: str) -> int:
        number = self[text] = len(self) - 1
        return number


def csv_columns(text: str, names: tuple[str, ...], wanted: Iterable[str]) -> dict[str, Column]:
    """The wanted columns of rows without a header.

    Raises:
        ValueError: a row has another number of cells than there are names, or a quote has no end.
    """
    numberings = {name: _Numbering() for name in wanted}
    pieces: dict[str, list[NDArray[np.int32]]] = {name: [np.zeros(0, np.int32)] for name in numberings}
    limit = csv.field_size_limit(_CELL_BYTES_MAX)
    try:
        reader = filter(None, csv.reader(_lines(text), strict=True))
        while rows := list(islice(reader, _ROWS_PER_PIECE)):
            wrong = {len(row) for row in rows} - {len(names)}
            if wrong:
                message = f"{min(wrong)} fields, the header has {len(names)}"
                raise ValueError(message)
            cells = dict(zip(names, zip(*rows, strict=True), strict=True))
            for name, numbering in numberings.items():
                pieces[name].append(np.fromiter(map(numbering.__getitem__, cells[name]), np.int32, len(rows)))
    except csv.Error as error:
        raise ValueError(str(error)) from error
    finally:
        csv.field_size_limit(limit)
    return {name: (np.concatenate(pieces[name]), list(numbering)[1:]) for name, numbering in numberings.items()}


def _lines(text: str) -> Iterator[str]:
    """The lines of a text with their ends, one at a time: a list of them, or a StringIO, holds the text once more."""
    start = 0
    while start < len(text):
        end = text.find("\n", start) + 1 or len(text)
        yield text[start:end]
        start = end


def whole_numbers(column: Column, *, empty: int) -> NDArray[np.int64]:
    """Whole numbers [n]; raises ValueError for another text."""
    codes, texts = column
    wrong = next((text for text in texts if _WHOLE.fullmatch(text) is None), None)
    if wrong is not None:
        message = f"{wrong[:40]!r} is no whole number"
        raise ValueError(message)
    return np.array([*map(int, texts), empty], dtype=np.int64)[codes]


def numbers(column: Column) -> NDArray[np.float64]:
    """Numbers [n], NaN where the cell is empty; raises ValueError for another text."""
    codes, texts = column
    wrong = next((text for text in texts if "_" in text), None)
    if wrong is not None:
        message = f"{wrong[:40]!r} is no number"
        raise ValueError(message)
    return np.array([*map(float, texts), np.nan])[codes]
