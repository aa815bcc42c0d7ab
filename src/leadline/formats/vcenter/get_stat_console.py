"""Rows of PowerCLI's Get-Stat as PowerShell prints objects: a table with dashes under its headings, or a list.

Source: PowerShell documentation, Format-Table, Format-List. Columns of numbers are aligned right, others left; what
does not fit ends in an ellipsis (``...``, from version 6 on ``…``).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import pairwise

from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.formats.vcenter.counters import HOST_COUNTERS, STORE_COUNTERS, VM_COUNTERS
from leadline.formats.vcenter.get_stat import ENTITY_COLUMNS, StatRow, row_of
from leadline.formats.vcenter.numbers import bad_line, cell_number

_RULE = re.compile(r"[ \t]*-{2,}(?:[ \t]+-{2,})+[ \t]*")
_GROUP = re.compile(r"\s{0,8}(\w{2,20}): (\S.{0,200})")
_PAIR = re.compile(r"([A-Za-z]\w{1,30}) {0,30}:(?: (.{0,4000}))?")
_ELLIPSES = ("...", "…")
_NARROW = "record with: Get-Stat ... | Export-Csv -NoType stat.csv"
_ENDINGS = (".average", ".summation", ".latest", ".maximum", ".minimum", ".none")
Span = tuple[int, int]


def is_console_table(text: str) -> bool:
    """Whether a table of Get-Stat's properties is in a text."""
    return any(True for _ in _headings(text.splitlines()))


def _headings(lines: list[str]) -> Iterator[int]:
    """Where headings are, each above a line of dashes."""
    for number, (above, below) in enumerate(pairwise(lines)):
        if _RULE.fullmatch(below) and {"metricid", "timestamp", "value"} <= set(above.casefold().split()):
            yield number


def is_console_list(text: str) -> bool:
    """Whether a list of Get-Stat's properties is in a text."""
    keys: set[str] = set()
    for line in text.splitlines()[:200]:
        pair = _PAIR.fullmatch(line)
        if pair is not None:
            keys.add(pair[1].casefold())
    return {"metricid", "timestamp", "value"} <= keys


def table_rows(text: str, source: Source, builder: CaptureBuilder) -> Iterator[StatRow]:
    """The samples of printed tables.

    Raises:
        InputError: a line is no row.
    """
    lines = text.splitlines()
    headings = set(_headings(lines))
    names: list[str] = []
    spans: list[Span] = []
    group = ("", "")
    for number, line in enumerate(lines):
        if number in headings:
            names = line.casefold().split()
        elif number - 1 in headings:
            spans = [match.span() for match in re.finditer(r"-{2,}", line)]
            if len(spans) != len(names):
                raise bad_line(source, number + 1, f"{len(spans)} columns", f"{len(names)}, as the headings have")
        elif (match := _GROUP.fullmatch(line)) is not None and match[1].casefold() in ENTITY_COLUMNS:
            group = (match[1].casefold(), match[2].strip())
        elif line.strip() and not line.lstrip().startswith("PS "):
            if not spans:
                raise bad_line(source, number + 1, repr(line.strip()[:40]), "the headings MetricId, Timestamp, Value")
            if number == len(lines) - 1 and not text.endswith(("\n", "\r")) and len(line.rstrip()) < spans[-1][0]:
                builder.warn("cut", "the last line has no end and was left out")
                return
            known = dict(zip(names, _cells(line, spans), strict=True))
            if group[0]:
                known.setdefault(*group)
            yield _completed(row_of(known, number + 1), source, builder)


def _cells(line: str, spans: list[Span]) -> list[str]:
    """The text of each column: words that stand under its dashes, and those next to them."""
    words = [match.span() for match in re.finditer(r"\S+", line)]
    owners: list[int | None] = []
    for start, end in words:
        under = [index for index, (first, past) in enumerate(spans) if start < past and end > first]
        owners.append(under[0] if under else None)
    for index, (start, _) in enumerate(words):  # further words of a text that is aligned left
        if owners[index] is None and index and start - words[index - 1][1] == 1:
            owners[index] = owners[index - 1]
    for index in range(len(words) - 2, -1, -1):  # and of one that is aligned right
        if owners[index] is None:
            owners[index] = owners[index + 1]
    taken: list[list[str]] = [[] for _ in spans]
    for (start, end), owner in zip(words, owners, strict=True):
        taken[len(spans) - 1 if owner is None else owner].append(line[start:end])
    return [" ".join(one) for one in taken]


def _completed(row: StatRow, source: Source, builder: CaptureBuilder) -> StatRow:
    """A row whose cut counter is completed where only one counter begins so."""
    for name in ("timestamp", "value"):
        if getattr(row, name).endswith(_ELLIPSES) or not getattr(row, name):
            raise bad_line(source, row.line, f"no whole {name}", f"a table wide enough; {_NARROW}")
    if cell_number(row.value) is None:
        raise bad_line(source, row.line, f"the value {row.value[:40]!r}", "a number")
    if row.entity.endswith(_ELLIPSES) or row.instance.endswith(_ELLIPSES):
        builder.warn("truncated", f"names were cut by the console: two that begin alike are one here; {_NARROW}")
    if not row.metric.endswith(_ELLIPSES):
        return row
    begin = row.metric.rstrip(".…").casefold()
    fitting = sorted({name for table in (VM_COUNTERS, HOST_COUNTERS, STORE_COUNTERS) for name in table
                      if name.startswith(begin)})  # fmt: skip
    if len(fitting) != 1:
        raise bad_line(source, row.line, f"the counter {row.metric!r}", f"a whole name; {_NARROW}")
    builder.warn("truncated-counter", f"{row.metric} was cut by the console and taken for {fitting[0]}; {_NARROW}")
    return replace(row, metric=fitting[0])


def list_rows(text: str, source: Source, builder: CaptureBuilder) -> Iterator[StatRow]:
    """The samples of a printed list; the last one only where it is whole.

    Raises:
        InputError: a line is no property.
    """
    known: dict[str, str] = {}
    begin = 1
    lines = text.splitlines()
    for number, line in enumerate(lines, 1):
        pair = _PAIR.fullmatch(line.rstrip())
        name = pair[1].casefold() if pair else ""
        if known and (not line.strip() or name in known):
            yield from _listed(known, begin, source, builder)
            known = {}
        if pair:
            if not known:
                begin = number
            known[name] = (pair[2] or "").strip()
        elif line.strip() and not (known and line.startswith("   ")) and not line.startswith("PS "):
            raise bad_line(source, number, repr(line.strip()[:40]), "a property, such as MetricId : cpu.usage.average")
    if known and ("metricid" not in known or "value" not in known or not text.endswith(("\n", "\r"))):
        builder.warn("cut", "the last sample is not whole and was left out")
    elif known:
        yield from _listed(known, begin, source, builder)


def _listed(known: dict[str, str], line: int, source: Source, builder: CaptureBuilder) -> Iterator[StatRow]:
    if "value" in known and "metricid" in known:
        yield _completed(row_of(known, line), source, builder)
    else:
        raise bad_line(source, line, "a sample without its value or counter", "MetricId, Timestamp and Value")
