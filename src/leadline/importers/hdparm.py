"""hdparm -t: how fast a disk is read from its beginning, one request after the other.

Reads:
    Output of ``hdparm -t``, ``-tT``, with or without ``--direct`` and ``--offset``; several disks and runs in one file.

Sample:
    .. code-block:: text

        /dev/sda:
         Timing cached reads:   26224 MB in  1.98 seconds = 13227.32 MB/sec
         Timing buffered disk reads: 366 MB in  3.01 seconds = 121.44 MB/sec

Lost:
    Cached reads (``-T``), which measure memory. How long a request took: the kernel reads ahead, so the rate of large
    sequential reads tells nothing of the small ones of a database.

Units:
    MB and kB are powers of 1024.

Sources:
    hdparm(8); hdparm.c (``time_device``).
"""

from __future__ import annotations

import re

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.result import Operation, Result
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.loadtool import Elapsed, add_columns, bad_line, placed

META = ImporterMeta(
    tool="hdparm",
    marks=("disk reads:",),
    layers=(Layer.STORAGE_PATH,),
    fields={"disk reads": Field("job_mib_per_s_read", "mib_per_s")},
    record="hdparm -t --direct /dev/sda > hdparm.txt",
)
_DISK = re.compile(r"\s{0,8}(/\S{1,200}):\s*")
_READS = re.compile(
    r"\s*Timing (?P<kind>buffered|O_DIRECT) disk reads(?: \(offset (?P<offset>[^)]{1,40})\))?:"
    r"\s{0,8}(?P<mb>\d{1,9}) MB in"
    r" {1,6}(?P<seconds>\d{1,6}\.\d{1,3}) seconds = {1,6}(?P<rate>\d{1,9}\.\d{1,3}) (?P<unit>[kM])B/sec\s*"
)
_CACHED = re.compile(r"\s*Timing (?:O_DIRECT )?cached reads:.*")
_NOISE = re.compile(
    r"\s*|\s*(?:HDIO|BLK|read\(\)|SG_IO)\S{0,40}.*|.{0,120}[#$] ?(?:sudo )?hdparm .*|[^\s]{0,80}[#$]\s*"
)


def sniff(source: Source) -> int:
    """Sure by the line of disk reads."""
    return 93 if any(_READS.fullmatch(line) for line in source.head_text.splitlines()) else 0


def read(source: Source, request: Request) -> Capture:
    """A result and a sample of the rate per run.

    Raises:
        InputError: no run, or a line that is none of hdparm's.
    """
    builder = CaptureBuilder(source.name, "hdparm", META.tool)
    disk = ""
    runs: list[tuple[str, re.Match[str]]] = []
    for index, line in enumerate(source.lines()):
        if heading := _DISK.fullmatch(line):
            disk = heading[1]
        elif reads := _READS.fullmatch(line):
            if not float(reads["seconds"]) > 0:
                raise bad_line(source.name, index, line, "seconds above 0")
            runs.append((disk, reads))
        elif not _CACHED.fullmatch(line) and not _NOISE.fullmatch(line):
            raise bad_line(source.name, index, line, "a line of hdparm -t")
    if not runs:
        raise bad_line(source.name, 0, "no run", "Timing buffered disk reads of hdparm -t")
    lengths = [float(reads["seconds"]) for _, reads in runs]
    times = placed([Elapsed(np.array([length]), length) for length in lengths], source.mtime_ns)
    for number, ((place, reads), times_ns, length) in enumerate(zip(runs, times, lengths, strict=True), 1):
        _add(builder, request, (place, reads, f" {number}" if len(runs) > 1 else ""), times_ns[0], length)
    builder.warn("no-times", "runs have no time: the last is taken to end when the file was last written")
    builder.warn("no-latency", "hdparm tells a rate of large reads: record ioping or fio for the time of a request")
    return builder.build(clock_known=False)


def _add(
    builder: CaptureBuilder, request: Request, run: tuple[str, re.Match[str], str], end_ns: int, length_s: float
) -> None:
    """The result and the sample of a run; the rate is that of the amount and time, as hdparm computes it."""
    place, reads, label = run
    kind = "direct reads" if reads["kind"] == "O_DIRECT" else "buffered reads"
    job = f"{kind} {place}".strip() + label
    mib_per_s = float(reads["mb"]) / length_s
    entity = Entity(EntityKind.JOB, job, UNNAMED_GUEST)
    add_columns(builder, request, entity, np.array([end_ns]), {"job_mib_per_s_read": [mib_per_s]}, length_s)
    workload = {"filename": place, "offset": reads["offset"]}
    builder.results.append(
        Result(
            META.tool,
            job,
            (Operation("read", bytes_per_s=mib_per_s * 2**20),),
            length_s,
            workload={name: text for name, text in workload.items() if text},
            source=builder.info.name,
        )
    )
