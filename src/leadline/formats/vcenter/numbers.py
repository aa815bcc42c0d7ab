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
    value = cell_number(text)
    if value is None and text:
        raise bad_line(source, line, f"the value {text[:40]!r}", "a number")
    return math.nan if value is None else value


def cell_number(text: str) -> float | None:
    """A number with a decimal point or comma; the exports group no thousands. None when it is no number.

    >>> cell_number("1,5"), cell_number("1_000")
    (1.5, None)
    """
    try:
        value = float(text.replace(",", "."))
    except ValueError:
        return None
    return value if math.isfinite(value) and "_" not in text else None


def bad_line(source: Source, line: int, problem: str, expected: str) -> InputError:
    """The error for a line that is not as it was exported."""
    return InputError(
        f"{source.name}:{line}", found=problem, expected=expected, advice="Export it again; do not edit it by hand."
    )
