"""Output of ``pidstat``: CPU time, waiting, memory, I/O and context switches of each process.

Reads:
    Text of sysstat 9 to 12 in any locale, with any of ``-d -u -r -w -s -v -R -l -U -t``, a table per topic or all in one
    line (``-h``, with clock or epoch times), and ``-o JSON``. "Average:" lines are no samples and are passed over.

Sample:
    .. code-block:: text

        # Time        UID       PID    %usr %system  %guest   %wait    %CPU   CPU   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
        22:58:01        0      6799    0.00    0.00    0.00    0.00    0.00     1     27.72     31.68      0.00       0  kworker/u8:0+flush-254:0

Lost:
    Threads (``-t``): their process has the sums. The user, the CPU a process last ran on and its scheduling policy.
    pidstat leaves out processes that did nothing in an interval; they are "not measured" there, not 0.

Units:
    kB is KiB. 100 % is one CPU, unless ``-I`` was given, which the output does not say. -1.00 of the I/O columns means
    "not permitted" and is not measured. A report without an interval is since the start of the process; where the
    output does not show that (``-h``, JSON), a single report is taken as such.

Sources:
    pidstat(1) of sysstat.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from leadline.core.capture import Capture, CaptureBuilder
from leadline.core.entities import Entity
from leadline.core.importer import Field, ImporterMeta, Request
from leadline.core.source import Source
from leadline.core.sysstat import (
    Layout,
    clock_known,
    lone_report,
    number,
    parse_banner,
    read_text,
    record_guest,
    times_of,
)
from leadline.core.sysstat_export import read_json
from leadline.core.tables import Columns, Scheme, emit
from leadline.core.vocabulary import EntityKind, Layer

_TEXT_FIELDS = {
    "%usr": Field("process_cpu_user_pct", "pct"),
    "%user": Field("process_cpu_user_pct", "pct"),
    "%system": Field("process_cpu_system_pct", "pct"),
    "%wait": Field("process_cpu_wait_pct", "pct"),
    "%CPU": Field("process_cpu_pct", "pct"),
    "majflt/s": Field("guest_major_faults_per_s", "per_s"),
    "VSZ": Field("process_memory_virtual_kib", "kib"),
    "RSS": Field("process_memory_resident_kib", "kib"),
    "kB_rd/s": Field("process_read_kib_per_s", "kib_per_s"),
    "kB_wr/s": Field("process_write_kib_per_s", "kib_per_s"),
    "iodelay": Field("process_io_delay_count", "count"),
    "cswch/s": Field("guest_context_switches_per_s", "per_s"),
}
_JSON_FIELDS = {
    "task-cpu-load.usr": _TEXT_FIELDS["%usr"],
    "task-cpu-load.system": _TEXT_FIELDS["%system"],
    "task-cpu-load.wait": _TEXT_FIELDS["%wait"],
    "task-cpu-load.cpu": _TEXT_FIELDS["%CPU"],
    "task-memory.majflt/s": _TEXT_FIELDS["majflt/s"],
    "task-memory.VSZ": _TEXT_FIELDS["VSZ"],
    "task-memory.RSS": _TEXT_FIELDS["RSS"],
    "io.kB_rd/s": _TEXT_FIELDS["kB_rd/s"],
    "io.kB_wr/s": _TEXT_FIELDS["kB_wr/s"],
    "io.iodelay": _TEXT_FIELDS["iodelay"],
    "context-switch.cswch/s": _TEXT_FIELDS["cswch/s"],
}

META = ImporterMeta(
    tool="pidstat",
    layers=(Layer.GUEST,),
    fields={**_TEXT_FIELDS, **_JSON_FIELDS},
    record="pidstat -h -d -u -r -w 1 > pidstat.txt",
)

_NOT_NUMBERS = frozenset({"UID", "USER", "PID", "TGID", "TID", "CPU", "prio", "policy", "Command"})
_SUMS = (  # pidstat splits what the canonical metric counts together
    ("guest_context_switches_per_s", ("cswch/s", "context-switch.cswch/s"), ("nvcswch/s", "context-switch.nvcswch/s")),
    ("guest_page_faults_per_s", ("minflt/s", "task-memory.minflt/s"), ("majflt/s", "task-memory.majflt/s")),
)
_NAME_LENGTH_MAX = 80  # Judgement: enough to know a command line by, with -l they can have thousands of characters
_KWORKER = re.compile(r"^(kworker/[^+\-]+)[+\-].*$")
_PID = re.compile(r"\b(?:PID|TGID)\b.*\bCommand\s*$")


def sniff(source: Source) -> int:
    """Sure by the heading, which holds a process number and ends in the command, or by the keys in JSON."""
    text = source.head_text
    if text.lstrip()[:12].startswith('{"sysstat"'):
        return 95 if '"cmd":' in text and ('"TGID"' in text or '"PID"' in text) else 0
    lines = text.splitlines()[:40]
    return 95 if any(map(parse_banner, lines)) and any(map(_PID.search, lines)) else 0


def read(source: Source, request: Request) -> Capture:
    """The series of processes that did something.

    Raises:
        InputError: no report, or damage before the last line.
    """
    builder = CaptureBuilder(source.name, "pidstat", META.tool)
    if source.head_text.lstrip().startswith("{"):
        recording = read_json(source, request, builder, _json_process)
    else:
        recording = read_text(source, _layout, builder)
    headed = any(table.lead_in is not None for table in recording.tables.values())
    boot = not headed and lone_report(recording, builder)
    guest = record_guest(recording, builder)

    def process(group: str, item: str) -> Entity:
        del group
        return Entity(EntityKind.PROCESS, item, guest)

    for table in recording.tables.values():
        fields = dict(META.fields)
        for metric, one, other in _SUMS:
            names = set(table.columns)
            if not (names & set(one) and names & set(other)):
                fields = {name: known for name, known in fields.items() if known.metric != metric}
        extra = {name: Field(_PART + name, "unknown") for _, *parts in _SUMS for name in parts[0] + parts[1]}
        del extra
        scheme = Scheme("pidstat", fields, process, derive=_without_refused, guest=guest)
        times = times_of(recording, table, request, builder)
        emit(table, times, scheme, builder, request, since_boot=boot or table.starts_at_boot)
    return builder.build(host=guest.name, clock_known=clock_known(recording, request, builder))
