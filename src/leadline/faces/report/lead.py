"""What a report of a measurement says before its diagnosis: an answer of its own, tables, charts, distributions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.model.finding import Window
    from leadline.core.model.histogram import Histogram
    from leadline.faces.report.figures import Chart


@dataclass(frozen=True, slots=True)
class Table:
    """Rows of text; the first column names them, ``texts`` of the others (by position) are words, the rest numbers."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    texts: frozenset[int] = frozenset()
    caption: str = ""


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """Latencies of one kind of operation, drawn as a histogram with its percentiles marked."""

    name: str
    histogram: Histogram
    marks: tuple[tuple[str, float], ...] = ()  # name, milliseconds


@dataclass(frozen=True, slots=True, eq=False)
class Section:
    """A part of the page under a heading of its own; ``anchor`` is where links to it lead."""

    anchor: str
    title: str
    text: str = ""
    tables: tuple[Table, ...] = ()
    spreads: tuple[Spread, ...] = ()
    charts: tuple[Chart, ...] = ()
    notes: tuple[str, ...] = ()
    details: tuple[str, tuple[str, ...]] = ("", ())  # folded: what it is, its lines


@dataclass(frozen=True, slots=True)
class Phase:
    """A part of the measurement that is shown on the time line, as a round or a pulse."""

    name: str
    windows: tuple[Window, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Lead:
    """What stands at the top instead of the diagnosis' own verdict, which follows as what the rules say.

    Attributes:
        kind: what the page is of, as ``probe``.
        headline: the answer in a sentence.
        answers: questions and what is said to them.
        facts: name and value.
        rules: what the rules looked at, said where their findings begin.
    """

    kind: str
    headline: str
    answers: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    sections: tuple[Section, ...]
    phases: tuple[Phase, ...] = ()
    rules: str = ""
