"""Pressure stall information, load averages and memory of Linux, as copies of the kernel's own files.

Reads:
    A recording of blocks: a line ``# TIME`` (ISO, with zone), then for each file ``## PATH`` and its contents, with
    ``/proc/pressure/cpu``, ``io``, ``memory``, ``/proc/loadavg``, ``/proc/meminfo``, ``/proc/diskstats``,
    ``/proc/stat``, ``/proc/vmstat``, ``/proc/net/dev``; ``leadline collect linux`` writes it. Also a copy of one of the
    first five alone, and a line of ``uptime``: one sample, at the time the file was last written.

Sample:
    .. code-block:: text

        # 2026-11-20T22:58:16.990+00:00
        ## /proc/loadavg
        0.87 0.76 0.39 1/92 7877
        ## /proc/pressure/io
        some avg10=2.37 avg60=3.69 avg300=6.18 total=63397862

Lost:
    Nothing of a recording; the averages over 60 and 300 s and the totals are kept as raw counters. A pressure file
    alone does not say of which resource it is: the file's name must. Partitions, which are counted with their disk, the
    loopback interface, and intervals in which a counter fell.

Units:
    Percent of time over the last 10 s, microseconds since boot (``total``), KiB. Counters become rates between two
    blocks as sysstat computes them; sectors are 512 bytes, pages 4 KiB.

Sources:
    Linux kernel documentation, accounting/psi, admin-guide/iostats; proc_loadavg(5), proc_meminfo(5), proc_stat(5);
    uptime(1); sysstat, iostat.c.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from functools import partial
from pathlib import PurePosixPath
from typing import TypeVar

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.linux.procfs import (
    LOAD_FIELDS,
    MEMORY_FIELDS,
    PRESSURE_FIELDS,
    parse_load,
    parse_memory,
    parse_pressure,
)
from leadline.formats.linux.procfs_counters import FIELDS, PATHS, CounterTables, entity_in
from leadline.formats.sysstat.text import add_cpu_busy
from leadline.formats.tables import SampleTable, TableScheme, emit

META = ImporterMeta(
    tool="Linux pressure and load files",
    layers=(Layer.GUEST,),
    fields={**PRESSURE_FIELDS, **LOAD_FIELDS, **MEMORY_FIELDS, **FIELDS},
    record=(
        'while sleep 1; do echo "# $(date --iso-8601=ns)"; '
        "for f in /proc/loadavg /proc/pressure/* /proc/diskstats /proc/stat /proc/net/dev; "
        'do echo "## $f"; cat $f; done; done > psi.txt'
    ),
)

_TIME = re.compile(r"# ((?:19|20)\d\d-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?)\s*")
_UPTIME = re.compile(r"(?>.*?\bup )(?>.*?load averages?: )(\d+[.,]\d+),? (\d+[.,]\d+),? (\d+[.,]\d+)\s*", re.ASCII)
HOSTNAME, RELEASE = "/proc/sys/kernel/hostname", "/proc/sys/kernel/osrelease"
_COPIED = frozenset((*PATHS, HOSTNAME, RELEASE))
_PRESSURE_LINE = "some avg10="
_RESOURCES = ("cpu", "io", "memory")
_READERS: dict[str, Callable[[list[str]], dict[str, float]]] = {
    **{f"/proc/pressure/{name}": partial(parse_pressure, name) for name in _RESOURCES},
    "/proc/loadavg": lambda lines: _single(parse_load, lines),
    "/proc/meminfo": parse_memory,
    "uptime": lambda lines: _single(_uptime, lines),
}


def sniff(source: Source) -> int:
    """Sure by a block's first two lines; a copy of one file by its form."""
    lines = [line for line in source.head_text.splitlines()[:4] if line.strip()]
    if not lines:
        return 0
    if len(lines) > 1 and _TIME.fullmatch(lines[0]) and lines[1].startswith("## /proc/"):
        return 95
    return 90 if len(source.head) < 8192 and _alone(source) is not None else 0


