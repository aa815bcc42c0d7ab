"""Recordings of ``sar``: everything a Linux guest counts, every ten minutes of every day, often already there.

Reads:
    The binary files of ``/var/log/sysstat`` (``sa01``, through ``sadf`` when sysstat is installed; versions 9.1.6 and
    later, converted when they are old), text of ``sar`` in any locale, what ``sadf`` exports with ``-j``, ``-x``,
    ``-d`` and ``-p``, and text of Solaris' sar. "Average:" lines are no samples and are passed over.

Sample:
    .. code-block:: text

        10:58:09 PM       DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util
        10:58:10 PM       vda    700.00   3200.00   2400.00      0.00      8.00      0.06      0.08      0.00

Lost:
    ``sadf -r`` (raw counters) and ``sadf -h`` (folded rows) are refused with advice. Interrupts per source, NFS, TTY,
    filesystems and protocol counters have no canonical metric and are kept as raw counters; interrupts per CPU are not.

Units:
    kB is KiB, ``rd_sec/s``, ``avgrq-sz`` and ``bread/s`` are 512-byte sectors, the pages of ``pswpin/s`` are taken as
    4 KiB, and left out on machines with other pages. ``%user`` and ``%system`` hold nested guests and interrupts,
    ``%usr`` and ``%sys`` do not. ``--human`` rounds to one decimal.

Sources:
    sar(1), sadf(1) of sysstat; sar(1) of Solaris.
"""

from __future__ import annotations

import re
import shutil
from datetime import date
from pathlib import Path

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError, LimitError, ToolError
from leadline.core.model.vocabulary import Layer
from leadline.core.system.leftovers import scratch_folder
from leadline.core.system.processes import ToolLimits, run_limited
from leadline.formats.sysstat.export import read_csv, read_database, read_json, read_xml
from leadline.formats.sysstat.sar_columns import FIELDS, GROUPS, emit_tables, is_heading, layout_of
from leadline.formats.sysstat.text import (
    NS_PER_S,
    SysstatTables,
    clock_known,
    clock_of,
    parse_banner,
    read_text,
    record_guest,
)

META = ImporterMeta(
    tool="sar",
    layers=(Layer.GUEST, Layer.STORAGE_PATH, Layer.NETWORK),
    fields=FIELDS,
    record="sar -A -o sar.bin 1 300 > /dev/null",
    needs_tool="sysstat",
)

_HEADINGS_OF_MPSTAT = ("%iowait %irq", "CPU intr/s", " HI/s TIMER/s")
_MAGICS = (b"\x96\xd5", b"\xd5\x96")  # 0xd596 in either byte order
_MAGIC_SYSSTAT_7 = b"\x69\x21"  # at byte 36, before "Linux"; sadf of today cannot read it
_EXPORT_BYTES_MAX = 512 << 20  # Judgement: a day every 10 s has 70 MiB; JSON takes five times its size in memory
# Judgement: a day every 10 s takes 2 s and 10 MiB; a damaged file of 38 KB took 4.7 GB.
_LIMITS = ToolLimits(wall_s=300.0, cpu_s=120, memory_bytes=1 << 30, output_bytes=_EXPORT_BYTES_MAX + 1)
_CUT_OUT = "Cut out the incident: sadf -j FILE -s 10:00:00 -e 11:00:00 -- -A > sar.json."
_KILLED = "ended by signal "
_SPAN_S_MAX = 366 * 86_400
_ACTIVITIES = "-bBdHSwW -I SUM -n DEV,EDEV,TCP,ETCP -q ALL -r ALL -u ALL -P ALL".split()
_DATABASE = re.compile(r"[^\t\n]+\t-?\d+\t\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[^\t\n]*\t[^\t\n]*\t[^\t\n]+\t[^\t\n]*\n")
_RAW_EXPORT = "# uptime_cs; "
_CREATED_BY = re.compile(r"sysstat version ([\d.]+)")


def sniff(source: Source) -> int:
    """Sure by the magic number, or the heading of an export; text by a heading below a banner, or with its clock."""
    if _is_binary(source.head):
        return 95
    text = source.head_text
    begin = text.lstrip()[:600]
    if begin.startswith('{"sysstat"'):
        return 95 if '"file-date"' in begin else 0
    if begin.startswith(("# hostname;interval;timestamp", _RAW_EXPORT)) or (begin[:1] == "<" and "<sysstat" in begin):
        return 95
    lines = text.splitlines()[:60]
    if _DATABASE.match(text):
        return 80
    if any(_is_mpstat(line) for line in lines):
        return 0
    if any(map(parse_banner, lines)):
        return 90 if any(is_heading(line) for line in lines) else 0
    # Without its first line it is an excerpt, known by the clock before a heading, which must not be of another tool's.
    return 85 if any(clock_of(line) and is_heading(line) for line in lines[:12]) else 0


def _is_binary(head: bytes) -> bool:
    return head[:2] in _MAGICS or _is_sysstat_7(head)


def _is_sysstat_7(head: bytes) -> bool:
    return head[36:38] == _MAGIC_SYSSTAT_7 and head[44:50] == b"Linux\0"


def _is_mpstat(line: str) -> bool:
    words = " ".join(line.split())
    return any(mark in words for mark in _HEADINGS_OF_MPSTAT)


