"""Lines of tables that consoles and portals export, taken apart."""

from __future__ import annotations

import csv


def cells_of(line: str) -> list[str]:
    """The cells of a line that tabs, semicolons or commas part, whichever are most; empty where it is no such line.

    >>> cells_of('"Time","db01, ReadLatency"')
    ['Time', 'db01, ReadLatency']
    """
    delimiter = "\t" if "\t" in line else ";" if line.count(";") > line.count(",") else ","
    try:
        cells = next(csv.reader([line.replace("\0", " ")], delimiter=delimiter), [])
    except csv.Error:
        return []
    return [cell.strip() for cell in cells]
