r"""Windows Performance Monitor logs: disks, processors, memory and SQL Server of a guest, and the VMs of Hyper-V.

Reads:
    CSV and TSV as perfmon, ``logman`` (``-f csv``), ``relog`` and ``typeperf`` write them, in UTF-8, UTF-16 or the code
    page of Windows or its console in which the names are known, with decimal points or commas; also re-saved by Excel
    or copied from a console. Names in English, Chinese, Czech, Dutch, French, German, Hungarian, Italian, Norwegian,
    Polish, Portuguese, Russian, Spanish, Swedish or Turkish, as far as ``localised_names.csv`` has them.

Sample:
    ``"(PDH-CSV 4.0) (Russia TZ 2 Standard Time)(-180)","\\DB01\Физический диск(0 C:)\Среднее время чтения с диска
    (с)"``, then ``"09/16/2021 07:51:58.569"," "``: rates have no value in the first row.

Lost:
    Counters without a canonical name, unless everything is asked for; then ``raw.perfmon.…`` in English where the name
    is known. ``_Total`` of disks, which averages latencies over disks of different load. Words a console prints
    behind the last row.

Units:
    ``Avg. Disk sec/…`` are seconds and become milliseconds. Disk utilisation is 100 % less ``% Idle Time``, which
    ``% Disk Time`` is not (it exceeds 100 %). Zone offsets in the header are minutes west of UTC. Where the average
    queue of a disk was not recorded, the queue at the moment of each sample stands for it. Hyper-V's wait per dispatch
    is in nanoseconds, the latency of its virtual disks in seconds.

Sources:
    Microsoft Learn, "Windows Performance Monitor disk counters explained" (meaning of sec/Transfer, Idle Time).
    Counter names as used with logman and Get-Counter; those of other languages with a source each in the list.
    Microsoft Learn, "Performance history for virtual hard disks": latencies of Hyper-V Virtual Storage Device are
    seconds. Its explanation of CPU Wait Time Per Dispatch: the average time, in nanoseconds, spent waiting for a
    virtual processor to be dispatched onto a logical processor.
"""

from __future__ import annotations

import re

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.vocabulary import Layer
from leadline.formats.windows.pdh import is_esxtop
from leadline.formats.windows.perfmon_counters import FIELDS, read_log

META = ImporterMeta(
    tool="perfmon",
    marks=("(pdh-",),
    layers=(Layer.GUEST, Layer.DATABASE, Layer.HYPERVISOR_CPU, Layer.HYPERVISOR_MEMORY, Layer.STORAGE_PATH),
    fields={f"{name}\\{counter}": field for (name, counter), field in FIELDS.items()},
    record='typeperf -f CSV -si 5 -sc 120 -o perfmon.csv "\\PhysicalDisk(*)\\*" "\\Processor(*)\\*" "\\System\\*"',
)

_SIGNATURE = re.compile(r"\(PDH-[CT]SV")


def sniff(source: Source) -> int:
    """Sure by the PDH signature without an object that only esxtop has."""
    head = source.head_text
    if not _SIGNATURE.search(head[:4096]) or is_esxtop(head):
        return 0
    return 92


def read(source: Source, request: Request) -> Capture:
    """The capture; see the module's docstring for what is kept."""
    builder = CaptureBuilder(source.name, "perfmon", META.tool)
    table = read_log(source, request, builder)
    known = table.file.utc_offset_min is not None
    return builder.build(host=table.hosts[0] if table.hosts else None, clock_known=known)
