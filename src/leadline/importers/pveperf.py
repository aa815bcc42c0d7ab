"""pveperf of Proxmox VE: how often in a second a host can force data to its disk.

Reads:
    The output of ``pveperf`` or ``pveperf PATH``, one or several runs in one file.

Sample:
    .. code-block:: text

        CPU BOGOMIPS:      121369.44
        REGEX/SECOND:      7314912
        HD SIZE:           885.91 GB (rpool/data)
        FSYNCS/SECOND:     96.60
        DNS EXT:           28.81 ms

Lost:
    Everything but the rate of fsync: the speed of the CPU and of name resolution, buffered reads (of the page cache, in
    part) and the seek time (of a raw device, which a pool has not). How many were made is not printed.

Units:
    Calls of fsync per second, one after the other; the time of one is the inverse.

Sources:
    Proxmox VE documentation, pveperf(1).
"""

from __future__ import annotations

import re

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.units import factor
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import add_columns, bad_line

META = ImporterMeta(
    tool="pveperf",
    marks=("fsyncs/second:",),
    layers=(Layer.STORAGE_PATH,),
    fields={"FSYNCS/SECOND": Field("job_iops", "per_s"), "1 / FSYNCS/SECOND": Field("job_latency_ms", "s")},
    record="pveperf /var/lib/vz > pveperf.txt",
)

_RATE = re.compile(r"\s{0,8}FSYNCS/SECOND: {1,20}(\d{1,9}(?:\.\d{1,6})?)\s{0,8}")
_SIZE = re.compile(r"\s{0,8}HD SIZE: {1,20}[\d.]{1,16} [KMGT]?B \(([^)]{1,200})\)\s{0,8}")


def sniff(source: Source) -> int:
    """Sure by the line of the rate."""
    return 95 if any(_RATE.fullmatch(line) for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """A result with the rate and latency of fsync for each run, the last of which ends when the file was written.

    Raises:
        InputError: no run, or a rate of zero.
    """
    builder = CaptureBuilder(source.name, "pveperf", META.tool)
    lines = source.lines()
    place = ""
    runs: list[tuple[str, float]] = []
    for index, line in enumerate(lines):
        if (size := _SIZE.fullmatch(line)) is not None:
            place = size[1]
        elif (rate := _RATE.fullmatch(line)) is not None:
            if not float(rate[1]) > 0:
                raise bad_line(source.name, index, line, "a rate above 0")
            runs.append((place, float(rate[1])))
            place = ""
    if not runs:
        raise bad_line(source.name, 0, lines[0] if lines else "", "the output of pveperf with FSYNCS/SECOND")
    for number, (where, per_s) in enumerate(runs, 1):
        latency_ms = factor("s", "ms") / per_s
        name = f"fsync {where}".strip()
        job = Entity(EntityKind.JOB, name if len(runs) == 1 else f"{name} {number}", UNNAMED_GUEST)
        columns = {"job_iops": [per_s], "job_latency_ms": [latency_ms]}
        add_columns(builder, request, job, np.array([source.mtime_ns]), columns, interval_s=float("nan"))
        operation = Operation("fsync", per_s, latency_ms={"mean": latency_ms})
        builder.results.append(Result(META.tool, where or "fsync", (operation,), source=source.name))
    builder.warn("no-times", "runs have no time: they are taken to end when the file was last written")
    return builder.build(clock_known=False)
