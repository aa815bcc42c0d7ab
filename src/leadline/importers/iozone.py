"""iozone: rates of reads and writes of one file by record size.

Reads:
    The tables of ``iozone`` and ``iozone -a`` of versions 3.2 to 3.5 (rates in kB/s, or with ``-O`` in operations per
    second), several runs in one file. Of tests with threads (``-t``) nothing.

Sample:
    .. code-block:: text

        O_DIRECT feature enabled
        Command line used: ./iozone -e -I -a -s 100M -r 4k -i 0 -i 1 -i 2 -f /mnt/pg/t
        Output is in kBytes/sec
                                                                  random    random     bkwd    record    stride
                  kB  reclen    write  rewrite    read    reread    read     write     read   rewrite      read
              102400       4     3044     3144     8570     8573     8067     4437

Lost:
    Without ``-I`` (direct) or ``-o`` (synced writes) the page cache was measured: only the rate is kept, and no
    latency. The functions of the C library (fwrite, fread) are always buffered. Tables for spreadsheets (``-R``).

Units:
    kB are 1024 bytes. The latency is the record by the rate, since iozone asks for one record after the other.

Sources:
    iozone(1); iozone.c (``splash`` lines, ``store_value``, printed columns).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns, bad_line

META = ImporterMeta(
    tool="iozone",
    marks=("reclen",),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "kBytes/sec": Field("job_mib_per_s", "kib_per_s"),
        "ops/sec": Field("job_iops", "per_s"),
        "reclen / kBytes/sec": Field("job_latency_ms", "s"),
    },
    record="iozone -I -o -s 1g -r 8k -i 0 -i 2 -f FILE_ON_THE_DISK > iozone.txt",
)
# The columns in their order, and what each does.
_COLUMNS = (
    ("write", "write"),
    ("rewrite", "write"),
    ("read", "read"),
    ("reread", "read"),
    ("random read", "read"),
    ("random write", "write"),
    ("backward read", "read"),
    ("record rewrite", "write"),
    ("stride read", "read"),
    ("fwrite", ""),
    ("frewrite", ""),
    ("fread", ""),
    ("freread", ""),
)
_HEADS = re.compile(r"\s*[kK]B\s+reclen\s+write\s+rewrite\s+read\s+reread\b[ a-z]*")
_ROW = re.compile(r"\s*\d{1,15}\s+\d{1,9}(?:\s+\d{1,12}){1,13}\s*")
_UNIT = re.compile(r"\s*Output is in (\S+)\s*")
_COMMAND = re.compile(r"\s*Command line used: (.*)")
_PLACE = re.compile(r"(?:^|\s)-f ?(\S+)")
_BEGIN = re.compile(r"\s*Iozone: Performance Test of File I/O\s*")
_SPLASH = re.compile(
    r"\s*|\s*(?:Version|Compiled for|Build:|Contributors|Run began|Include|Auto Mode|File size|Record Size|Using"
    r"|Time Res|Processor cache|File stride|Setting|Excel|iozone test|Max|Cache|Purge|No retest|Microseconds|Children"
    r"|random\s|Performing|Stonewall|Mode).*|\s*[A-Z][\w. ]+(?:, [A-Z][\w. ]+)+[,.]?\s*"
    r"|.{0,120}[#$] ?(?:sudo )?\S*iozone .*"
)
_NEAR = 3  # characters that a value may end beside its heading
_RATE_MAX = 1e12


@dataclass
class _Run:
    """One run: how it asked, and its values by record size and column."""

    is_direct: bool = False
    is_synced: bool = False
    is_ops: bool = False
    place: str = ""
    values: list[tuple[int, int, float]] = field(default_factory=list)  # record in kB, column, rate
    size_kb: int = 0


def sniff(source: Source) -> int:
    """Sure by the heads of its table."""
    return 93 if any(_HEADS.fullmatch(line) for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """A result and a sample per column and record size.

    Raises:
        InputError: no row, another unit, or a line that is none of iozone's.
    """
    builder = CaptureBuilder(source.name, "iozone", META.tool)
    runs = [run for run in _runs(source, builder) if run.values]
    if not runs:
        raise bad_line(source.name, 0, "no row", "a row of iozone below kB reclen write rewrite read reread")
    for number, run in enumerate(runs, 1):
        for record_kb, column, rate in run.values:
            test = (record_kb, column, rate)
            _add(builder, request, (run, f" {number}" if len(runs) > 1 else ""), test, source.mtime_ns)
        if not run.is_direct:
            builder.warn(
                "page-cache",
                "a run without -I measured the page cache: its rates say nothing of the disk"
                + (", but those of writes, which were synced (-o)" if run.is_synced else ""),
            )
    builder.warn("no-times", "rows have no time: they are taken to end when the file was last written")
    return builder.build(clock_known=False)


def _runs(source: Source, builder: CaptureBuilder) -> list[_Run]:
    runs = [_Run()]
    ends: list[int] = []
    text = source.text()
    lines = text.splitlines()
    for index, line in enumerate(lines):
        folded = line.strip().casefold()
        if _BEGIN.fullmatch(line):
            runs.append(_Run())
            ends = []
        elif folded.startswith(("o_direct", "vxfs advanced")):
            runs[-1].is_direct = folded.endswith("enabled")
        elif folded == "sync mode." or folded.startswith("sync mode"):
            runs[-1].is_synced = True
        elif unit := _UNIT.fullmatch(line):
            if unit[1].casefold() not in ("kbytes/sec", "ops/sec"):
                raise bad_line(source.name, index, line, "kBytes/sec or ops/sec (without -N)")
            runs[-1].is_ops = unit[1].casefold() == "ops/sec"
        elif command := _COMMAND.fullmatch(line):
            place = _PLACE.search(command[1])
            runs[-1].place = place[1] if place else ""
        elif _HEADS.fullmatch(line):
            ends = [match.end() for match in re.finditer(r"\S+", line)]
        elif ends and _ROW.fullmatch(line) and index == len(lines) - 1 and not text.endswith("\n"):
            builder.warn("cut", "the last row has no end and was left out")
        elif ends and _ROW.fullmatch(line) and _take_row(runs[-1], line, ends):
            continue
        elif not _SPLASH.fullmatch(line):
            raise bad_line(source.name, index, line, "a line of iozone")
    return runs


def _take_row(run: _Run, line: str, ends: list[int]) -> bool:
    """A row, whose values belong to the headings that end where they do; False where one belongs to none."""
    cells = list(re.finditer(r"\d+", line))
    shift = cells[1].end() - ends[1]
    values: list[tuple[int, int, float]] = []
    for cell in cells[2:]:
        column = min(range(2, len(ends)), key=lambda place: abs(ends[place] + shift - cell.end()))
        rate = float(cell[0])
        if abs(ends[column] + shift - cell.end()) > _NEAR or column - 2 >= len(_COLUMNS) or rate > _RATE_MAX:
            return False
        values.append((int(cells[1][0]), column - 2, rate))
    run.size_kb = int(cells[0][0])
    run.values.extend(one for one in values if one[2] > 0 and one[0] > 0)
    return True


def _add(
    builder: CaptureBuilder, request: Request, run_of: tuple[_Run, str], test: tuple[int, int, float], end_ns: int
) -> None:
    """The result and the sample of a column in a row."""
    run, label = run_of
    record_kb, column, rate = test
    name, way = _COLUMNS[column]
    per_s = rate if run.is_ops else rate / record_kb
    bytes_per_s = per_s * record_kb * 1024
    is_measured = bool(way) and (run.is_direct or (run.is_synced and way == "write"))
    latency_ms = factor("s", "ms") / per_s if is_measured else NAN
    operation = ("open_sync" if run.is_synced and way == "write" else way) if is_measured else f"buffered {name}"
    job = f"{name} {record_kb} kB {run.place}".strip() + label
    columns = {
        "job_latency_ms": [latency_ms],
        "job_iops": [per_s if is_measured else NAN],
        "job_mib_per_s": [bytes_per_s / 2**20],
    }
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    add_columns(builder, request, entity, np.array([end_ns]), columns, interval_s=NAN)
    latencies = {"mean": latency_ms} if is_measured else {}
    workload = {"bs": f"{record_kb}k", "size": f"{run.size_kb}k"} | ({"filename": run.place} if run.place else {})
    builder.results.append(
        Result(
            META.tool,
            job,
            (Operation(operation, per_s, bytes_per_s, latency_ms=latencies),),
            workload=workload,
            source=builder.info.name,
        )
    )
