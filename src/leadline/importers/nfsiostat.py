"""nfsiostat: requests of NFS mounts, the time the server took, and the time the client took.

Reads:
    Text of nfsiostat of nfs-utils 1.1 to 2.8, one or many reports, also with ``-a``, ``-d`` and ``-p``.

Sample:
    .. code-block:: text

        nap:/export/pg mounted on /var/lib/pgsql:

                   ops/s       rpc bklog
                  73.187           0.000

        read:              ops/s            kB/s           kB/op         retrans    avg RTT (ms)    avg exe (ms)
                          12.000         109.152           9.096        0 (0.0%)           2.158           2.225

Lost:
    Operations but reads and writes, cache counts, errors. The first report is an average since the mount. Times: it
    prints none, so reports are taken as 1 s apart, the last at the time of the file, unless lines of time are between.

Units:
    kB are 1024 bytes; milliseconds. RTT runs from sending a request to its answer, exe from its making to its end.

Sources:
    nfsiostat(8); nfs-utils, tools/nfs-iostat/nfs-iostat.py (``__print_rpc_op_stats``).
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.clock import synthetic_times
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.vocabulary import Layer
from leadline.formats.loadtool import NAN, bad_line
from leadline.formats.nfs import COLUMNS, FIELDS, VALUES, WAYS, scheme_of
from leadline.formats.printed import number_of
from leadline.formats.tables import SampleTable, emit

META = ImporterMeta(
    tool="nfsiostat",
    marks=("avg rtt (ms)",),
    layers=(Layer.STORAGE_PATH, Layer.GUEST),
    fields=FIELDS,
    record="nfsiostat 15 40 > nfsiostat.txt",
)
_MOUNT = re.compile(r"\s{0,8}(?P<export>\S.{0,400}?) mounted on (?P<place>/.{0,400}):\s*")
_HEADS = re.compile(
    r"^\s*(?P<operation>[a-z]{2,20}):\s+ops/s\s+kB/s\s+kB/op\s+retrans\s+avg RTT \(ms\)\s+avg exe \(ms\)"
)
_TOTAL_HEADS = re.compile(r"\s*ops?/s\s+rpc bklog\s*")
_CELL = r"\d{1,15}(?:\.\d{1,6})?"
_TOTAL = re.compile(rf"\s*{_CELL}\s+-?{_CELL}\s*")
_ROW = re.compile(
    rf"\s*(?P<ops>{_CELL})\s+(?P<kb>{_CELL})\s+{_CELL}\s+-?\d{{1,12}} \((?P<again>-?{_CELL})%\)?\s+(?P<rtt>{_CELL})"
    rf"\s+(?P<exe>{_CELL})(?:\s+(?P<queue>{_CELL}))?(?:\s+\d{{1,12}} \({_CELL}%\))?\s*"
)
_NOISE = re.compile(
    r"\s*|\s*\d+ (?:VFS opens|inoderevalidates|page cache|attribute cache|open operations|dentry reval|vfs getdents|"
    r"nfs_\w+\(\) calls|congestion waits).*|\s*resulted in .*|\s*\(.* per call\).*|\s*app bytes: .*|"
    r"\s*Data cache hit ratio: .*|\s*Caught \^C.*|\s*\^C\s*"
)


def sniff(source: Source) -> int:
    """Sure by the heads of an operation's columns."""
    return 94 if any(_HEADS.match(line) for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of rates, throughput and times per mount.

    Raises:
        InputError: no report, or a line that is none of nfsiostat's.
    """
    builder = CaptureBuilder(source.name, "nfsiostat", META.tool)
    table = _table(source, builder)
    if not table.moments:
        raise bad_line(source.name, 0, "no report of a mount", "nfsiostat's reads and writes of a mount")
    builder.warn("no-times", "reports have no times: they are taken as 1 s apart, the last when the file was written")
    times = synthetic_times(len(table.moments), 1.0, source.mtime_ns)
    emit(table, times, scheme_of("nfsiostat"), builder, request, since_boot=True)
    return builder.build(clock_known=False)


def _table(source: Source, builder: CaptureBuilder) -> SampleTable:
    table = SampleTable("mount", COLUMNS)
    text = source.text()
    lines = text.splitlines()
    place, operation = "mount", ""
    ways: dict[str, list[float]] = {}
    for index, line in enumerate(lines):
        if mount := _MOUNT.fullmatch(line):
            _add(table, place, ways)
            place, operation, ways = mount["place"], "", {}
        elif heads := _HEADS.match(line):
            operation = heads["operation"]
            if operation in ways:  # a report without its line of the mount
                _add(table, place, ways)
                ways = {}
        elif _TOTAL_HEADS.fullmatch(line):
            operation = "total"
        elif operation == "total" and _TOTAL.fullmatch(line):
            continue
        elif operation and (row := _ROW.fullmatch(line)):
            ways[operation] = [number_of(row[name] or "nan") for name in ("ops", "kb", "again", "rtt", "exe", "queue")]
        elif index == len(lines) - 1 and not text.endswith("\n") and line.strip():
            builder.warn("cut", "the last line has no end and was left out")
        elif not _NOISE.fullmatch(line):
            raise bad_line(source.name, index, line, "a line of nfsiostat")
    _add(table, place, ways)
    return table


def _add(table: SampleTable, place: str, ways: dict[str, list[float]]) -> None:
    """The reads and writes of a mount in one report; what was sent again is that of both, by their rates."""
    if not any(way in ways for way in WAYS):
        return
    cells = [ways.get(way, [NAN] * len(VALUES)) for way in WAYS]
    ops = sum(way[0] for way in cells if way[0] > 0)
    again_pct = sum(max(way[2], 0.0) * way[0] for way in cells if way[0] > 0) / ops if ops > 0 else NAN
    for way in cells:
        way[2] = again_pct
    table.add(0, place, [value for way in cells for value in way])
