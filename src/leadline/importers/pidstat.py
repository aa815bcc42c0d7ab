"""Output of ``pidstat``: CPU time, waiting, memory, I/O and context switches of each process.

Reads:
    Text of sysstat 9 to 12 in any locale, with any of ``-d -u -r -w -s -v -R -l -U -t``, a table per topic or all in
    one line (``-h``, with clock or epoch times), and ``-o JSON``. "Average:" lines are no samples and are passed over.

Sample:
    .. code-block:: text

        22:58:00      UID       PID   kB_rd/s   kB_wr/s kB_ccwr/s iodelay  Command
        22:58:01        0      6799     28.00     20.00      0.00       0  kworker/u8:0+flush-254:0

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

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.sysstat.export import read_json
from leadline.formats.sysstat.text import (
    TableLayout,
    clock_known,
    clock_of,
    lone_report,
    number,
    parse_banner,
    read_text,
    record_guest,
    times_of,
)
from leadline.formats.tables import Columns, TableScheme, emit

_FIELDS = {
    "task-cpu-load": {
        "%usr usr": Field("process_cpu_user_pct", "pct"),
        "%user user": Field("process_cpu_user_pct", "pct"),
        "%system system": Field("process_cpu_system_pct", "pct"),
        "%wait wait": Field("process_cpu_wait_pct", "pct"),
        "%CPU cpu": Field("process_cpu_pct", "pct"),
    },
    "task-memory": {
        "minflt/s": Field("guest_page_faults_per_s", "per_s"),
        "majflt/s": Field("guest_major_faults_per_s", "per_s"),
        "VSZ": Field("process_memory_virtual_kib", "kib"),
        "RSS": Field("process_memory_resident_kib", "kib"),
    },
    "io": {
        "kB_rd/s": Field("process_read_kib_per_s", "kib_per_s"),
        "kB_wr/s": Field("process_write_kib_per_s", "kib_per_s"),
        "iodelay": Field("process_io_delay_count", "count"),
    },
    "context-switch": {
        "cswch/s": Field("guest_context_switches_per_s", "per_s"),
        "nvcswch/s": Field("guest_context_switches_per_s", "per_s"),
    },
}

META = ImporterMeta(
    tool="pidstat",
    marks=('"cmd":', "command"),
    layers=(Layer.GUEST,),
    fields={
        **{names.split()[0]: known for fields in _FIELDS.values() for names, known in fields.items()},
        **{f"{topic}.{n.split()[-1]}": known for topic, fields in _FIELDS.items() for n, known in fields.items()},
    },
    record="pidstat -h -d -u -r -w 1 > pidstat.txt",
)

# pidstat splits what the canonical metrics count together.
_SUMS = tuple(
    (metric, (f"{prefix}{one}", f"{prefix}{other}"))
    for metric, topic, one, other in (
        ("guest_context_switches_per_s", "context-switch.", "cswch/s", "nvcswch/s"),
        ("guest_page_faults_per_s", "task-memory.", "minflt/s", "majflt/s"),
    )
    for prefix in ("", topic)
)
_SPLIT = {metric for metric, _ in _SUMS}
_NOT_NUMBERS = frozenset({"UID", "USER", "PID", "TGID", "TID", "CPU", "prio", "policy", "Command"})
_NAME_LENGTH_MAX = 80  # Judgement: enough to know a command line by, with -l they can have thousands of characters
_KWORKER = re.compile(r"^(kworker/[^+\-]+)[+\-].*$")
_OWN = re.compile(r"%usr|kB_rd/s|minflt/s|cswch/s|StkSize")
_PID = re.compile(r"\b(?:PID|TGID)\b.*\bCommand\s*$")


def sniff(source: Source) -> int:
    """Sure by the heading, which holds a process number and ends in the command, or by the keys in JSON."""
    text = source.head_text
    if text.lstrip()[:12].startswith('{"sysstat"'):
        return 95 if '"cmd":' in text and ('"TGID"' in text or '"PID"' in text) else 0
    lines = text.splitlines()[:40]
    headings = [line for line in lines if _PID.search(line)]
    if any(map(parse_banner, lines)):
        return 95 if headings else 0
    # Without its first line it is an excerpt, known by the clock before a heading of its own columns.
    return 90 if any(clock_of(line) and _OWN.search(line) for line in headings) else 0


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

    fields = {name: known for name, known in META.fields.items() if known.metric not in _SPLIT}
    scheme = TableScheme("pidstat", fields, process, sums=_SUMS, derive=_without_refused, guest=guest)
    for table in recording.tables.values():
        times = times_of(recording, table, request, builder)
        emit(table, times, scheme, builder, request, since_boot=boot or table.starts_at_boot)
    host = recording.banners[0].host if recording.banners else None
    return builder.build(host=host, clock_known=clock_known(recording, request, builder))


def _layout(words: list[str]) -> TableLayout | None:
    """The layout below a heading: numbers by place, the command is all the rest of the line."""
    identity = next((name for name in ("PID", "TGID") if name in words), None)
    if identity is None or words[-1] != "Command":
        return None
    width, pid_at = len(words), words.index(identity)
    thread_at = words.index("TID") if "TID" in words else None
    kept = [j for j, name in enumerate(words) if name not in _NOT_NUMBERS]

    def parse(text: str) -> tuple[str, list[float]] | None:
        tokens = text.split(None, width - 1)
        if len(tokens) != width:
            message = f"{len(tokens)} columns"
            raise ValueError(message)
        if thread_at is not None and tokens[thread_at].isdigit() and tokens[pid_at] == "-":
            return None
        if not tokens[pid_at].isdigit():
            raise ValueError(tokens[pid_at])
        try:
            values = [float(tokens[j]) for j in kept]
        except ValueError:
            values = [number(tokens[j]) for j in kept]
        return _name(tokens[-1], tokens[pid_at]), values

    return TableLayout("PID", tuple(words[j] for j in kept), parse)


def _json_process(entry: Mapping[str, Any]) -> str | None:
    """The process of an entry, None for a thread."""
    if entry.get("TID"):
        return None
    return _name(str(entry["cmd"]), str(entry.get("PID") or entry["TGID"]))


def _name(command: str, pid: str) -> str:
    """Name and number; a kernel worker's name ends in its present task, which is not part of it."""
    plain = " ".join(command.split())
    plain = _KWORKER.sub(r"\1", plain)[:_NAME_LENGTH_MAX]
    return f"{plain}[{pid}]"


def _without_refused(columns: Columns) -> None:
    """Negative numbers stand for counters the kernel did not let pidstat read."""
    for name, column in columns.items():
        columns[name] = np.where(column < 0, np.nan, column)
