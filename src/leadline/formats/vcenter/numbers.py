"""Cells of what vCenter exports: numbers, and the error for what is none."""

from __future__ import annotations

import math

from leadline.core.io.source import Source
from leadline.core.model.errors import InputError


def cell_value(text: str, source: Source, line: int) -> float:
    """A number; NaN for an empty cell.

    Raises:
        InputError: it is neither.
    """
    found = cell_number(text)
    if found is None and text:
        raise bad_line(source, line, f"the value {text[:40]!r}", "a number")
    return math.nan if found is None else found


def cell_number(text: str) -> float | None:
    """A number with a decimal point or comma; the exports group no thousands. None when it is no number.

    >>> cell_number("1,5"), cell_number("1_000")
    (1.5, None)
    """
    try:
        found = float(text.replace(",", "."))
    except ValueError:
        return None
    return found if math.isfinite(found) and "_" not in text else None


def bad_line(source: Source, line: int, found: str, expected: str) -> InputError:
    """The error for a line that is not as it was exported."""
    return InputError(
        f"{source.name}:{line}", found=found, expected=expected, advice="Export it again; do not edit it by hand."
    )
