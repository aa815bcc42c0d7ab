"""Iometer: the results file of its tests.

Reads:
    ``results.csv`` of Iometer 2004 to 1.1, of one or many access specifications and numbers of outstanding requests.

Sample:
    .. code-block:: text

        'Results
        'Target Type,Target Name,Access Specification Name,# Managers,# Workers,# Disks,IOps,Read IOps,...
        ALL,All,4 KiB; 100% Read; 0% random,1,1,1,20344.1,20344.1,0,...
        'Time Stamp
        2026-11-24 09:10:55:123

Lost:
    Rows of managers, workers and disks: what is kept is the sum, ``ALL``. CPU and network. Latency bins of tests that
    read and wrote: they count both together.

Units:
    ``MBps`` of files before 1.1 and ``(Binary)`` are 2**20 bytes, ``(Decimal)`` 10**6; milliseconds. Times are local;
    a test ends at the time stamp below its results.

Sources:
    Iometer: ManagerList.cpp and PageSetup.cpp, SaveResults.
"""

from __future__ import annotations

import csv
import re
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import NAN, add_columns
from leadline.formats.printed import number_of

META = ImporterMeta(
    tool="Iometer",
    marks=("'target type,target name,access specification",),
    layers=(Layer.STORAGE_PATH,),
    fields={
        "IOps": Field("job_iops", "per_s"),
        "Read IOps": Field("job_iops_read", "per_s"),
        "Write IOps": Field("job_iops_write", "per_s"),
        "MBps": Field("job_mib_per_s", "mib_per_s"),
        "Average Response Time": Field("job_latency_ms", "ms"),
        "Average Read Response Time": Field("job_latency_ms_read", "ms"),
        "Average Write Response Time": Field("job_latency_ms_write", "ms"),
        "Maximum Response Time": Field("job_latency_ms_max", "ms"),
    },
    record="Iometer.exe /c test.icf /r results.csv",
)

_HEADING = "'Target Type,Target Name,Access Specification Name"
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)(?::\d{1,3})?,*")
_BIN = re.compile(r"\s*([\d.]+) to ([\d.]+) ([um]?)s", re.IGNORECASE)
_LAST_BIN, _LAST_BIN_MS = ">= 10 s", 10_000.0
_MS = {"u": 1e-3, "m": 1.0, "": 1e3}
_MIB = ("MiBps (Binary)", "MBps (Binary)", "MBps")


@dataclass(slots=True)
class _IometerTest:
    """The sum of one test."""

    cells: dict[str, str]
    moment: datetime | None = None

    def number(self, *names: str) -> float:
        """The number of the first column that is there; NaN where none has one."""
        text = next((self.cells[name] for name in names if self.cells.get(name, "").strip()), "")
        value = number_of(text) if text else NAN
        return value if value >= 0 else NAN

    def way(self, way: str) -> tuple[float, float, dict[str, float]]:
        """Requests and bytes per second, and latencies, of ``"Read "``, ``"Write "`` or all (``""``)."""
        mib_per_s = self.number(*(f"{way}{name}" for name in _MIB))
        waits = {"mean": f"Average {way}Response Time", "max": f"Maximum {way}Response Time"}
        latency = {name: self.number(column) for name, column in waits.items()}
        kept = {name: wait for name, wait in latency.items() if np.isfinite(wait)}
        return self.number(f"{way}IOps"), mib_per_s * 2**20, kept

    def histogram(self) -> Histogram | None:
        """Latencies of all requests in Iometer's bins; None where the file has none, as those before 1.1."""
        bins = [(match, name) for name in self.cells if (match := _BIN.fullmatch(name)) is not None]
        lower = [float(match[1]) * _MS[match[3].lower()] for match, _ in bins]
        upper = [float(match[2]) * _MS[match[3].lower()] for match, _ in bins]
        counts = [self.number(name) for name in (*(name for _, name in bins), _LAST_BIN)]
        if not bins or not np.nansum(counts) > 0:
            return None
        whole = np.nan_to_num(counts).astype(np.int64).tolist()
        return Histogram.of([*lower, _LAST_BIN_MS], [*upper, np.inf], whole, "ms")


