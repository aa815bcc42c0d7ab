"""vdbench: the flat file and the reports (summary, totals, hosts, storage and workload definitions) of a run.

Reads:
    ``flatfile.html`` of three generations: 5.00 (fixed width, ``ks_`` columns), 5.03 to 5.04.05 (``read_resp``),
    5.04.06 and later (a ``timestamp`` column, single spaces), or the flat file saved as CSV; ``summary.html``,
    ``totals.html``, ``localhost.html`` and the reports of hosts, SDs and WDs, also of file system workloads. In a
    folder with a flat file, ``summary.html`` and ``totals.html`` hold the same numbers and yield none.

Sample:
    .. code-block:: text

             tod               timestamp Run Interval reqrate rate MB/sec bytes/io read% resp read_resp write_resp …
        18:11:39.068 03/08/2019-18:11:39-ICT random_write 1 9999988 27913 204.5864 7685 0 0.328 0 0.328 …
        Apr 08, 2016  interval        i/o   MB/sec   bytes   read     resp     read    write     resp     resp queue …
        13:50:00.270  avg_2-60      50.02     0.20    4096  75.91    5.395    6.944    0.516   96.066   10.097   0.3

Lost:
    Logs, parameter scans, skew and the error log are no recordings of results. Reports of slaves (parts of a host).
    mkdir, open, close … of file system workloads.

Units:
    MB/sec is MiB/s (vdbench says 1024**2); response times are milliseconds; ``n/a`` is "not measured", and so are
    response times of 0 where nothing was read, written or done.

Sources:
    Vdbench User Guide 5.04.07, "Flatfile" and "Sample output"; the header comments of the flat file.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date, timedelta
from pathlib import PurePath

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns, bad_line
from leadline.formats.vdbench.table import (
    DAY,
    Moment,
    VdbenchTable,
    cell,
    interval_times,
    metric_columns,
    report_date,
    results,
    sibling_head,
    time_of_day,
)

META = ImporterMeta(
    tool="vdbench",
    marks=(
        "tod",
        "interval",
        "vdbench",
        "scanned",
        "slave",
        "line: ",
        "keyw: ",
        "parm: ",
        "skew report",
        "contents of",
    ),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "rate": Field("job_iops", "per_s"),
        "MB/sec": Field("job_mib_per_s", "mib_per_s"),
        "resp": Field("job_latency_ms", "ms"),
        "read_resp": Field("job_latency_ms_read", "ms"),
        "write_resp": Field("job_latency_ms_write", "ms"),
        "resp_max": Field("job_latency_ms_max", "ms"),
        "resp_std": Field("job_latency_ms_stddev", "ms"),
        "queue_depth": Field("job_outstanding_count", "count"),
        "read_rate": Field("job_iops_read", "per_s"),
        "write_rate": Field("job_iops_write", "per_s"),
        "read_mb": Field("job_mib_per_s_read", "mib_per_s"),
        "write_mb": Field("job_mib_per_s_write", "mib_per_s"),
    },
    record="vdbench -f workload.parm -o output",
)

_HEADER = re.compile(
    r"^[^\S\n]*+tod(?:\s+|,)(?:timestamp(?:\s+|,))?Run(?:\s+|,)Interval(?:\s+|,)(?:reqrate|Xfersize)\b.*$",
    re.MULTILINE,
)
# A file-system run's flat file writes the names of a raw run's with a capital, and two of them the other way round.
_FLAT_NAMES = {"MB_read": "read_mb", "MB_write": "write_mb", "MB/sec": "MB/sec"}
_REPORT = re.compile(r"^(\S+ \d\d?, \d{4}) +\.*[Ii]nterval\.* +(?:i/o +MB/sec|\.ReqstdOps).*$", re.MULTILINE)
_ROW = re.compile(r"\d\d:\d\d:\d\d[.,]\d{3} ")
_STAMP = re.compile(r"(\d\d)/(\d\d)/(\d{4})-(\d\d):(\d\d):(\d\d)-(\S+)")
_STARTING = re.compile(r"Starting RD=([^;<]+?)\s*(?:;|</b>|$)")
_PART = re.compile(r"\b(host|slave|sd|wd|fsd|fwd)=([^\s<,;]+)", re.IGNORECASE)
_NOT_RESULTS = {
    re.compile(r"Vdbench distribution: |input argument scanned|^\d\d:\d\d:\d\d\.\d{3} Starting slave", re.M): "the log",
    re.compile(r"^\d\d:\d\d:\d\d\.\d{3} (?:line|keyw|parm): ", re.M): "the scan of the parameters",
    re.compile(r"^Vdbench error log", re.M): "the error log",
    re.compile(r"^Workload skew report", re.M): "the skew report",
    re.compile(r"^:vdbench\d+_vdbench_data_for_swat", re.M): "data for Swat, another program",
    re.compile(
        r"\* Contents of parameter file: |<title>Vdbench \S*(?:parmfile|config|status|messages|stdout)"
    ): "a setting",
    re.compile(r"^Slave summary report|^slave=", re.M | re.I): "the report of a slave, a part of a host's",
}
# columns of a report by the words of its two header lines; the first "resp max" of a layout is of all operations
_WORDS = {
    ("i/o", "rate"): "rate", ("MB/sec", "1024**2"): "MB/sec", ("bytes", "i/o"): "bytes/io", ("read", "pct"): "read%",
    ("resp", "time"): "resp", ("read", "resp"): "read_resp", ("write", "resp"): "write_resp",
    ("resp", "max"): "resp_max", ("read", "max"): "read_max", ("write", "max"): "write_max",
    ("resp", "stddev"): "resp_std",
    ("queue", "depth"): "queue_depth", ("cpu%", "sys+u"): "cpu_used", ("cpu%", "sys+usr"): "cpu_used",
    ("cpu%", "sys"): "cpu_kernel",
}  # fmt: skip
_FILE_SYSTEM = ["rate", "resp", "cpu_used", "cpu_kernel", "read%", "read_rate", "read_resp", "write_rate", "write_resp",
                "read_mb", "write_mb", "MB/sec", "bytes/io"]  # fmt: skip


def sniff(source: Source) -> int:
    """Sure by the header of the flat file or of a report; low for vdbench's other files."""
    text = source.head_text
    if any(mark.search(text) for mark in _NOT_RESULTS):
        return 25 if source.named else 10  # a named file deserves the reason, not "not recognised"
    return 94 if _HEADER.search(text) or _REPORT.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of the intervals of one job, one result per run definition.

    Raises:
        InputError: the file is one of vdbench's that hold no results, or a row before the last is damaged.
    """
    head = source.head_text
    other = next((kind for mark, kind in _NOT_RESULTS.items() if mark.search(head)), None)
    if other is not None:
        raise InputError(
            source.name,
            found=f"{other} of vdbench",
            expected="results",
            advice="Name flatfile.html or summary.html of the same folder, or the folder.",
        )
    builder = CaptureBuilder(source.name, "vdbench", META.tool)
    flat = _HEADER.search(head) is not None
    part = None if flat else _PART.search(head.partition("Starting RD")[0])
    if not flat and _is_repeated(source, part):
        builder.warn("repeated", "its numbers are also in flatfile.html beside it, which is read instead")
        return builder.build()
    lines = source.lines()
    table = _flat_rows(lines, source.name, builder) if flat else _report_rows(lines, source.name, builder)
    if not table.values and not table.averages:
        raise bad_line(source.name, 0, "no interval", "a header and rows of intervals")
    times, clock_known = interval_times(table, source, request, builder)
    label = f"{part[1].lower()} {part[2]}" if part else ""
    # A part's report is not of the guest: it may be of another machine.
    total = Entity(EntityKind.JOB, "vdbench" if flat else "vdbench summary", UNNAMED_GUEST)
    job = Entity(EntityKind.JOB, f"vdbench {label}") if part else total
    interval = float(np.median(np.diff(times))) / 1e9 if len(times) > 1 else NAN
    add_columns(builder, request, job, times, metric_columns(table, META.fields), interval_s=interval)
    builder.results.extend(results(table, times, META.tool, label, source.name))
    if not table.averages:
        builder.warn("no-summary", "the run has no average: it was stopped or is still running")
    return builder.build(clock_known=clock_known)


def _is_repeated(source: Source, part: re.Match[str] | None) -> bool:
    """Whether a report's numbers are in the flat file beside it: the totals, or the only part of its kind."""
    flat_file = source.path.with_name("flatfile.html")
    if source.path.name != PurePath(source.name).name or not flat_file.is_file():
        return False
    if part is None:
        return True
    kind = {"host": "HOST", "sd": "SD", "wd": "workload"}.get(part[1].lower(), part[1])
    links = re.findall(
        rf"^Link to {re.escape(kind)} reports?:(.*(?:\n {{20,}}<A .*)*)$", sibling_head(source), re.MULTILINE
    )
    return bool(links) and sum(link.count("<A HREF") for link in links) == 1


