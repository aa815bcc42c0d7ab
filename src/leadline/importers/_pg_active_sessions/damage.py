"""Where a recording of sessions is damaged."""

from __future__ import annotations

import io
from csv import Error as csv_error
from csv import reader as csv_reader
from datetime import datetime

from leadline.formats.stamps import YEARS


def moment_of(text: str) -> datetime:
    """The time a row begins with; ValueError when it is none."""
    moment = datetime.fromisoformat(text)
    if moment.year not in YEARS:
        raise ValueError(text)
    return moment


def damaged_line(data: str, names: tuple[str, ...]) -> int | None:
    """Where the first row begins that has another number of cells than the header or no time, numbered from 1."""
    reader = csv_reader(io.StringIO(data, newline=""))
    begin = 1
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return None
        except csv_error:
            return begin
        is_header = cells[:1] == [] or cells[0].strip().casefold() == names[0]
        if not is_header and (len(cells) != len(names) or not _is_moment(cells[0])):
            return begin
        begin = reader.line_num + 1


def _is_moment(text: str) -> bool:
    try:
        moment_of(text)
    except ValueError:
        return False
    return True
