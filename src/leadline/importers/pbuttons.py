"""What an InterSystems IRIS or Caché instance and its guest did, as SystemPerformance (pButtons) reports it.

Reads:
    The HTML report of ``^SystemPerformance`` or ``^pButtons``: its mgstat and vmstat (Linux) sections. An ``.mgst``
    file of ``^mgstat`` alone.

Sample:
    .. code-block:: text

        <!-- beg_mgstat --><pre>
        Date,       Time,    Glorefs, RemGrefs, GRratio,  PhyRds, Rdratio, ..., WDphase, ...
        11/20/2026, 22:57:05,  412034,        0,       0,    1820,   226.4, ...,       0, ...

Lost:
    The sections iostat, sar, perfmon and whatever else the report holds: each is named in a warning. Cut iostat's
    text into a file of its own and read that. The first line of vmstat is the average since boot.

Units:
    mgstat prints rates per second, shares in percent; the queue and phase of the write daemon are as of the moment.
    A write daemon cycle lasts from the last phase 0 before it to the first after it, so it is too long by up to one
    sample; where WDpass says that more than one cycle lies between, it is not measured. A ratio of no reads and a
    share of no seizes are not measured. vmstat prints KiB.

Sources:
    InterSystems documentation, "Monitoring Performance Using ^mgstat"; vmstat(8); the sections' markers as the public
    extractors yape and yaspe of M. Oldfield find them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from leadline.core.capture import Capture, CaptureBuilder
from leadline.core.entities import Entity
from leadline.core.errors import InputError
from leadline.core.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.source import Source
from leadline.core.vocabulary import EntityKind, Layer
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.tables import Columns, SampleTable, Scheme, emit, spread

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
_AS_OF_NOW = {_VMSTAT[name].metric for name in ("r", "b", "swpd", "free", "buff", "cache")}
_BUSY = "guest_cpu_busy_pct"

META = ImporterMeta(
    tool="SystemPerformance",
    layers=(Layer.DATABASE, Layer.GUEST),
    fields={
        **{f"mgstat.{name}": known for name, known in _MGSTAT.items()},
        **{f"vmstat.{name}": known for name, known in _VMSTAT.items()},
        "vmstat.busy": Field(_BUSY, "pct"),
    },
    record='%SYS> set id = $$run^SystemPerformance("24hours")',
)

_HEADING = re.compile(r"^\s*Date\s*,\s*Time\s*,\s*Glorefs\s*,", re.MULTILINE)
_REPORT = re.compile(r'<!-- beg_mgstat -->|<a href="?#mgstat"?>|^Profile run ".*" started', re.MULTILINE)
_BEGIN = re.compile(r"<!--\s*beg_(\w+)\s*-->|<div id=\"?([\w -]{1,30}?)\"?>(?:</div>)?", re.IGNORECASE)
_END = re.compile(r"<!--\s*end_\w+\s*-->|</pre>", re.IGNORECASE)
_TAG = re.compile(r"<[^<>]*>")
_INSTANCE = re.compile(r"^\s*(?:<[^<>]*>)*([\w.-]{1,64}) on machine ([\w.-]{1,253})", re.MULTILINE)
_PRODUCT = re.compile(r"Version String: ?([^\r\n<]{1,200})")
_RUN = re.compile(r"^Profile run .* on ([A-Z][a-z]{2} \d{1,2},? \d{4})\.?", re.MULTILINE)
_CPUS = re.compile(r"numberofcpus=(\d{1,5})\b")
_LEFT_OUT = {"iostat", "nfsiostat", "sar-d", "sar-u", "sar_u", "sar_d", "perfmon", "win_perfmon", "monitor"}


def sniff(source: Source) -> int:
    """Sure by the report's own marks, above the tools whose output lies in it, or by the heading of mgstat."""
    return 99 if _REPORT.search(source.head_text) else 95 if _HEADING.search(source.head_text) else 0


def read(source: Source, request: Request) -> Capture:
    """The capture of a report."""
    builder = CaptureBuilder(source.name, "pbuttons", META.tool)
    text = source.text()
    sections = _sections(text, source, builder)
    if not sections["mgstat"].stamps:
        raise _refused(source, "", "no sample of mgstat")
    run = _day(text)
    dated = request if request.date is not None or run is None else replace(request, date=run.isoformat())
    facts = _facts(text, builder)
    stamps = [stamp for section in sections.values() for stamp in section.stamps]
    clock = StampReader.of(stamps, [], source, dated, builder)
    for kind, section in sections.items():
        if section.stamps:
            times = clock.times_ns(section.stamps, None)
            _emit(kind, section, times, (builder, request, facts))
    return builder.build(host=facts.host, tool_version=facts.version, clock_known=clock.known)


@dataclass(frozen=True, slots=True)
class _Facts:
    guest: Entity
    database: Entity
    host: str | None
    version: str | None


def _facts(text: str, builder: CaptureBuilder) -> _Facts:
    """What the report says of the instance and its machine, noted in the inventory."""
    named, product, cpus = _INSTANCE.search(text), _PRODUCT.search(text), _CPUS.search(text)
    guest = UNNAMED_GUEST if named is None else Entity(EntityKind.GUEST, named[2])
    database = Entity(EntityKind.DATABASE, "iris" if named is None else named[1], guest)
    version = None if product is None else product[1].strip() or None
    builder.inventory.add(guest, builder.info.name, cpu_count=int(cpus[1]) if cpus and int(cpus[1]) else None)
    builder.inventory.add(database, builder.info.name, engine="iris", version=version)
    return _Facts(guest, database, None if named is None else named[2], version)


