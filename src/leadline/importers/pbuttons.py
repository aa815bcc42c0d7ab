"""What an InterSystems IRIS or Caché instance and its guest did, as SystemPerformance (pButtons) reports it.

Reads:
    The HTML report of ``^SystemPerformance`` or ``^pButtons``: mgstat; on Linux vmstat, iostat, ``sar -u``, ``sar -d``
    and free; on Windows perfmon. What it says of the machine and the instance: CPF file, cpu, Linux info,
    ``sysctl -a``, mount and ``df -m``. An ``.mgst`` file of ``^mgstat`` alone.

Sample:
    .. code-block:: text

        <div id=mgstat></div>mgstat<br><!-- beg_mgstat --><pre>
        Date,       Time,    Glorefs, RemGrefs, GRratio,  PhyRds, Rdratio, ..., WDphase, ...
        11/20/2026, 22:57:05,  412034,        0,       0,    1820,   226.4, ...,       0, ...
        </pre>
        <div id=iostat></div>iostat<br><pre>
        Linux 5.14.0 (db01)     11/20/2026      _x86_64_        (8 CPU)

Lost:
    Sections of AIX, HP-UX and macOS, nfsiostat, and perfmon that was processed (a setting of SystemPerformance): each
    is named in a warning. ``%SS``, irisstat, ipcs and ps. What an earlier section shows is not read from a later one
    again: CPU shares of vmstat come before those of iostat and sar, and ``sar -d`` is read where there is no iostat.
    The first line of vmstat is the average since boot. Reports of iostat without times are placed by the run's start
    and interval.

Units:
    mgstat prints rates per second, shares in percent; the queue and phase of the write daemon are as of the moment.
    A write daemon cycle lasts from the last phase 0 before it to the first after it, so it is too long by up to one
    sample; where WDpass says that more than one cycle lies between, it is not measured. A ratio of no reads and a
    share of no seizes are not measured. vmstat prints KiB, free MiB. The others are as their own importers say.

Sources:
    InterSystems documentation, "Monitoring Performance Using ^mgstat" and "... ^SystemPerformance" (contents of the
    report by platform); vmstat(8), free(1). The sections' marks and headings as public readers of reports find them:
    yape, yaspe (extract_sections.py, sp_check.py and its tests) and pButtons-unpack of M. Oldfield, pButtonsExtract
    (linux.sh, win.sh), pbuttons-parser (section table).
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.core.system.leftovers import scratch_folder
from leadline.formats.iris.pbuttons_facts import ReportMachine, SamplingSpan, note_facts
from leadline.formats.iris.pbuttons_texts import TEXTS, TextReader
from leadline.formats.iris.report_sections import Folded, Sections, cut_into_sections
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.sysstat import iostat_columns, sar_columns
from leadline.formats.tables import Columns, SampleTable, TableScheme, emit, spread
from leadline.formats.windows import perfmon_counters

_MGSTAT = {
    "Glorefs": Field("db_iris_glorefs_per_s", "per_s"),
    "PhyRds": Field("db_iris_physical_reads_per_s", "per_s"),
    "Rdratio": Field("db_iris_read_ratio", "ratio"),
    "pGblAsz": Field("db_iris_seize_waits_pct", "pct"),
    "WDcycle": Field("db_iris_write_daemon_phase_s", "s"),
}
_VMSTAT = {
    "r": Field("guest_run_queue_count", "count"),
    "b": Field("guest_blocked_count", "count"),
    "swpd": Field("guest_swap_used_mib", "kib"),
    "free": Field("guest_memory_free_mib", "kib"),
    "buff": Field("guest_memory_buffers_mib", "kib"),
    "cache": Field("guest_memory_cached_mib", "kib"),
    "si": Field("guest_swap_in_kib_per_s", "kib_per_s"),
    "so": Field("guest_swap_out_kib_per_s", "kib_per_s"),
    "bi": Field("guest_block_in_kib_per_s", "kib_per_s"),
    "bo": Field("guest_block_out_kib_per_s", "kib_per_s"),
    "in": Field("guest_interrupts_per_s", "per_s"),
    "cs": Field("guest_context_switches_per_s", "per_s"),
    "us": Field("guest_cpu_user_pct", "pct"),
    "sy": Field("guest_cpu_system_pct", "pct"),
    "id": Field("guest_cpu_idle_pct", "pct"),
    "wa": Field("guest_cpu_iowait_pct", "pct"),
    "st": Field("guest_cpu_steal_pct", "pct"),
}
_FREE = {
    "free": Field("guest_memory_free_mib", "mib"),
    "available": Field("guest_memory_available_mib", "mib"),
    "buffers": Field("guest_memory_buffers_mib", "mib"),
    "cached": Field("guest_memory_cached_mib", "mib"),
    "swap_used": Field("guest_swap_used_mib", "mib"),
    "swapused": Field("guest_swap_used_mib", "mib"),
}
_AS_OF_NOW = {_VMSTAT[name].metric for name in ("r", "b", "swpd", "free", "buff", "cache")}
_BUSY = "guest_cpu_busy_pct"

META = ImporterMeta(
    tool="SystemPerformance",
    marks=("beg_mgstat", "#mgstat", "profile run", "glorefs"),
    layers=(Layer.DATABASE, Layer.GUEST),
    fields={
        **{f"mgstat.{name}": known for name, known in _MGSTAT.items()},
        **{f"vmstat.{name}": known for name, known in _VMSTAT.items()},
        "vmstat.busy": Field(_BUSY, "pct"),
        **{f"free.{name}": known for name, known in _FREE.items()},
        **{f"iostat.{name}": known for name, known in iostat_columns.FIELDS.items()},
        **{f"sar.{name}": known for name, known in sar_columns.FIELDS.items()},
        **{f"perfmon.{name}\\{counter}": known for (name, counter), known in perfmon_counters.FIELDS.items()},
    },
    record='%SYS> set id = $$run^SystemPerformance("24hours")',
)

_HEADING = re.compile(r"^[^\S\n]*+Date\s*+,\s*+Time\s*+,\s*Glorefs\s*,", re.MULTILINE)
_REPORT = re.compile(r'<!-- beg_mgstat -->|<a href="?#mgstat"?>|^Profile run ".*" started', re.MULTILINE)
_ROWS = ("mgstat", "vmstat", "free")
_LEFT_OUT = ("nfsiostat", "monitor")


def sniff(source: Source) -> int:
    """Sure by the report's own marks, above the tools whose output lies in it, or by the heading of mgstat."""
    return 99 if _REPORT.search(source.head_text) else 95 if _HEADING.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a report.

    Raises:
        InputError: it holds no sample of mgstat, or a section is damaged.
    """
    builder = CaptureBuilder(source.name, "pbuttons", META.tool)
    text = source.text()
    sections = _sections(text, source, builder)
    rows = {name: _rows_of(name, sections, source) for name in _ROWS}
    if not rows["mgstat"].stamps:
        raise _refused(source, "", "no sample of mgstat")
    if rows["vmstat"].skipped_count and not rows["vmstat"].columns:
        builder.warn("vmstat", "vmstat is not that of Linux and was left out")
    run = SamplingSpan.of(text)
    dated = request if request.date is not None or run.day is None else replace(request, date=run.day.isoformat())
    machine = note_facts(text, sections, builder)
    clock = StampReader.of([stamp for each in rows.values() for stamp in each.stamps], [], source, dated, builder)
    folded = Folded(builder)
    for name in ("mgstat", "vmstat"):
        _emit(rows[name], clock, folded, (request, machine))
    with scratch_folder("report") as folder:
        known = TextReader(source, sections, dated, machine, run, folder).read(folded)
    _emit(rows["free"], clock, folded, (request, machine))
    return builder.build(host=machine.host, tool_version=machine.version, clock_known=clock.known and known)


def _sections(text: str, source: Source, builder: CaptureBuilder) -> Sections:
    """Cut a report into its sections; a last line without an end is dropped, with a warning."""
    report = _REPORT.search(source.head_text) is not None
    lines = text.splitlines()
    if lines and not text.endswith(("\n", "\r")) and not lines[-1].rstrip().endswith(">"):
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    sections = cut_into_sections(lines, "" if report or "<html" in source.head_text.lower() else "mgstat")
    for name in _LEFT_OUT:
        if name in sections.lines:
            builder.warn("section", f"the section {name} was left out: no importer reads it")
    if report and sections.last in {*_ROWS, *TEXTS}:
        builder.warn("cut-section", f"the file ends within {sections.last}: the report is not complete")
    return sections


def _rows_of(name: str, sections: Sections, source: Source) -> _Rows:
    """The rows of a section.

    Raises:
        InputError: a line is no row of it.
    """
    rows = _Rows(name)
    for number, line in sections.of(name):
        if not rows.line(line):
            raise _refused(source, f":{number}", repr(line.strip()[:60]))
    return rows


@dataclass(slots=True)
class _Rows:
    """The rows of one section in the order they were printed."""

    kind: str
    columns: tuple[str, ...] = ()
    stamps: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    skipped_count: int = 0

    def line(self, text: str) -> bool:
        """Take in a line; False when it is neither heading nor row. What stands before the heading is no row."""
        words = text.split() if self.kind == "vmstat" else [word.strip() for word in text.split(",")]
        while words and not words[-1]:
            words.pop()
        if self._heading(words) or "----" in text:
            return True
        if not self.columns:
            self.skipped_count += 1
            return True
        stamp = parse_stamp(" ".join(words[:2]))
        lead = 2
        if len(words) > 2 and words[2].upper() in {"AM", "PM"}:
            stamp, lead = parse_stamp(" ".join(words[:3])), 3
        if stamp is None or not stamp.day or len(words) - lead != len(self.columns):
            return False
        try:
            self.rows.append([float(word) for word in words[lead:]])
        except ValueError:
            return False
        self.stamps.append(" ".join(words[:lead]))
        return True

    def _heading(self, words: list[str]) -> bool:
        if self.kind == "mgstat":
            names = words[2:] if words[:3] == ["Date", "Time", "Glorefs"] else []
        elif self.kind == "free":
            names = [word.casefold() for word in words[2:]] if words[:2] == ["Date", "Time"] else []
        else:
            names = words[words.index("r") :] if {"r", "b", "us", "id"} <= set(words) else []
        if not names or len(set(names)) != len(names):
            return False
        if self.columns and self.columns != tuple(names):
            return False
        self.columns = tuple(names)
        return True


def _emit(rows: _Rows, clock: StampReader, folded: Folded, of: tuple[Request, ReportMachine]) -> None:
    """Add the series of a section."""
    if not rows.stamps:
        return
    request, machine = of
    times = clock.times_ns(rows.stamps, None)
    fields = {"mgstat": _MGSTAT, "vmstat": _VMSTAT, "free": _FREE}[rows.kind]
    entity = machine.database if rows.kind == "mgstat" else machine.guest
    columns = dict(zip(rows.columns, np.array(rows.rows, dtype=np.float64).T, strict=True))
    if rows.kind == "mgstat":
        _without_nothing(columns)
        phases = columns.get("WDphase")
        if phases is not None and np.all(np.diff(times) >= 0):
            columns["WDcycle"] = cycles_s(spread(times), phases, columns.get("WDpass"))
    table = SampleTable("", tuple(columns))
    for index, row in enumerate(np.column_stack(list(columns.values())).tolist()):
        table.add(index, "", row)
    scheme = TableScheme(f"pbuttons.{rows.kind}", fields, lambda _group, _item: entity, derive=_add_busy)
    vmstat = {known.metric for known in _VMSTAT.values()} - _AS_OF_NOW | {_BUSY}
    averaged = frozenset(vmstat) if rows.kind == "vmstat" else frozenset[str]()
    with folded.part() as builder:
        emit(table, times, scheme, builder, request, since_boot=averaged)


def _add_busy(columns: Columns) -> None:
    if "guest_cpu_idle_pct" in columns and "guest_cpu_iowait_pct" in columns:
        waiting = columns["guest_cpu_iowait_pct"] + columns["guest_cpu_idle_pct"]
        columns[_BUSY] = np.clip(100.0 - waiting, 0.0, 100.0)


def _without_nothing(columns: Columns) -> None:
    """The ratio of no reads and the share of no seizes are printed as 0: not measured, in place."""
    for name, of in (("Rdratio", "PhyRds"), ("pGblAsz", "GblSz"), ("pGblNsz", "GblSz")):
        if name in columns and of in columns:
            columns[name] = np.where(columns[of] > 0, columns[name], np.nan)


def cycles_s(
    times_ns: NDArray[np.int64], phases: NDArray[np.float64], passes: NDArray[np.float64] | None
) -> NDArray[np.float64]:
    """How long each cycle of the write daemon took, in seconds.

    Args:
        times_ns: int64 [n] ascending, UTC nanoseconds.
        phases: [n] WDphase; 0 is idle.
        passes: [n] WDpass, cycles since the start of the instance, or None.

    Returns:
        [n] seconds at the first idle sample after a cycle, NaN elsewhere and for cycles whose start or end is not in
        the recording.

    >>> cycles_s(np.arange(5) * 10**10, np.array([0.0, 5, 8, 0, 0]), None).tolist()
    [nan, nan, nan, 30.0, nan]
    """
    taken = np.full(len(times_ns), np.nan)
    idle = np.flatnonzero(phases == 0)
    for before, after in pairwise(idle):
        if after - before > 1 and (passes is None or passes[after] - passes[before] <= 1):
            taken[after] = (times_ns[after] - times_ns[before]) / 1e9
    return taken


def _refused(source: Source, place: str, problem: str) -> InputError:
    return InputError(
        f"{source.name}{place}",
        found=problem,
        expected="the HTML report of ^SystemPerformance or ^pButtons with rows of mgstat, or an .mgst file",
        advice="Collect the report anew with `do Collect^SystemPerformance`, and copy it as it is.",
    )