def sniff(source: Source) -> int:
    """Sure by the heading of its results."""
    return 96 if any(line.startswith(_HEADING) for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """A result and a sample for each test.

    Raises:
        InputError: no test has a result.
    """
    builder = CaptureBuilder(source.name, "iometer", META.tool)
    tests, version = _tests(source, builder)
    sound = [test for test in tests if test.number("IOps") > 0]
    if not sound:
        raise InputError(
            source.name,
            found="no row ALL with requests",
            expected="'Results, a heading and a row that begins with ALL for each test",
            advice="Run the test to its end, or stop it with Stop: then Iometer writes what it has.",
        )
    if len(sound) < len(tests):
        builder.warn("left-out", "tests without requests were left out", len(tests) - len(sound))
    if any(test.moment is None for test in sound):
        builder.warn("no-times", "tests without a time stamp are taken to end when the file was last written")
    elif request.timezone is None:
        builder.warn("no-zone", "the times are local, without a zone; taken as UTC")
    for number, test in enumerate(sound, 1):
        _add(builder, request, test, (f" {number}" if len(sound) > 1 else "", source.mtime_ns))
    return builder.build(clock_known=False, tool_version=version or None)


def _tests(source: Source, builder: CaptureBuilder) -> tuple[list[_IometerTest], str]:
    """The sums of all tests, and the version of the program."""
    heading: list[str] = []
    tests: list[_IometerTest] = []
    version, before = "", ""
    for line in source.lines():
        if line.startswith(_HEADING):
            heading = [name.strip() for name in next(csv.reader([line.lstrip("'")]))]
        elif line.startswith("ALL,"):
            cells = line.split(",")
            needed = heading.index("Errors") if "Errors" in heading else len(heading) - 1
            if not heading or len(cells) <= needed:
                builder.warn("damaged", "rows with too few cells were left out")
            else:
                tests.append(_IometerTest(dict(zip(heading, cells, strict=False))))
        elif before.startswith("'Version"):
            version = line.strip(" ,")[:40]
        elif before.startswith("'Time Stamp") and tests and tests[-1].moment is None:
            tests[-1].moment = _moment(line)
        before = line
    return tests, version


def _moment(line: str) -> datetime | None:
    match = _STAMP.fullmatch(line.strip())
    try:
        moment = datetime.strptime(match[1], "%Y-%m-%d %H:%M:%S") if match else None  # noqa: DTZ007 - local, as printed
    except ValueError:
        return None
    return moment if moment and 1970 < moment.year < 2200 else None


def _add(builder: CaptureBuilder, request: Request, test: _IometerTest, at: tuple[str, int]) -> None:
    label, written_ns = at
    end_ns = written_ns if test.moment is None else to_ns(test.moment, request)
    depth, workers = test.number("Queue Depth"), test.number("# Workers")
    name = test.cells.get("Access Specification Name", "").strip() or "test"
    job = f"{name}{f', Q{depth:g}' if depth > 0 else ''}{label}"
    read, write, whole = test.way("Read "), test.way("Write "), test.way("")
    columns = {"job_iops": [whole[0]], "job_mib_per_s": [whole[1] / 2**20]}
    columns |= {"job_iops_read": [read[0]], "job_iops_write": [write[0]]}
    columns |= {"job_latency_ms": [whole[2].get("mean", NAN)], "job_latency_ms_max": [whole[2].get("max", NAN)]}
    for way, measured in (("read", read), ("write", write)):
        columns[f"job_latency_ms_{way}"] = [measured[2].get("mean", NAN) if measured[0] > 0 else NAN]
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    add_columns(builder, request, entity, np.array([end_ns]), columns, interval_s=NAN)
    alone = test.histogram() if min(read[0], write[0]) == 0 else None
    operations = tuple(
        Operation(way, measured[0], measured[1], latency_ms=measured[2], histogram=alone)
        for way, measured in (("read", read), ("write", write))
        if measured[0] > 0
    )
    errors = test.number("Errors")
    workload = {"name": name, "iodepth": depth, "numjobs": workers}
    builder.results.append(
        Result(
            META.tool,
            job,
            operations or (Operation("mixed", whole[0], whole[1], latency_ms=whole[2], histogram=test.histogram()),),
            workload={key: value for key, value in workload.items() if value == value},  # noqa: PLR0124 - NaN
            error_count=int(errors) if np.isfinite(errors) else 0,
            source=builder.info.name,
        )
    )
