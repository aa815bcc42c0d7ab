"""Output of ``top -b``: load, CPU, memory and the busiest processes of a Linux guest.

Reads:
    ``top -b`` of procps 3.2 and later, any number of reports, with any columns among the processes; the heads alone, as
    people paste them, also those of procps 2, Solaris, FreeBSD and OpenBSD.

Sample:
    .. code-block:: text

        top - 23:34:40 up 53 min,  0 user,  load average: 2.54, 2.85, 2.14
        Tasks:   2 total,   1 running,   1 sleeping,   0 stopped,   0 zombie
        %Cpu(s):  0.0 us,  0.0 sy,  0.0 ni,100.0 id,  0.0 wa,  0.0 hi,  0.0 si,  0.0 st
        MiB Mem :  24105.6 total,  22131.3 free,   1090.1 used,   1333.9 buff/cache

Lost:
    With ``-p`` the counts of tasks, which are then those of the processes shown. Columns of processes but CPU, memory
    and command. top prints no date. Translated output is not read: record with ``LC_ALL=C``. The processes of procps 2
    and other systems, and lines before the first report.

Units:
    Percent; 100 % of a process is one CPU. Memory as its line says (KiB, MiB, GiB), of processes KiB or with a letter.
    CPU shares of the first report are averages since boot; heads without processes come from a screen that was running,
    and their shares are taken for those of the seconds before. Where only single CPUs are shown, all are their mean.

Sources:
    top(1) of procps-ng, procps 2 and 3.2, FreeBSD and OpenBSD; unixtop for Solaris.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime, time, timedelta

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.io.clock import assumed_date, rolled_over, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.sysstat.text import add_cpu_busy, clock_of
from leadline.formats.tables import SampleTable, TableScheme, emit
from leadline.formats.top_heads import cpu_shares, head_of, old_amounts, one_cpu_shares

META = ImporterMeta(
    tool="top",
    marks=("top - ", "load average"),
    layers=(Layer.GUEST,),
    fields={
        "load 1": Field("guest_load_1m", "count"),
        "load 5": Field("guest_load_5m", "count"),
        "load 15": Field("guest_load_15m", "count"),
        "Tasks total": Field("guest_task_count", "count"),
        "Tasks running": Field("guest_run_queue_count", "count"),
        "us": Field("guest_cpu_user_pct", "pct"),
        "sy": Field("guest_cpu_system_pct", "pct"),
        "ni": Field("guest_cpu_nice_pct", "pct"),
        "id": Field("guest_cpu_idle_pct", "pct"),
        "wa": Field("guest_cpu_iowait_pct", "pct"),
        "hi": Field("guest_cpu_irq_pct", "pct"),
        "si": Field("guest_cpu_softirq_pct", "pct"),
        "st": Field("guest_cpu_steal_pct", "pct"),
        "Mem free": Field("guest_memory_free_mib", "kib"),
        "Mem avail": Field("guest_memory_available_mib", "kib"),
        "Swap used": Field("guest_swap_used_mib", "kib"),
        "%CPU": Field("process_cpu_pct", "pct"),
        "RES": Field("process_memory_resident_kib", "kib"),
        "VIRT": Field("process_memory_virtual_kib", "kib"),
    },
    record="LC_ALL=C top -b -d 1 > top.txt",
)

_NUMBER = r"(?<!\d)(\d++(?:\.\d*+)?)"
_HEAD = re.compile(rf"top - (\d\d:\d\d:\d\d) up .*load average: {_NUMBER}, {_NUMBER}, {_NUMBER}\s*", re.ASCII)
_SHARE = re.compile(rf"{_NUMBER}\s*+(?:%\s*+)?(us|sy|ni|id|wa|hi|si|st)\b", re.ASCII)
_AMOUNT = re.compile(rf"{_NUMBER}\+?\s*+(total|running|free|used|avail)", re.ASCII)
_SIZES = {"K": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4}
_SIZE = re.compile(r"(\d+(?:\.\d+)?)([kmgtp]?)", re.ASCII)
_MEMORY = re.compile(r"([KMGTP])iB (Mem|Swap)\s*:")
_SNIFFED_LINES = 12
_HEAD_LINES = 5  # from the time to the CPUs
_CHOSEN_MAX = 20  # top -p takes no more processes, and no Linux machine has fewer tasks
_WANTED = ("%CPU", "RES", "VIRT")
_AVERAGED = frozenset(
    {known.metric for known in META.fields.values() if "cpu" in known.metric} | {"guest_cpu_busy_pct"}
)


def sniff(source: Source) -> int:
    """Sure by the first line of a report, which names the tool."""
    lines = source.head_text.splitlines()[:_SNIFFED_LINES]
    heads = [place for place, line in enumerate(lines) if _HEAD.fullmatch(line) or head_of(line)]
    shares = [place for place, line in enumerate(lines) if cpu_shares(line) or one_cpu_shares(line)]
    return 95 if heads and any(0 < place - heads[0] <= _HEAD_LINES for place in shares) else 0


@dataclass(slots=True)
class _Report:
    """One report: when, of the machine, of each process."""

    time_of_day_ns: int
    values: dict[str, float]
    columns: list[str] = field(default_factory=list)
    processes: dict[str, list[float]] = field(default_factory=dict)
    cpus: list[dict[str, float]] = field(default_factory=list)
    is_old: bool = False


def read(source: Source, request: Request) -> Capture:
    """The guest's load, CPU and memory, and the CPU and memory of its processes.

    Raises:
        InputError: no report, or a line that belongs into none.
    """
    builder = CaptureBuilder(source.name, "top", META.tool)
    reports = _reports(source, builder)
    for report in reports:
        if report.cpus and "id" not in report.values:
            names_of = set.intersection(*(set(cpu) for cpu in report.cpus))
            report.values |= {name: sum(cpu[name] for cpu in report.cpus) / len(report.cpus) for name in names_of}
    if any(report.values.get("Tasks total", _CHOSEN_MAX + 1) <= _CHOSEN_MAX for report in reports):
        builder.warn("tasks", "only chosen processes were shown (top -p): the counts of tasks were left out")
        for report in reports:
            report.values = {name: value for name, value in report.values.items() if not name.startswith("Tasks")}
    times = _times(reports, source, request, builder)
    names = tuple(dict.fromkeys(name for report in reports for name in report.values))
    machine = SampleTable("", names)
    processes = SampleTable("process", _WANTED)
    for index, report in enumerate(reports):
        machine.add(index, "", [report.values.get(name, float("nan")) for name in names])
        for process, values in report.processes.items():
            processes.add(index, process, values)

    def entity(group: str, item: str) -> Entity:
        return Entity(EntityKind.PROCESS, item, UNNAMED_GUEST) if group else UNNAMED_GUEST

    scheme = TableScheme("top", META.fields, entity, derive=add_cpu_busy)
    is_screen = not any(report.columns for report in reports)
    if is_screen:
        builder.warn("screen", "heads without processes: shares of CPU are taken for those of the seconds before each")
    emit(machine, times, scheme, builder, request, since_boot=frozenset() if is_screen else _AVERAGED)
    emit(processes, times[np.array(processes.moments, dtype=np.intp)], scheme, builder, request, since_boot=_AVERAGED)
    return builder.build(clock_known=False)


def _times(reports: list[_Report], source: Source, request: Request, builder: CaptureBuilder) -> NDArray[np.int64]:
    """Times of the reports; the date is assumed, so they are not certain."""
    day = assumed_date(source, request)
    midnight = datetime.combine(day, time())
    if request.date is None:
        builder.warn("no-date", f"top prints no date; {day} was assumed; --date sets it")
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    moments = rolled_over(report.time_of_day_ns for report in reports)
    return np.array(
        [to_ns(midnight + timedelta(microseconds=int(m) // 1000), request) for m in moments], dtype=np.int64
    )


def _reports(source: Source, builder: CaptureBuilder) -> list[_Report]:
    reports: list[_Report] = []
    text = source.text()
    lines = text.splitlines()
    last = len(lines) if text[-1:] not in {"\n", "\r"} else 0
    for index, line in enumerate(lines, 1):
        if not line.strip():
            continue
        is_head = _HEAD.fullmatch(line) is not None or head_of(line) is not None
        if not reports and not is_head:
            builder.warn("other-lines", "lines before the first report were left out")
            continue
        if not is_head and reports[-1].is_old and reports[-1].columns:
            builder.warn("processes", "the processes of this version of top were left out")
            continue
        may_be_cut = index == last and (is_head or bool(reports[-1].columns))  # shares are read with their names only
        if may_be_cut or not _take(reports, line):
            if index == len(lines):
                builder.warn("cut", "the last line is cut and was left out")
                continue
            raise _refused(f"{source.name}:{index}", line)
    if not any(report.values for report in reports):
        raise _refused(source.name, "no report")
    return reports


def _take(reports: list[_Report], line: str) -> bool:
    """Take in a line; False when it belongs to no report."""
    head = _HEAD.fullmatch(line)
    try:
        if head is not None:
            clock = clock_of(head[1])
            loads = dict(zip(("load 1", "load 5", "load 15"), map(float, head.groups()[1:]), strict=True))
            reports.append(_Report(clock[0], loads)) if clock else None
            return clock is not None
        old = head_of(line)
        if old is not None:
            reports.append(_Report(old.time_of_day_ns, dict(old.loads), is_old=True))
            return True
        if not reports:
            return False
        report = reports[-1]
        if report.columns:
            return _process(report, line)
        words = line.split()
        if words[0] == "PID" and words[-1] in {"COMMAND", "Command"}:
            report.columns = words
            return True
        return _summary(report, line)
    except ValueError:
        return False


def _summary(report: _Report, line: str) -> bool:
    shares, one = cpu_shares(line), one_cpu_shares(line)
    if shares is not None or one is not None:
        report.values |= shares or {}
        report.cpus += [one] if one else []
        return True
    old = old_amounts(line)
    if old is not None:
        report.values |= old
        return True
    memory = _MEMORY.match(line)
    amounts = _AMOUNT.findall(line)
    if line.startswith(("Tasks:", "Threads:")):
        report.values |= {f"Tasks {n}": float(v) for v, n in amounts if n in {"total", "running"}}
    elif memory is not None:
        for value, name in amounts:
            kind = "Mem" if name == "avail" else memory[2]  # printed at the end of the line of swap
            report.values[f"{kind} {name}"] = float(value) * _SIZES[memory[1]]
    return bool(amounts)


def _process(report: _Report, line: str) -> bool:
    cells = line.split(None, len(report.columns) - 1)
    if len(cells) != len(report.columns) or not cells[0].isdigit():
        return False
    by_name = dict(zip(report.columns, cells, strict=True))
    values = [float("nan") if name not in by_name else _size_kib(by_name[name]) for name in _WANTED]
    report.processes[f"{cells[-1].strip()[:80]}[{cells[0]}]"] = values
    return True


def _size_kib(text: str) -> float:
    """A size of a process in KiB, or a plain number."""
    match = _SIZE.fullmatch(text)
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _SIZES[match[2].upper() or "K"]


def _refused(where: str, text: str) -> InputError:
    return InputError(
        where,
        found=f"{text.strip()[:60]!r}",
        expected="a report of top -b in English",
        advice=f"Record it again: {META.record}",
    )