def read(source: Source, request: Request) -> Capture:
    """The guest's series, its CPUs', disks' and network interfaces'.

    Raises:
        InputError: no sample, damage before the last line, or a binary file sadf cannot read.
        LimitError: a binary file holds more than can be exported at once.
        ToolError: the file is binary and sysstat is not installed or does not answer.
    """
    builder = CaptureBuilder(source.name, "sar", META.tool)
    recording = _recording(source, request, builder)
    guest = record_guest(recording, builder)

    emit_tables(recording, guest, builder, request)
    host = recording.banners[0].host if recording.banners else None
    return builder.build(host=host, clock_known=clock_known(recording, request, builder))


def _recording(source: Source, request: Request, builder: CaptureBuilder) -> SysstatTables:
    if _is_binary(source.head):
        return _read_binary(source, request, builder)
    begin = source.head_text.lstrip()[:600]
    if begin.startswith("{"):
        return read_json(source, request, builder)
    if begin.startswith("<"):
        return read_xml(source, request)
    if begin.startswith(_RAW_EXPORT):
        raise InputError(
            source.name,
            found="raw counters of sadf -r",
            expected="values per interval",
            advice="Export the original with sadf -j FILE -- -A > sar.json.",
        )
    if begin.startswith("#"):
        return read_csv(source, request, builder, GROUPS)
    if _DATABASE.match(source.head_text):
        return read_database(source, request, builder)
    return read_text(source, layout_of, builder)


def _read_binary(source: Source, request: Request, builder: CaptureBuilder) -> SysstatTables:
    """What sadf makes of a binary file; an old one is converted aside first."""
    sadf = shutil.which("sadf")
    if sadf is None:
        raise ToolError(
            source.name,
            found="a binary recording of sar, and sadf is not installed",
            expected="sadf of sysstat, which alone knows the format",
            advice="apt-get install sysstat, or run sadf -j FILE -- -A > sar.json where it was recorded.",
        )
    with scratch_folder("sar") as folder:
        exported = folder / "sar.json"
        binary = source.path.resolve()
        complaint = _export(sadf, binary, exported, request, source.name)
        if complaint and "onvert" in complaint:
            converted = folder / "converted"
            refusal = _run([sadf, "-c", str(binary)], converted, source.name)
            builder.warn("converted", "the recording is of an old format and was converted by sadf -c")
            complaint = (
                f"{complaint}\n{refusal}" if refusal else _export(sadf, converted, exported, request, source.name)
            )
        if complaint:
            raise _unreadable(source, complaint)
        if exported.stat().st_size > _EXPORT_BYTES_MAX:
            raise LimitError(
                source.name,
                found=f"{exported.stat().st_size >> 20} MiB of samples once exported",
                expected=f"at most {_EXPORT_BYTES_MAX >> 20} MiB",
                advice=_CUT_OUT,
            )
        recording = read_json(Source(source.name, exported), request, builder)
    _expect_sane_times(recording)
    return recording


def _expect_sane_times(recording: SysstatTables) -> None:
    """Refuse what sadf made of a file it took for another machine's: it shifts times by decades, and rates with them.

    Raises:
        InputError: a sample is over a year from the day in the file's header.
    """
    days = recording.banners[0].days
    moments = [moment for table in recording.tables.values() for moment in (table.moments[0], table.moments[-1])]
    span_s = [abs(moment // NS_PER_S - (day - date(1970, 1, 1)).days * 86_400) for moment in moments for day in days]
    if max(span_s, default=0) > _SPAN_S_MAX:
        raise InputError(
            recording.source.name,
            found=f"a header of {days[0]} and samples years away",
            expected="samples near the day of the header",
            advice="sadf misread the file; where it was recorded, run LC_ALL=C sar -A -f FILE > sar.txt and give that.",
        )


def _export(sadf: str, binary: Path, exported: Path, request: Request, name: str) -> str:
    """Export to JSON; what sadf complained of, "" when it did not."""
    activities = [["-A"]] if request.metrics is None else [_ACTIVITIES, ["-A"]]
    complaint = ""
    for wanted in activities:
        complaint = _run([sadf, "-j", str(binary), "--", *wanted], exported, name)
        if not complaint:
            break
    return complaint


def _run(command: list[str], output: Path, name: str) -> str:
    """Run sadf; what it complained of, "" when it ended well.

    Raises:
        LimitError: it takes more time or memory, or writes more, than any recording of a day makes it.
    """
    done = run_limited(command, output=output, limits=_LIMITS, variables={"LC_ALL": "C"})
    if done.limit is not None:
        raise LimitError(
            name,
            found=f"a recording at which sadf {done.limit}",
            expected="a whole recording of a day or less",
            advice=_CUT_OUT,
        )
    if done.status < 0:
        return f"{_KILLED} {-done.status}"
    return (done.complaint or f"exit status {done.status}") if done.status else ""


def _unreadable(source: Source, complaint: str) -> InputError:
    version = _CREATED_BY.search(complaint)
    old = f"written by sysstat {version[1]}" if version else "which sadf does not know"
    if _is_sysstat_7(source.head):
        old = "written by sysstat 7"
    if _KILLED in complaint:
        old += ", at which sadf crashed"
    return InputError(
        source.name,
        found=f"a binary recording of sar, {old}",
        expected="a format sadf of this machine can read or convert",
        advice="Where it was recorded, run LC_ALL=C sar -A -f FILE > sar.txt and give that.",
        said=complaint.splitlines()[0][:200],
    )
