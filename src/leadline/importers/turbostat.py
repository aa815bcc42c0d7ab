"""turbostat: how busy CPUs are, at what frequency, in which sleep states, and the power they draw.

Reads:
    What ``turbostat`` prints again and again (4.0 of 2014 and later), whole (a row for the machine and one for each
    CPU) or ``--Summary``, with any choice of columns; also with a time before each line, as pgbench-tools keeps it.

Sample:
    .. code-block:: text

        Time_Of_Day_Seconds	Core	CPU	Avg_MHz	Busy%	Bzy_MHz	TSC_MHz	IRQ	PkgWatt
        1643720006.332280	-	-	2040	56.34	3620	3394	1463085	85.30
        1643720006.330357	0	0	4003	100.00	4003	3394	39693	85.30

Lost:
    What it prints once about the processor. What has no canonical metric (Bzy_MHz, IRQ, PkgWatt, the sleep states) is
    kept as ``raw.turbostat``.

Units:
    Busy% is the time in C0, whatever the frequency. Times are the ends of intervals: of a column Time_Of_Day_Seconds,
    or printed before the line; without both, intervals have 5 s, the default, or the ``sec`` that is printed.

Sources:
    Linux, tools/power/x86/turbostat/turbostat.8 and turbostat.c. Outputs in public notes of others. pgbench-tools,
    power-intel.log.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import EPOCH_S_MAX, EPOCH_S_MIN
from leadline.formats.printed import number_of
from leadline.formats.stamps import YEARS
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="turbostat",
    marks=("bzy_mhz",),
    layers=(Layer.GUEST,),
    fields={"Busy%": Field("guest_cpu_busy_pct", "pct")},
    record="turbostat --quiet --enable Time_Of_Day_Seconds --interval 1 > turbostat.txt",
)

_PLACES = frozenset({"Package", "Die", "Node", "Core", "CPU", "APIC", "X2APIC", "usec", "Time_Of_Day_Seconds"})
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:[.,]\d{1,6})?)\s+")
_INTERVAL = re.compile(r"(\d{1,7}\.\d{1,9}) sec")
_CELL = re.compile(r"-?\d{1,20}(?:\.\d{1,9})?")
_DEFAULT_S = 5.0  # Source: turbostat.8, --interval
_MACHINE = "all"


@dataclass(slots=True)
class _Printed:
    """The rows of a recording and what dates them."""

    table: SampleTable | None = None
    columns: list[str] = field(default_factory=list)
    moments: list[int | None] = field(default_factory=list)  # UTC nanoseconds of the samples; None: not printed
    interval_s: float = _DEFAULT_S
    has_local_times: bool = False
    left_out: int = 0


def sniff(source: Source) -> int:
    """Sure by its heading."""
    return 94 if any(_is_heading(line.split()) for line in source.head_uncut.splitlines()[:2000]) else 0


def read(source: Source, request: Request) -> Capture:
    """The machine and its CPUs.

    Raises:
        InputError: no row of numbers below the heading.
    """
    builder = CaptureBuilder(source.name, "turbostat", META.tool)
    lines = source.lines()
    if lines and not source.text().endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    printed = _Printed()
    for line in lines:
        _take(printed, line, request)
    table = printed.table
    if table is None or not table.moments:
        raise InputError(
            source.name,
            found="no row of numbers below the heading",
            expected="Busy% and Bzy_MHz, and below them a row for each interval",
            advice=f"Record it with: {META.record}",
        )
    if printed.left_out:
        builder.warn("left-out", "rows that do not fit their heading were left out", printed.left_out)
    times, is_known = _times(printed, source, request, builder)
    emit(table, times, TableScheme("turbostat", META.fields, _entity), builder, request)
    return builder.build(clock_known=is_known)


def _is_heading(words: list[str]) -> bool:
    return "Busy%" in words and "Bzy_MHz" in words


def _entity(group: str, item: str) -> Entity | None:
    del group
    if item == _MACHINE:
        return UNNAMED_GUEST
    return Entity(EntityKind.CPU, item, UNNAMED_GUEST) if item.isdecimal() else None


def _take(printed: _Printed, line: str, request: Request) -> None:
    """Take one line: a heading, a row or the length of an interval."""
    stamp = _STAMP.match(line)
    words = (line[stamp.end() :] if stamp is not None else line).split()
    if _is_heading(words):
        if printed.table is None or words != printed.columns:
            printed.columns = words
            names = tuple(word for word in words if word not in _PLACES)
            if printed.table is None:
                printed.table = SampleTable("CPU", names)
        return
    if (interval := _INTERVAL.fullmatch(line.strip())) is not None and float(interval[1]) > 0:
        printed.interval_s = float(interval[1])
    if printed.table is None or not words or not (words[0][:1].isdigit() or words[0][:1] == "-"):
        return
    cells = dict(zip(printed.columns, words, strict=False))
    busy_pct = _number(cells.get("Busy%", ""))
    item = cells.get("CPU", _MACHINE if "Core" not in cells else f"core {cells['Core']}")
    item = _MACHINE if item in {"-", "core -"} else item
    if len(words) == 2 and words[1] == "sec":
        return
    is_place = item == _MACHINE or item.removeprefix("core ").isdecimal()
    if len(words) > len(printed.columns) or not 0 <= busy_pct <= 110 or not is_place:
        printed.left_out += 1
        return
    before = len(printed.table.moments)
    printed.table.add(0, item, [_number(cells.get(name, "")) for name in printed.table.columns])
    if len(printed.table.moments) > before:
        printed.moments.append(_moment(printed, stamp, cells, request))


def _number(text: str) -> float:
    return number_of(text) if _CELL.fullmatch(text) else math.nan


def _moment(printed: _Printed, stamp: re.Match[str] | None, cells: dict[str, str], request: Request) -> int | None:
    """When a sample ended, UTC nanoseconds; None where that is not printed."""
    epoch_s = _number(cells.get("Time_Of_Day_Seconds", ""))
    if EPOCH_S_MIN < epoch_s < EPOCH_S_MAX:
        return round(epoch_s * 1e6) * 1000
    if stamp is None:
        return None
    try:
        moment = datetime.fromisoformat(stamp[1].replace(",", "."))
    except ValueError:
        return None
    if moment.year not in YEARS:
        return None
    printed.has_local_times = True
    return to_ns(moment, request)


def _times(
    printed: _Printed, source: Source, request: Request, builder: CaptureBuilder
) -> tuple[NDArray[np.int64], bool]:
    """The times of the samples, UTC nanoseconds, and whether they are known for sure."""
    known = [moment for moment in printed.moments if moment is not None]
    if len(known) < len(printed.moments):
        shown = f"{printed.interval_s:g} s"
        builder.warn(
            "no-times", f"samples without times were taken as {shown} apart, the last at the file's last change"
        )
        return synthetic_times(len(printed.moments), printed.interval_s, source.mtime_ns), False
    if printed.has_local_times and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        return np.array(known, dtype=np.int64), False
    return np.array(known, dtype=np.int64), True