def _flat_rows(lines: list[str], name: str, builder: CaptureBuilder) -> VdbenchTable:
    """Rows of a flat file by the words of its header."""
    header = next((index for index, line in enumerate(lines) if _HEADER.match(line)), None)
    if header is None:
        raise bad_line(name, 0, "no header", "the header of a flat file")
    separator = "," if lines[header].lstrip().startswith("tod,") else None
    words = [word.strip() for word in lines[header].split(separator) if word.strip()]
    fixed = 4 if words[1] == "timestamp" else 3
    is_file_system = "Rate" in words
    table = VdbenchTable([_FLAT_NAMES.get(word, word.lower()) if is_file_system else word for word in words[fixed:]])
    for index in range(header + 1, len(lines)):
        line = lines[index]
        if not line.strip() or line.startswith(("*", "<", "---")):
            continue
        cells = line.split(separator)
        try:
            if len(cells) != len(words):
                message = f"{len(cells)} columns, the header has {len(words)}"
                raise ValueError(message)  # noqa: TRY301 - handled like a cell that is no number
            moment = _flat_moment(cells, stamped=fixed == 4)
            numbers = [cell(text, decimal_comma=separator is None) for text in cells[fixed:]]
        except ValueError as error:
            if index < len(lines) - 1:
                raise bad_line(name, index, str(error), f"a row of {len(words)} columns") from error
            builder.warn("cut", "the last row is cut and was dropped")
            break
        table.put(cells[fixed - 2].strip(), cells[fixed - 1].strip(), moment, numbers)
    return table