def _alone(source: Source) -> str | None:
    """Which file a copy is of, None for no such copy; "?" for pressure of an unknown resource."""
    lines = [line for line in source.head_text.splitlines() if line.strip()]
    if lines and lines[0].startswith(_PRESSURE_LINE) and len(lines) <= 2:
        name = PurePosixPath(source.name).name.lower()
        resources = [resource for resource in _RESOURCES if re.search(rf"(?<![a-z]){resource}(?![a-z])", name)]
        return f"/proc/pressure/{resources[0]}" if len(resources) == 1 else "?"
    for kind in ("/proc/loadavg", "uptime", "/proc/meminfo"):
        if kind != "/proc/meminfo" or (lines and lines[0].startswith("MemTotal:")):
            try:
                _READERS[kind](lines)
            except ValueError:
                continue
            return kind
    return None


def read(source: Source, request: Request) -> Capture:
    """The guest's pressure, load and memory series.

    Raises:
        InputError: a block is not what its headings say, or no heading says what the file is.
    """
    builder = CaptureBuilder(source.name, "psi", META.tool)
    if source.head_text.lstrip().startswith("# "):
        samples, zoned = _blocks(source, request, builder)
    else:
        samples, zoned = [_Sample(source.mtime_ns, _copy(source))], False
        builder.warn("no-times", "the copy has no time; it was placed at the file's last change")
    names = tuple(dict.fromkeys(name for sample in samples for name in sample.values))
    table = SampleTable("", names)
    for sample in samples:
        table.add(sample.time_ns, "", [sample.values.get(name, float("nan")) for name in names])
    times = np.array(table.moments, dtype=np.int64)
    guest = _guest(samples, builder)
    emit(table, times, TableScheme("psi", META.fields, lambda group, item: guest, guest=guest), builder, request)
    _emit_counters(samples, guest, builder, request)
    return builder.build(clock_known=zoned, host=None if guest is UNNAMED_GUEST else guest.name)


def _guest(samples: list[_Sample], builder: CaptureBuilder) -> Entity:
    """The guest the recording names, with its kernel."""
    named = next((sample.copies for sample in samples if HOSTNAME in sample.copies), {})
    lines = named.get(HOSTNAME)
    if not lines:
        return UNNAMED_GUEST
    guest = Entity(EntityKind.GUEST, lines[0].strip())
    release = named.get(RELEASE, [""])[0].strip()
    builder.inventory.add(guest, builder.info.name, os_release=f"Linux {release}" if release else None)
    return guest


def _emit_counters(samples: list[_Sample], guest: Entity, builder: CaptureBuilder, request: Request) -> None:
    counters = CounterTables()
    for sample in samples:
        for path, lines in sample.copies.items():
            if path in PATHS:
                counters.add(sample.time_ns, path, lines)
    for table in counters.tables():
        scheme = TableScheme("procfs", FIELDS, partial(entity_in, guest), derive=add_cpu_busy, guest=guest)
        emit(table, np.array(table.moments, dtype=np.int64), scheme, builder, request)


@dataclass(slots=True)
class _Sample:
    """What one block holds."""

    time_ns: int
    values: dict[str, float] = field(default_factory=dict)
    copies: dict[str, list[str]] = field(default_factory=dict)


