"""nvidia-smi: how busy graphics processors are, and how full their memory is.

Reads:
    ``nvidia-smi --query-gpu=... --format=csv`` with any choice of columns, with and without units, once or again and
    again (``-l``), of one card or of several. Cards are told apart by ``index``, ``pci.bus_id``, ``uuid`` or
    ``serial``.

Sample:
    .. code-block:: text

        timestamp, index, utilization.gpu [%], memory.used [MiB], memory.total [MiB]
        2025/07/05 15:01:02.123, 0, 56 %, 20480 MiB, 49140 MiB
        2025/07/05 15:01:02.131, 1, 42 %, 20480 MiB, 49140 MiB

Lost:
    Columns of text. Columns of numbers without canonical metric (temperature, power, clocks, the time in which memory
    was read or written) are kept as ``raw.nvidia-smi``. Tables without their heading (``noheader``) are not recognised.
    What ``nvidia-smi`` prints without ``--query-gpu``.

Units:
    ``utilization.gpu`` is the share of the past sample period, 1/6 s to 1 s, in which a kernel ran. Times are local,
    without a zone. The rows of one turn are a few ms apart and count as one sample.

Sources:
    NVIDIA, nvidia-smi(1) and ``nvidia-smi --help-query-gpu``. Outputs in public notes of others.
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
from leadline.formats.printed import number_of
from leadline.formats.stamps import YEARS
from leadline.formats.tables import SampleTable, TableScheme, emit

_SHARE = "memory.used / memory.total"
META = ImporterMeta(
    tool="nvidia-smi",
    marks=("utilization.gpu", "memory.used"),
    layers=(Layer.HOST,),
    fields={"utilization.gpu": Field("gpu_util_pct", "pct"), _SHARE: Field("gpu_memory_used_pct", "pct")},
    record="nvidia-smi --query-gpu=timestamp,index,utilization.gpu,memory.used,memory.total,power.draw,temperature.gpu "
    "--format=csv -l 1 > gpu.csv",
)

_COLUMN = re.compile(r"([a-z][a-z0-9_.]{1,80})(?: \[(?:%|MiB|MB|W|MHz|us|ms|C)\])?", re.IGNORECASE)
_NUMBER = re.compile(r"(-?\d{1,15}(?:\.\d{1,6})?)(?: (?:%|MiB|MB|W|MHz|us|ms|C))?")
_ABSENT = re.compile(
    r"\[?(?:N/A|Not Supported|Unknown Error|Insufficient Permissions|GPU is lost|ERR!)\]?", re.IGNORECASE
)
_STAMP = re.compile(r"\d{4}/\d\d/\d\d \d\d:\d\d:\d\d(?:\.\d{1,6})?")
_INTERVAL = re.compile(r"(?:-l|--loop)(ms|-ms)?[ =](\d{1,7})\b")
_IDENTITIES = ("index", "pci.bus_id", "gpu_bus_id", "uuid", "gpu_uuid", "serial", "gpu_serial")
_TEXTS = frozenset(
    {"timestamp", "name", "gpu_name", "driver_version", "pstate", "vbios_version", "compute_mode", *_IDENTITIES}
)
_NEEDED = frozenset({"utilization.gpu", "memory.used"})
_SAME_TURN_NS = 100_000_000  # Judgement: rows of one turn are some ms apart, turns at least 1 s with -l
_DEFAULT_S = 1.0
_BUSY_MAX = 100.0


@dataclass(slots=True)
class _Smi:
    """The rows of a recording."""

    columns: list[str] = field(default_factory=list)
    table: SampleTable | None = None
    moments: list[int | None] = field(default_factory=list)  # UTC nanoseconds of the samples; None: not printed
    cards: set[str] = field(default_factory=set)  # seen in the sample
    row_count: int = 0
    left_out: int = 0


def sniff(source: Source) -> int:
    """Sure by its heading."""
    return 95 if any(_heading(line) for line in source.head_text.splitlines()[:200]) else 0


def read(source: Source, request: Request) -> Capture:
    """The cards of one computer.

    Raises:
        InputError: no row of numbers below the heading, or no column tells several cards apart.
    """
    builder = CaptureBuilder(source.name, "nvidia-smi", META.tool)
    text = source.text()
    lines = [line for line in text.splitlines() if line.strip()]
    if len(lines) > 2 and not text.endswith(("\n", "\r")):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    smi = _Smi()
    for line in lines:
        _take(smi, line, (source, request))
    if smi.table is None or not smi.row_count:
        raise InputError(
            source.name,
            found="no row of numbers below the heading",
            expected="a row of each card with utilization.gpu or memory.used",
            advice=f"Record it with: {META.record}",
        )
    if smi.left_out:
        builder.warn("left-out", "lines that are no row of their heading were left out", smi.left_out)
    times, is_known = _times(smi, source, request, builder)
    emit(smi.table, times, TableScheme("nvidia-smi", META.fields, _card), builder, request)
    return builder.build(clock_known=is_known)


def _heading(line: str) -> list[str]:
    """The columns of a heading; empty where the line is none."""
    if "utilization.gpu" not in line and "memory.used" not in line:
        return []
    matches = [_COLUMN.fullmatch(cell.strip()) for cell in line.split(",")]
    names = [match[1].casefold() for match in matches if match is not None]
    return names if len(names) == len(matches) == len(set(names)) and not _NEEDED.isdisjoint(names) else []


def _card(group: str, item: str) -> Entity | None:
    del group
    return Entity(EntityKind.ADAPTER, item, UNNAMED_GUEST)


def _take(smi: _Smi, line: str, of: tuple[Source, Request]) -> None:
    """Take one line: a heading or the row of a card."""
    source, request = of
    if names := _heading(line):
        values = [name for name in names if name not in _TEXTS]
        if smi.table is None:
            share = [_SHARE] if {"memory.used", "memory.total"} <= set(values) else []
            smi.columns, smi.table = names, SampleTable("GPU", (*values, *share))
        smi.left_out += names != smi.columns
        return
    cells = [cell.strip() for cell in line.split(",")]
    row = dict(zip(smi.columns, cells, strict=False))
    if smi.table is None or len(cells) != len(smi.columns) or not _is_row(row):
        smi.left_out += smi.table is not None
        return
    identity = next((name for name in _IDENTITIES if name in row), "")
    card = row.get(identity, "0")
    card = f"gpu{card}" if card.isdecimal() else card
    moment = _moment(row.get("timestamp", ""), request)
    is_new = card in smi.cards or not smi.cards
    if is_new:
        last = smi.moments[-1] if smi.moments else None
        if not identity and moment is not None and last is not None and 0 <= moment - last < _SAME_TURN_NS:
            raise InputError(
                source.name,
                found="rows a few ms apart that no column tells apart",
                expected="a column index, pci.bus_id or uuid where there are several cards",
                advice=f"Record it with: {META.record}",
            )
        smi.moments.append(moment)
        smi.cards.clear()
    smi.cards.add(card)
    smi.row_count += 1
    smi.table.add(len(smi.moments), card, [_value(row, name) for name in smi.table.columns])


def _is_row(row: dict[str, str]) -> bool:
    """Whether every cell of a number is one, or is said to be absent; and shares are at most 100 %."""
    values = [cell for name, cell in row.items() if name in _NEEDED or name == "memory.total"]
    if not all(_NUMBER.fullmatch(cell) or _ABSENT.fullmatch(cell) for cell in values):
        return False
    if any(not row[name] or len(row[name]) > 80 for name in _IDENTITIES if name in row):
        return False
    return not (_number(row.get("utilization.gpu", "")) > _BUSY_MAX or _value(row, _SHARE) > _BUSY_MAX)


def _value(row: dict[str, str], name: str) -> float:
    """The number of a column; NaN where it is not measured."""
    if name == _SHARE:
        used, total = _number(row.get("memory.used", "")), _number(row.get("memory.total", ""))
        return 100.0 * used / total if total > 0 else math.nan
    return _number(row.get(name, ""))


def _number(cell: str) -> float:
    match = _NUMBER.fullmatch(cell)
    return number_of(match[1]) if match else math.nan


def _moment(stamp: str, request: Request) -> int | None:
    """UTC nanoseconds of a printed time; None where it is none."""
    if _STAMP.fullmatch(stamp) is None:
        return None
    try:
        moment = datetime.fromisoformat(stamp.replace("/", "-"))
    except ValueError:
        return None
    return to_ns(moment, request) if moment.year in YEARS else None


def _times(smi: _Smi, source: Source, request: Request, builder: CaptureBuilder) -> tuple[NDArray[np.int64], bool]:
    """The times of the samples, UTC nanoseconds, and whether they are known for sure."""
    known = [moment for moment in smi.moments if moment is not None]
    if len(known) < len(smi.moments):
        loop = _INTERVAL.search(source.command)
        asked_s = (float(loop[2]) / 1000.0 if loop[1] else float(loop[2])) if loop else 0.0
        interval_s = asked_s or _DEFAULT_S
        builder.warn(
            "no-times",
            f"samples without times were taken as {interval_s:g} s apart, the last at the file's last change",
        )
        return synthetic_times(len(smi.moments), interval_s, source.mtime_ns), False
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
        return np.array(known, dtype=np.int64), False
    return np.array(known, dtype=np.int64), True
