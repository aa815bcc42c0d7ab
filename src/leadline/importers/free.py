"""Output of ``free``: memory and swap of a Linux machine at a moment, or again and again.

Reads:
    ``free`` with any of ``-b -k -m -g -h -w -t -l -s``, of procps 3.2 to 4 and BusyBox, one table or several.

Sample:
    .. code-block:: text

                       total        used        free      shared  buff/cache   available
        Mem:         8053804     1262704     5830864       60576      960236     6483996
        Swap:        2097152           0     2097152

Lost:
    When it was: tables are placed one second apart before the last change of the file. ``used`` and the line
    ``-/+ buffers/cache``, which follow from the others. Without ``-h`` the output does not say its unit; it is found by
    the numbers: KiB come in pages of four, a machine has between 256 MiB and 64 TiB.

Units:
    KiB, or what ``-b -m -g -h`` ask for: powers of 1024; with ``--si`` they would be taken 2 to 10 % too large.

Sources:
    free(1) of procps-ng; proc_meminfo(5).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer

META = ImporterMeta(
    tool="free",
    layers=(Layer.GUEST,),
    marks=("mem:",),
    fields={
        "Mem: free": Field("guest_memory_free_mib", "kib"),
        "Mem: available": Field("guest_memory_available_mib", "kib"),
        "Mem: buffers": Field("guest_memory_buffers_mib", "kib"),
        "Mem: cached": Field("guest_memory_cached_mib", "kib"),
        "Swap: used": Field("guest_swap_used_mib", "kib"),
    },
    record="free -w -s 1 -c 300 > free.txt",
)

_HEADING = re.compile(r"^[^\S\n]*+total\s+used\s+free\s+shared\b.*$", re.MULTILINE)
_NUMBER = re.compile(r"(\d{1,18}(?:[.,]\d{1,3})?)(?:([BKMGTP])i?B?)?", re.IGNORECASE)
_MIB_OF = {"B": 2**-20, "K": 2**-10, "M": 1.0, "G": 2.0**10, "T": 2.0**20, "P": 2.0**30}
_COLUMNS = {
    "free": "guest_memory_free_mib",
    "available": "guest_memory_available_mib",
    "buffers": "guest_memory_buffers_mib",
    "cached": "guest_memory_cached_mib",
    "cache": "guest_memory_cached_mib",
    "buff/cache": "guest_memory_cached_mib",
}
_PAGE_KIB = 4
_MIB_MIN, _MIB_MAX = 256.0, 64.0 * 2**20  # Judgement: no database server has less or more memory
_Row = dict[str, float]


def sniff(source: Source) -> int:
    """Sure by the heading with the line of memory below it."""
    text = source.head_text
    match = _HEADING.search(text)
    if match is None:
        return 0
    below = text[match.end() :].split("\n", 2)[1:2]
    return 91 if below and below[0].lstrip().startswith("Mem:") else 0


def read(source: Source, request: Request) -> Capture:
    """The guest's memory.

    Raises:
        InputError: a line is none of free's, or the unit cannot be told.
    """
    builder = CaptureBuilder(source.name, "free", META.tool)
    tables = list(_tables(source))
    if not any("total" in table for table in tables):
        raise _refused(source, None, "no line of memory")
    times = synthetic_times(len(tables), 1.0, source.mtime_ns)
    for metric in dict.fromkeys(name for table in tables for name in table if name != "total"):
        if request.wants(metric):
            values = np.array([table.get(metric, np.nan) for table in tables])
            builder.add_series(metric, UNNAMED_GUEST, times, values, interval_s=1.0)
    total_mib = max(table.get("total", 0.0) for table in tables)
    builder.inventory.add(UNNAMED_GUEST, source.name, memory_mib=round(total_mib, 1))
    builder.warn("no-times", "free prints no times: the last table is taken to be of when the file was last written")
    return builder.build(clock_known=False)


def _tables(source: Source) -> Iterator[_Row]:
    """Each table in MiB: the total of memory, and the values by metric."""
    table: _Row = {}
    columns: list[str] = []
    scale = 0.0
    for number, line in enumerate(source.lines(), start=1):
        words = line.split()
        if _HEADING.match(line):
            if table:
                yield table
            table, columns = {}, words
        elif not words or words[0] in {"-/+", "Total:", "Low:", "High:", "Comm:"}:
            continue
        elif words[0] in {"Mem:", "Swap:"} and columns:
            cells = [_NUMBER.fullmatch(word) for word in words[1:]]
            whole = [cell for cell in cells if cell is not None]
            if len(whole) != len(cells) or not 2 < len(whole) <= len(columns):
                raise _refused(source, number, repr(line.strip()[:60]))
            if words[0] == "Mem:":
                scale = scale or _unit_mib(whole)
                if not scale:
                    raise _refused(source, number, f"numbers of no unit that fits: {line.strip()[:60]!r}")
            values = [
                float(cell[1].replace(",", ".")) * (_MIB_OF[cell[2].upper()] if cell[2] else scale) for cell in whole
            ]
            table |= _row(words[0], dict(zip(columns, values, strict=False)))
        else:
            raise _refused(source, number, repr(line.strip()[:60]))
    if table:
        yield table


def _mib(cell: re.Match[str], scale: float) -> float:
    return float(cell[1].replace(",", ".")) * (_MIB_OF[cell[2].upper()] if cell[2] else scale)


def _row(kind: str, values: dict[str, float]) -> _Row:
    if kind == "Swap:":
        return {"guest_swap_used_mib": values["used"]}
    return {"total": values["total"]} | {_COLUMNS[name]: value for name, value in values.items() if name in _COLUMNS}


def _unit_mib(cells: list[re.Match[str]]) -> float:
    """What one is in MiB, by the numbers of the line of memory; 0 where none fits, 1 where units are printed."""
    if any(cell[2] for cell in cells):
        return 1.0
    numbers = [float(cell[1].replace(",", ".")) for cell in cells]
    in_pages = all(number % _PAGE_KIB == 0 for number in numbers)
    in_bytes = all(number % (_PAGE_KIB * 1024) == 0 for number in numbers)
    units = [*(("B",) if in_bytes else ()), *(("K",) if in_pages else ()), "M", "G"]
    fitting = [_MIB_OF[unit] for unit in units if _MIB_MIN <= numbers[0] * _MIB_OF[unit] <= _MIB_MAX]
    return fitting[0] if fitting else 0.0


def _refused(source: Source, line: int | None, problem: str) -> InputError:
    return InputError(
        source.name if line is None else f"{source.name}:{line}",
        found=problem,
        expected="what free prints",
        advice=f"Record it again: {META.record}",
    )