def _blocks(source: Source, request: Request, builder: CaptureBuilder) -> tuple[list[_Sample], bool]:
    """The samples of a recording, and whether all times have a zone."""
    text = source.text()
    lines = text.splitlines()
    starts = [i for i, line in enumerate(lines) if line.startswith("# ")]
    samples: list[_Sample] = []
    zoned = True
    for low, high in zip(starts, [*starts[1:], len(lines)], strict=True):
        final = high == len(lines)
        moment = _moment(lines[low])
        try:
            values, copies = _sections(lines[low + 1 : high])
        except _DamagedError as damage:
            if not (final and samples):
                at = low + 1 + damage.index
                raise _refused(source, f"{source.name}:{at + 1}", lines[at]) from None
            moment = None
        if moment is None and not final:
            builder.warn("left-out", f"left out: the block from line {low + 1} on, whose time cannot be read")
            continue
        if moment is None or (final and not text.endswith("\n")):
            if not samples:
                raise _refused(source, f"{source.name}:{low + 1}", lines[low])
            builder.warn("cut", "the last block is cut and was left out")
            continue
        zoned = zoned and moment.tzinfo is not None
        samples.append(_Sample(to_ns(moment, request), values, copies))
    if not any(sample.values or sample.copies for sample in samples):
        raise _refused(source, source.name, "no block with values")
    if not zoned and request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    return samples, zoned or request.timezone is not None


_T = TypeVar("_T")


class _DamagedError(ValueError):
    """A line of a block is none of its file's; ``index`` counts from the block's first."""

    def __init__(self, index: int) -> None:
        super().__init__(index)
        self.index = index


def _moment(line: str) -> datetime | None:
    """The time of a block's first line; None where it is damaged."""
    match = _TIME.fullmatch(line)
    try:
        return None if match is None else datetime.fromisoformat(match[1].replace(",", "."))
    except ValueError:
        return None


def _sections(lines: list[str]) -> tuple[dict[str, float], dict[str, list[str]]]:
    """The values of a block, and copies of counters.

    Raises:
        _DamagedError: a file's contents are not of its form.
    """
    values: dict[str, float] = {}
    copies: dict[str, list[str]] = {}
    path, contents = "", dict[int, str]()
    for index, line in enumerate([*lines, "## "]):
        if not line.startswith("## "):
            if line.strip():
                contents[index] = line
            continue
        kept = list(contents.values())
        if path in _READERS and kept:  # a file the kernel would not let us read leaves no contents
            values |= _parsed(_READERS[path], contents)
        elif path in _COPIED and kept:
            if path in PATHS:  # damage is found here, where a cut block can still be left out
                _parsed(partial(CounterTables().add, 0, path), contents)
            copies[path] = kept
        path, contents = line[3:].strip(), {}
    return values, copies


def _parsed(parse: Callable[[list[str]], _T], contents: dict[int, str]) -> _T:
    """What a file's lines hold.

    Raises:
        _DamagedError: one of them is damaged: the one without which the others can be read, else the first.
    """
    try:
        return parse(list(contents.values()))
    except ValueError:
        pass
    for index in contents:
        try:
            parse([line for other, line in contents.items() if other != index])
        except ValueError:
            continue
        raise _DamagedError(index)
    raise _DamagedError(min(contents))


def _copy(source: Source) -> dict[str, float]:
    kind = _alone(source)
    if kind in {None, "?"}:
        raise _refused(source, source.name, "pressure of a resource that is not named")
    lines = [line for line in source.lines() if line.strip()]
    try:
        return _READERS[str(kind)](lines)
    except ValueError as error:
        raise _refused(source, source.name, str(error)) from error


def _single(parse: Callable[[str], dict[str, float]], lines: list[str]) -> dict[str, float]:
    if len(lines) != 1:
        raise ValueError(f"{len(lines)} lines")
    return parse(lines[0])


def _uptime(line: str) -> dict[str, float]:
    match = _UPTIME.fullmatch(line)
    if match is None:
        raise ValueError(line)
    averages = (float(text.replace(",", ".")) for text in match.groups())
    return dict(zip(("loadavg.1m", "loadavg.5m", "loadavg.15m"), averages, strict=True))


def _refused(source: Source, where: str, text: str) -> InputError:
    del source
    return InputError(
        where,
        found=f"{text.strip()[:60]!r}",
        expected="blocks of `# TIME` and `## PATH`, or a copy named after its file, for instance pressure-io.txt",
        advice=f"Record it with: {META.record}",
    )
