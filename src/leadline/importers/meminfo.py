"""Logs of Linux' ``/proc/meminfo`` with one value per line, as pgbench-tools and similar wrappers write.

Reads:
    Lines of an ISO time, a name of ``/proc/meminfo`` and its value, separated by tabs or spaces. (A copy of the file
    itself, alone or in blocks, is read as a pressure and load file.)

Sample:
    .. code-block:: text

        2026-11-20 22:57:16.500000 MemTotal 24684134

Lost:
    Nothing; names without a canonical metric are kept as raw counters.

Units:
    KiB.

Sources:
    proc_meminfo(5); pgbench-tools, scripts for meminfo.
"""

from __future__ import annotations

import re
from datetime import datetime

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.linux.procfs import MEMORY_FIELDS, with_swap_used
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="/proc/meminfo log",
    marks=("memtotal",),
    layers=(Layer.GUEST,),
    fields=MEMORY_FIELDS,
    record="pgbench-tools with its meminfo recorder",
)

_LINE = re.compile(
    r"((?:19|20)\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s+"
    r"([A-Za-z][\w()]*):?\s+(\d{1,18})(?: kB)?\s*",
    re.ASCII,
)


def sniff(source: Source) -> int:
    """Sure when the first lines have the form and one of them is the memory's total."""
    lines = source.head_text.splitlines()[:20]
    return 90 if lines and all(map(_LINE.fullmatch, lines[:-1])) and any("\tMemTotal" in line for line in lines) else 0


def read(source: Source, request: Request) -> Capture:
    """The guest's memory series.

    Raises:
        InputError: a line in the middle has another form.
    """
    builder = CaptureBuilder(source.name, "meminfo", META.tool)
    samples: list[tuple[datetime, dict[str, float]]] = []
    text = source.text()
    lines = text.splitlines()
    stamp = ""
    for index, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None or (index == len(lines) and text[-1:] not in {"\n", "\r"}):
            if index == len(lines):
                builder.warn("cut", "the last line is cut and was left out")
            elif line.strip():
                raise _refused(source, index, line)
            continue
        if match[1] != stamp or match[2] in samples[-1][1]:
            stamp = match[1]
            samples.append((_moment(stamp, source, index), {}))
        samples[-1][1][match[2]] = float(match[3])
    if not samples:
        raise _refused(source, 1, "no sample")
    _emit(samples, builder, request)
    zoned = all(moment.tzinfo is not None for moment, _ in samples) or request.timezone is not None
    if not zoned:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    total_kib = samples[0][1].get("MemTotal")
    memory_mib = None if total_kib is None else total_kib / 1024
    builder.inventory.add(UNNAMED_GUEST, source.name, memory_mib=memory_mib)
    return builder.build(clock_known=zoned)


def _emit(samples: list[tuple[datetime, dict[str, float]]], builder: CaptureBuilder, request: Request) -> None:
    rows = [with_swap_used(values) for _, values in samples]
    names = tuple(dict.fromkeys(name for row in rows for name in row))
    table = SampleTable("", names)
    for index, row in enumerate(rows):
        table.add(index, "", [row.get(name, float("nan")) for name in names])
    times = np.array([to_ns(moment, request) for moment, _ in samples], dtype=np.int64)
    emit(table, times, TableScheme("meminfo", META.fields, lambda group, item: UNNAMED_GUEST), builder, request)


def _moment(text: str, source: Source, index: int) -> datetime:
    try:
        return datetime.fromisoformat(text)
    except ValueError as error:
        raise _refused(source, index, text) from error


def _refused(source: Source, index: int, text: str) -> InputError:
    return InputError(
        f"{source.name}:{index}",
        found=f"{text.strip()[:60]!r}",
        expected="a time, a name and a number of KiB",
        advice="The file is damaged or was edited; record it again, or cut the bad part out.",
    )
