"""What the bench printed last, as docs/incidents.md shows it: blocks between ``<!-- printed: NAME -->`` and its end.

The README's figures come from these blocks (`scripts/lists.py`), so that they are printed figures, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from benches.incidents.table import COUNT_WIDTH, TOTAL_WIDTH, VIEW_WIDTH
from tests.conftest import ROOT

PAGE = ROOT / "docs" / "incidents.md"
_BLOCK = r"(<!-- printed: {} -->\n```text\n)(.*?)(\n```\n<!-- end of printed -->)"
_CELL = re.compile(r"(\d+)/(\d+)$")
# The columns of the totals behind the view and the number of its recordings.
_COLUMNS = (
    *("cleared disk", "cleared layer", "accused", "cannot know", "layer", "entity", "cause", "top", "time", "who"),
    *("limits clear", "limits accuse"),
)


@dataclass(frozen=True, slots=True)
class Count:
    """In how many of how many."""

    some: int
    of: int

    def __add__(self, other: Count) -> Count:
        return Count(self.some + other.some, self.of + other.of)


def keep_printed(name: str, lines: Iterable[str]) -> None:
    """Replace a block of the page."""
    text = "\n".join(line.rstrip() for line in lines).strip("\n")
    page = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(_BLOCK.format(name), re.DOTALL)
    if not pattern.search(page):
        message = f"{PAGE}: no block {name!r}"
        raise ValueError(message)
    PAGE.write_text(pattern.sub(lambda block: f"{block[1]}{text}{block[3]}", page), encoding="utf-8")


def printed(name: str) -> list[str]:
    """The lines of a block of the page."""
    block = re.search(_BLOCK.format(name), PAGE.read_text(encoding="utf-8"), re.DOTALL)
    if block is None:
        message = f"{PAGE}: no block {name!r}"
        raise ValueError(message)
    return block[2].splitlines()


def total(view: str, column: str) -> Count:
    """A cell of the totals, both halves together."""
    at = VIEW_WIDTH + COUNT_WIDTH + TOTAL_WIDTH * _COLUMNS.index(column)  # full cells touch each other
    lines = [line for line in printed("totals") if line.startswith(f"{view} ")]
    return sum(
        (_count(line[at : at + TOTAL_WIDTH].strip(), int(line[VIEW_WIDTH:][:COUNT_WIDTH])) for line in lines),
        Count(0, 0),
    )


def named(line: str) -> str:
    """How many first causes of a line of the incidents of others are right: told the time, and searching for it."""
    row = next(one.removeprefix(line).split() for one in printed("named") if one.startswith(f"{line} "))
    return f"{row[1]} of {row[0]} / {row[3]} of {row[0]}"


def innocents(view: str) -> Count:
    """How many full, or other, views accuse somebody innocent."""
    rows: Iterator[list[str]] = (line.split()[4:] for line in printed("totals") if f"bystanders, {view} views" in line)
    counts = ([0 if one == "." else int(one) for one in row] for row in rows)
    return sum((Count(sum(row[1:]), row[0]) for row in counts), Count(0, 0))


def _count(text: str, of: int) -> Count:
    matched = _CELL.search(text)
    return Count(0, of) if matched is None else Count(int(matched[1]), int(matched[2]))
