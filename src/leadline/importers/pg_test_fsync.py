"""pg_test_fsync: how often a second data can be forced to the medium, by every method PostgreSQL has.

Reads:
    The output of pg_test_fsync of PostgreSQL 9.3 to 18 in English, one or many runs in one file.

Sample:
    .. code-block:: text

        5 seconds per test
        Compare file sync methods using one 8kB write:
                open_datasync                       917.362 ops/sec    1090 usecs/op
                fsync_writethrough                              n/a

Lost:
    Methods that the system does not have (n/a) have no series and no operation. How many operations were made is not
    printed: the count is not known.

Units:
    Operations per second with three decimals; whole usecs, which are their inverse. The time of an operation is taken
    from the rate, because it has more digits, and checked against the usecs.

Sources:
    PostgreSQL documentation, pg_test_fsync; ``pg_test_fsync.c`` (LABEL_FORMAT, OPS_FORMAT, NA_FORMAT, print_elapse).
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
from leadline.formats.loadtool import ELAPSED_S_MAX, Elapsed, add_columns, bad_line, placed

META = ImporterMeta(
    tool="pg_test_fsync",
    marks=("per test", "ops/sec"),
    layers=(Layer.STORAGE_PATH,),
    fields={"ops/sec": Field("job_iops", "per_s"), "usecs/op": Field("job_latency_ms", "us")},
    record="pg_test_fsync -s 5 -f FILE_ON_THE_DISK > pg_test_fsync.txt",
)
PER_S_STEP, US_STEP = 0.001, 1.0  # the last digit that is printed of each

# What is compared -> the job's name, and whether the test is named by what it writes rather than by a method.
_PARTS = {
    "compare file sync methods using one 8kb write:": "one 8kB write",
    "compare file sync methods using two 8kb writes:": "two 8kB writes",
    "compare open_sync with different write sizes:": "open_sync",
    "test if fsync on non-write file descriptor is honored:": "fsync by another descriptor",
    "non-sync'ed 8kb writes:": "not synced",
}
_FIRST, _LAST = "one 8kB write", "not synced"
_HEAD = re.compile(r"(\d{1,9}) seconds? per test")
_ROW = re.compile(r"\s+(\S.*?)\s+(?:(\d{1,12}[.,]\d{1,6}) ops/sec(?:\s+(\d{1,15}) usecs/op)?|(n/a\*?))\s*")
_NOISE = re.compile(
    r"O_DIRECT |Direct I/O is not |\(in wal_sync_method|\(This is designed|open_sync sizes\.|\(If the times"
    r"|descriptor\.\)|\* This file system|options do not|\$ |in different write"
)


_BARE = re.compile(
    r"^[^\S\n]++(?:open_datasync|fdatasync|fsync|fsync_writethrough|open_sync)[^\S\n]++\d+[.,]\d+ ops/sec", re.M
)
_BARE_MIN = 2
_USUAL_S = 5.0  # its own default per test


@dataclass
class _Test:
    part: str
    method: str
    per_s: float

    @property
    def latency_ms(self) -> float:
        """Of one operation: they are made one after the other."""
        return factor("s", "ms") / self.per_s


@dataclass
class _Run:
    test_s: float
    tests: list[_Test] = field(default_factory=list)


def sniff(source: Source) -> int:
    """Sure by the head line and what is compared; some rows of methods alone are an excerpt."""
    lines = [line.strip().casefold() for line in source.head_text.splitlines()]
    if any(line in _PARTS for line in lines) and any(_HEAD.fullmatch(line) for line in lines):
        return 93
    return 90 if len(_BARE.findall(source.head_text)) >= _BARE_MIN else 0


def read(source: Source, request: Request) -> Capture:
    """A result per comparison with an operation per method; a sample of rate and latency per method.

    Raises:
        InputError: there is no test, or a line is damaged.
    """
    builder = CaptureBuilder(source.name, "pg-test-fsync", META.tool)
    runs = _runs(source, request, builder)
    if not any(run.tests for run in runs):
        raise bad_line(source.name, 0, "no test", "the output of pg_test_fsync")
    counts = [len(run.tests) for run in runs]
    ends = [Elapsed(np.arange(1.0, n + 1) * run.test_s, n * run.test_s) for run, n in zip(runs, counts, strict=True)]
    for run, times in zip(runs, placed(ends, source.mtime_ns), strict=True):
        for test, time_ns in zip(run.tests, times, strict=True):
            job = Entity(EntityKind.JOB, f"{test.part} {test.method}", UNNAMED_GUEST)
            columns = {"job_iops": [test.per_s], "job_latency_ms": [test.latency_ms]}
            add_columns(builder, request, job, np.array([time_ns]), columns, interval_s=run.test_s)
        for part in dict.fromkeys(test.part for test in run.tests):
            builder.results.append(_result(run, part, source.name))
        if run.tests and run.tests[-1].part != _LAST:
            builder.warn("cut", "a run ends before its last test: the tests after that are not here")
    builder.warn("no-times", "tests have no time: the last is taken to end when the file was last written")
    return builder.build(clock_known=False)


def _runs(source: Source, request: Request, builder: CaptureBuilder) -> list[_Run]:
    text = source.text()
    lines = text.splitlines()
    runs: list[_Run] = []
    part = ""
    if not any(_HEAD.fullmatch(line.strip()) for line in lines):
        runs, part = [_Run(_USUAL_S)], _FIRST
        builder.warn("no-head", f"an excerpt without its head: {_USUAL_S:g} s per test and {_FIRST} are assumed")
    begin = next((n for n, line in enumerate(lines) if _HEAD.fullmatch(line.strip()) or _ROW.fullmatch(line)), 0)
    for index, line in enumerate(lines[begin:], start=begin):
        if head := _HEAD.fullmatch(line.strip()):
            if not 0 < float(head[1]) <= ELAPSED_S_MAX:
                raise bad_line(source.name, index, line, "at least a second per test")
            runs.append(_Run(float(head[1])))
            part = ""
        elif line.strip().casefold() in _PARTS and runs:
            part = _PARTS[line.strip().casefold()]
        elif not line.strip() or _NOISE.match(line):
            continue
        elif index == len(lines) - 1 and (request.truncate_last or not text.endswith(("\n", "\r"))):
            builder.warn("cut", "the last line was cut while it was written and is left out")
        elif runs and part and (row := _ROW.fullmatch(line)):
            _take(runs[-1], part, row, builder, source.name, index)
        else:
            raise bad_line(source.name, index, line, "a test of pg_test_fsync")
    return runs


def _take(run: _Run, part: str, row: re.Match[str], builder: CaptureBuilder, name: str, index: int) -> None:
    """One test into its run."""
    method = " ".join(
        row[1].replace("*", "x").removesuffix(" open_sync writes").removesuffix(" open_sync write").split()
    )
    if row[4]:
        if row[4] == "n/a*":
            builder.warn("no-direct", f"{part} {method}: this file system does not take direct I/O")
        return
    test = _Test(part, method, float(row[2].replace(",", ".")))
    if not test.per_s > 0:
        raise bad_line(name, index, row[0], "a rate above 0")
    us = factor("s", "us") / test.per_s
    rounding_us = US_STEP / 2 + us * PER_S_STEP / test.per_s + 1e-6
    if row[3] and abs(us - float(row[3])) > rounding_us:
        raise bad_line(name, index, row[0], "usecs that are the inverse of the rate")
    run.tests.append(test)


def _result(run: _Run, part: str, name: str) -> Result:
    operations = tuple(
        Operation(test.method, test.per_s, latency_ms={"mean": test.latency_ms})
        for test in run.tests
        if test.part == part
    )
    length_s = run.test_s * len(operations)
    return Result(META.tool, part, operations, length_s, workload={"test_s": run.test_s}, source=name)