def _day(text: str) -> date | None:
    """The day the run started, which tells month and day in the samples apart; None when it is not said."""
    match = _RUN.search(text)
    if match is None:
        return None
    try:
        return datetime.strptime(match[1].replace(",", ""), "%b %d %Y").date()  # noqa: DTZ007 - a day has no zone
    except ValueError:
        return None


@dataclass(slots=True)
class _Section:
    """The rows of one section in the order they were printed."""

    kind: str
    columns: tuple[str, ...] = ()
    stamps: list[str] = field(default_factory=list)
    rows: list[list[float]] = field(default_factory=list)
    skipped_count: int = 0

    def line(self, text: str) -> bool:
        """Take in a line; False when it is neither heading nor row. What stands before the heading is no row."""
        words = [word.strip() for word in text.split(",")] if self.kind == "mgstat" else text.split()
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
        else:
            names = words[words.index("r") :] if {"r", "b", "us", "id"} <= set(words) else []
        if not names or len(set(names)) != len(names):
            return False
        if self.columns and self.columns != tuple(names):
            return False
        self.columns = tuple(names)
        return True


def _sections(text: str, source: Source, builder: CaptureBuilder) -> dict[str, _Section]:
    """The sections that are read.

    Raises:
        InputError: a line of one is no row of it.
    """
    found = {kind: _Section(kind) for kind in ("mgstat", "vmstat")}
    lines = text.splitlines()
    cut = bool(lines) and not text.endswith(("\n", "\r")) and not lines[-1].rstrip().endswith(">")
    if cut:
        builder.warn("cut", "the last line has no end and was left out")
        lines.pop()
    inside, left_out = "", set()
    for number, kind, line in _marked(lines, source.head_text):
        inside = kind
        if kind in found:
            if line.strip() and not found[kind].line(line):
                raise _refused(source, f":{number}", repr(line.strip()[:60]))
        elif kind in _LEFT_OUT:
            left_out.add(kind)
    if found["vmstat"].skipped_count and not found["vmstat"].columns:
        builder.warn("vmstat", "vmstat is not that of Linux and was left out")
    for kind in sorted(left_out):
        builder.warn("section", f"the section {kind} was left out; cut its text into a file of its own to read it")
    if inside in found and _REPORT.search(source.head_text):
        builder.warn("cut-section", f"the file ends within {inside}: the report is not complete")
    return found


def _marked(lines: list[str], head: str) -> Iterator[tuple[int, str, str]]:
    """Lines with their number and the section they lie in ("" outside), without tags.

    A file of mgstat alone is one section. The mark of an end closes after its line.
    """
    kind = "" if _REPORT.search(head) or "<html" in head.lower() else "mgstat"
    for number, line in enumerate(lines, 1):
        if "<" not in line:
            yield number, kind, line
            continue
        begins = list(_BEGIN.finditer(line))
        if begins:
            kind = (begins[-1][1] or begins[-1][2]).lower()
            yield number, kind, ""
            line = line[begins[-1].end() :]  # noqa: PLW2901 - a heading may follow its mark on the line
        end = _END.search(line)
        rest = _TAG.sub("", line if end is None else line[: end.start()])
        # The name of the section stands between its mark and <pre>.
        yield number, kind, "" if rest.strip().lower() == kind else rest
        if end is not None:
            kind = ""
            yield number, kind, ""


def _emit(kind: str, section: _Section, times: NDArray[np.int64], into: tuple[CaptureBuilder, Request, _Facts]) -> None:
    """Add the series of a section."""
    builder, request, facts = into
    table = SampleTable("", section.columns)
    fields, entity = (_MGSTAT, facts.database) if kind == "mgstat" else (_VMSTAT, facts.guest)
    values = np.array(section.rows, dtype=np.float64)
    columns = dict(zip(section.columns, values.T, strict=True))
    if kind == "mgstat":
        _without_nothing(columns)
        phases = columns.get("WDphase")
        if phases is not None and np.all(np.diff(times) >= 0):
            columns["WDcycle"] = cycles_s(spread(times), phases, columns.get("WDpass"))
        table = SampleTable("", tuple(columns))
    for index, row in enumerate(np.column_stack(list(columns.values())).tolist()):
        table.add(index, "", row)
    scheme = Scheme(f"pbuttons.{kind}", fields, lambda _group, _item: entity, derive=_add_busy)
    averaged = {known.metric for known in _VMSTAT.values()} - _AS_OF_NOW | {_BUSY} if kind == "vmstat" else set()
    emit(table, times, scheme, builder, request, since_boot=frozenset(averaged))


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


def _refused(source: Source, place: str, found: str) -> InputError:
    return InputError(
        f"{source.name}{place}",
        found=found,
        expected="the HTML report of ^SystemPerformance or ^pButtons with rows of mgstat, or an .mgst file",
        advice="Collect the report anew with `do Collect^SystemPerformance`, and copy it as it is.",
    )