def _flat_moment(cells: list[str], *, stamped: bool) -> Moment:
    """When a row was made; its stamp is made later than its time of day and may be past midnight."""
    time = time_of_day(cells[0])
    if not stamped:
        return Moment(time)
    match = _STAMP.fullmatch(cells[1].strip())
    if match is None:
        message = f"{cells[1]!r} is no timestamp"
        raise ValueError(message)
    month, day, year, hour, *_, zone = match.groups()
    stamp_day = date(int(year), int(month), int(day))
    return Moment(time, stamp_day - DAY if timedelta(hours=int(hour)) < time - DAY / 2 else stamp_day, zone)


def _report_rows(lines: list[str], name: str, builder: CaptureBuilder) -> VdbenchTable:
    """Rows of a report; its header comes again every 30 intervals, with the date of that moment."""
    table: VdbenchTable | None = None
    run, day = "run", None
    for index, line in enumerate(lines):
        starting, header = _STARTING.search(line), _REPORT.match(line)
        if starting:
            run = starting[1]
        elif header:
            columns = _report_columns(line, lines[index + 1 : index + 2], name, index)
            table = table or VdbenchTable(columns)
            if table.columns != columns:
                raise bad_line(name, index, line, "the same columns as in the file's first header")
            day = report_date(header[1])
        elif table is not None and _ROW.match(line):
            cells = line.split()
            # Between the rows stand messages ("Vdbench execution completed successfully"); below the average, rows of
            # standard deviations and maxima (std_2-60, max_2-60) that leave most columns blank.
            if not re.fullmatch(r"\d+|avg_\d+-\d+", cells[1] if len(cells) > 1 else ""):
                continue
            try:
                numbers = [cell(text, decimal_comma=True) for text in cells[2 : len(table.columns) + 2]]
                if len(numbers) < len(table.columns):
                    message = f"{len(numbers)} values, the header has {len(table.columns)}"
                    raise ValueError(message)  # noqa: TRY301 - handled like a cell that is no number
                table.put(run, cells[1], Moment(time_of_day(cells[0]), day), numbers)
            except ValueError as error:
                if index < len(lines) - 1:
                    raise bad_line(name, index, str(error), "a row of the report") from error
                builder.warn("cut", "the last row is cut and was dropped")
    if table is None:
        raise bad_line(name, 0, "no header", "a report of vdbench")
    return table


def _report_columns(line: str, below: Sequence[str], name: str, index: int) -> list[str]:
    """Column names of a report by its two header lines."""
    if ".ReqstdOps" in line:
        return _FILE_SYSTEM
    upper = line.split("interval", 1)[-1].split()
    lower = below[0].split() if below else []
    if len(upper) != len(lower):
        raise bad_line(name, index, line, "two header lines with as many words")
    return [_WORDS.get(pair, " ".join(pair)) for pair in zip(upper, lower, strict=True)]
