"""iotop: which program reads and writes how much.

Reads:
    Text of ``iotop -b`` of both iotops (Python and C), with or without ``-o``, ``-t``, ``-k``, ``-P`` and ``-q``, and
    copies of its screen; one or many reports.

Sample:
    .. code-block:: text

        15:40:13 Total DISK READ:       240.86 K/s | Total DISK WRITE:        31.65 M/s
        15:40:13 Current DISK READ:     240.86 K/s | Current DISK WRITE:      32.12 M/s
            TIME  TID  PRIO  USER     DISK READ  DISK WRITE  SWAPIN      IO    COMMAND
        15:40:13  1071 be/4 root        0.00 B/s   26.84 M/s  0.00 % 95.20 %  dd if=/dev/zero of=/mnt/t bs=64k

Lost:
    The arguments of commands, which may hold passwords: the program remains. Programs that neither read nor wrote.
    Users, priorities, the shares of time (SWAPIN, IO), since newer kernels do not count them. Without ``-t`` reports
    are taken as 1 s apart, which is its own default. Amounts since its start (``-a``) are no rates and are refused.

Units:
    K, M and G per second are powers of 1024. "Current" ("Actual" in older versions) is what the disks did, "Total" what
    programs asked for.

Sources:
    iotop(8); iotop/ui.py (``format_bandwidth``) of iotop 0.6; view_batch.c of iotop-c.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, synthetic_times, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, bad_line
from leadline.formats.printed import number_of
from leadline.formats.tables import SampleTable, TableScheme, emit

if TYPE_CHECKING:
    from numpy.typing import NDArray

META = ImporterMeta(
    tool="iotop",
    marks=("disk read", "/s "),
    layers=(Layer.GUEST,),
    fields={
        "DISK READ": Field("process_read_kib_per_s", "kib_per_s"),
        "DISK WRITE": Field("process_write_kib_per_s", "kib_per_s"),
        "Current DISK READ": Field("guest_block_in_kib_per_s", "kib_per_s"),
        "Current DISK WRITE": Field("guest_block_out_kib_per_s", "kib_per_s"),
    },
    record="iotop -b -o -t -d 5 -n 60 > iotop.txt",
)
_READ = r"(?P<read>\d{1,9}(?:\.\d{1,3})?) (?P<read_unit>[BKMGT])/s"
_WRITTEN = r"(?P<written>\d{1,9}(?:\.\d{1,3})?) (?P<written_unit>[BKMGT])/s"
_CLOCK = r"\s*(?:(?P<clock>\d\d:\d\d:\d\d)\s+)?"
_TOTAL = re.compile(
    rf"{_CLOCK}(?P<kind>Total|Current|Actual) DISK READ\s?:\s{{0,20}}{_READ}\s{{0,20}}\|\s{{0,20}}"
    rf"(?:Total|Current|Actual) DISK WRITE\s?:\s{{0,20}}{_WRITTEN}\s*"
    r"(?:\|\s{0,8}(?P<date>[A-Z][a-z]{2} [A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d \d{4})\s*)?"
)
_HEADS = re.compile(r"\s*(?:TIME\s+)?(?:TID|PID)\s+PRIO\s+USER\s+DISK READ>?\s+DISK WRITE>?\s.*COMMAND\s*")
_ROW = re.compile(
    rf"{_CLOCK}(?P<id>\d{{1,10}})\s{{1,8}}(?:be|rt|idle|\?)\S{{0,8}}\s{{1,8}}\S{{1,40}}\s{{1,20}}{_READ}\s{{1,20}}"
    rf"{_WRITTEN}\s{{1,20}}(?:\?unavailable\?\s{{1,4}}|(?:[\d.]{{1,7}} %\s{{1,8}}){{0,2}})(?P<command>\S.*)"
)
_NOISE = re.compile(
    r"\s*|.*(?:task_delayacct|CONFIG_TASK_DELAY_ACCT|Netlink error|keys:|sort:|any: refresh).*|\s*\^C\s*"
)
_SIZES = {"B": 1 / 1024, "K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3}
_NAME_MAX = 40  # characters of a program's name


@dataclass(slots=True)
class _Report:
    """One report, in KiB per second: read and written, by the disks and by each program."""

    clock: str | None
    moment: datetime | None = None
    disks: tuple[float, float] = (NAN, NAN)
    processes: dict[str, tuple[float, float]] = field(default_factory=dict)


def sniff(source: Source) -> int:
    """Sure by the line of totals or by its heads; rows alone are an excerpt."""
    lines = source.head_text.splitlines()
    if any(_TOTAL.fullmatch(line) or _HEADS.fullmatch(line) for line in lines):
        return 93
    return 90 if sum(_ROW.fullmatch(line) is not None for line in lines) > 1 else 0


def read(source: Source, request: Request) -> Capture:
    """Reads and writes of each program, and of the machine's disks.

    Raises:
        InputError: no report, or a line that is none of iotop's.
    """
    builder = CaptureBuilder(source.name, "iotop", META.tool)
    reports = _reports(source, builder)
    if not any(report.processes or report.disks[0] >= 0 for report in reports):
        raise bad_line(source.name, 0, "no report", "the totals and rows of iotop -b")
    times = _times(reports, source, request, builder)
    machine = SampleTable("", ("Current DISK READ", "Current DISK WRITE"))
    processes = SampleTable("process", ("DISK READ", "DISK WRITE"))
    active = {name for report in reports for name, amounts in report.processes.items() if any(amounts)}
    for index, report in enumerate(reports):
        machine.add(index, "", list(report.disks))
        for process, amounts in report.processes.items():
            if process in active:
                processes.add(index, process, list(amounts))

    def entity(group: str, item: str) -> Entity:
        return Entity(EntityKind.PROCESS, item, UNNAMED_GUEST) if group else UNNAMED_GUEST

    scheme = TableScheme("iotop", META.fields, entity)
    emit(machine, times, scheme, builder, request)
    emit(processes, times[np.array(processes.moments, dtype=np.intp)], scheme, builder, request)
    return builder.build(clock_known=False)


def _reports(source: Source, builder: CaptureBuilder) -> list[_Report]:
    reports: list[_Report] = []
    text = source.text()
    lines = text.splitlines()
    for index, line in enumerate(lines):
        if total := _TOTAL.fullmatch(line):
            if total["kind"] == "Total":
                reports.append(_Report(total["clock"], _moment(total["date"])))
            elif reports:
                reports[-1].disks = _amounts(total)
        elif row := _ROW.fullmatch(line):
            _take_row(reports, row)
        elif _HEADS.fullmatch(line) or _NOISE.fullmatch(line):
            continue
        elif index == len(lines) - 1 and not text.endswith(("\n", "\r")):
            builder.warn("cut", "the last line is cut and was left out")
        else:
            raise bad_line(source.name, index, line, "a report of iotop -b, with amounts per second")
    return reports


def _take_row(reports: list[_Report], row: re.Match[str]) -> None:
    """A program of the report; without totals above, its number coming again or a later time begins another."""
    name = f"{_program(row['command'])}[{row['id']}]"
    is_later = bool(reports and row["clock"] and reports[-1].clock and row["clock"] != reports[-1].clock)
    if not reports or name in reports[-1].processes or (is_later and reports[-1].processes):
        reports.append(_Report(row["clock"]))
    reports[-1].processes[name] = _amounts(row)


def _amounts(match: re.Match[str]) -> tuple[float, float]:
    """What was read and written, KiB per second."""
    return (
        number_of(match["read"]) * _SIZES[match["read_unit"]],
        number_of(match["written"]) * _SIZES[match["written_unit"]],
    )


def _moment(text: str | None) -> datetime | None:
    """A time as the iotop in C prints it; None where there is none."""
    try:
        return datetime.strptime(text, "%a %b %d %H:%M:%S %Y") if text else None  # noqa: DTZ007 - local, as printed
    except ValueError:
        return None


def _program(command: str) -> str:
    """The program of a command, without path and arguments; kernel threads without what they are at.

    >>> _program("/usr/lib/postgresql/15/bin/postgres -D /pg"), _program("[kworker/u8:4-flush-7:0]")
    ('postgres', 'kworker/u8:4')
    """
    first = command.split(maxsplit=1)[0].strip("[]").rstrip(":")
    if first.startswith("kworker/"):
        return re.split(r"[-+]", first)[0][:_NAME_MAX]
    is_path = first.startswith(("/", "./", "../"))
    return (first.rsplit("/", 1)[-1] if is_path else first)[:_NAME_MAX] or "?"


def _times(reports: list[_Report], source: Source, request: Request, builder: CaptureBuilder) -> NDArray[np.int64]:
    """Times of the reports: the date is assumed, and without clocks the distance too."""
    dated = [report.moment for report in reports if report.moment]
    if request.timezone is None and (dated or any(report.clock for report in reports)):
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    if len(dated) == len(reports):
        return np.array([to_ns(moment, request) for moment in dated], dtype=np.int64)
    clocks = [report.clock for report in reports if report.clock]
    if len(clocks) < len(reports):
        builder.warn(
            "no-times", "no times (record with -t): reports are taken as 1 s apart, the last when the file was written"
        )
        return synthetic_times(len(reports), 1.0, source.mtime_ns)
    day = assumed_date(source, request)
    midnight = datetime.combine(day, time())
    if request.date is None:
        builder.warn("no-date", f"iotop prints no date; {day} was assumed; --date sets it")
    seconds = [sum(int(part) * scale for part, scale in zip(c.split(":"), (3600, 60, 1), strict=True)) for c in clocks]
    moments = rolled_over(second * 10**9 for second in seconds)
    return np.array(
        [to_ns(midnight + timedelta(microseconds=int(moment) // 1000), request) for moment in moments], dtype=np.int64
    )
