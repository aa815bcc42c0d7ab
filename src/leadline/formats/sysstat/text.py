"""What the text of sysstat's tools has in common: the banner, the clock, tables with headings, averages.

``sar``, ``mpstat`` and ``pidstat`` print the same frame in every version and language::

    Linux 5.4.0 (db01)  11/20/2026  _x86_64_  (8 CPU)

    10:57:51 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
    10:57:52 PM  all    0.51    0.00    1.54    3.08    0.00    0.00    0.00    0.00    0.00   94.87

The clock follows the locale (12 or 24 hours, other separators), and so do the date and the decimal sign; column names
are not translated. The clock has no date: it passes midnight in silence.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta

import numpy as np
from numpy.typing import NDArray

from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.io.clock import assumed_date, rolled_over, to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind
from leadline.formats.tables import Columns, SampleTable

NS_PER_S = 1_000_000_000
_SEGMENT_SHIFT = 48  # a time of day in nanoseconds needs 47 bits
_TIME_OF_DAY = (1 << _SEGMENT_SHIFT) - 1

_BANNER = re.compile(
    r"^(?P<system>Linux|SunOS|GNU/kFreeBSD|AIX)\s+(?P<name>\S+)\s+(?P<rest>.*?)"
    r"(?:\s+_(?P<machine>\S+)_)?(?:\s+\((?P<cpus>\d+)\s+[^)]*\))?\s*$"
)
_CLOCK = re.compile(
    r"\s*(?:(?P<before>AM|PM|上午|下午|午前|午後|오전|오후)\s*)?"
    r"(?P<h>\d{1,2})[:.,h时時시]\s?(?P<m>\d{2})[:.,m分분]\s?(?P<s>\d{2})[秒초s]?"
    r"(?:\s+(?P<after>[AaPp]\.?[Mm]\.?)(?=\s))?(?=\s|$)"
)
_AFTERNOON = ("p", "下", "午後", "오후")
_SUMMARY = re.compile(r"^[^\W\d][^:\d]*:(?:\s|$)|^Average(?:\s|$)")
_HEADING_WORD = re.compile(r"%?[A-Za-z][\w%+/-]*|\d+/s")
_EPOCH_S_MAX = 4_102_444_800  # the year 2100
_SUFFIXED = re.compile(r"(-?[\d.]+)([kMGTPBs%])")
_SUFFIX_KIB = {"B": 1 / 1024, "s": 0.5, "k": 1.0, "M": 1024.0, "G": 1024.0**2, "T": 1024.0**3, "P": 1024.0**4, "%": 1.0}
PER_CPU = re.compile(r"CPU\d+")  # columns of sar's interrupt tables; they come and go with the CPUs
_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class Banner:
    """The first line of a recording: system, release, host, day (None when it cannot be read), machine, CPUs."""

    system: str
    release: str
    host: str
    days: tuple[date, ...]
    machine: str | None = None
    cpu_count: int | None = None

    @property
    def guest(self) -> Entity:
        """The guest the recording was made in."""
        return Entity(EntityKind.GUEST, self.host) if self.host else UNNAMED_GUEST


def parse_banner(line: str) -> Banner | None:
    """The banner a line is, or None.

    >>> parse_banner("Linux 6.1.0 (db01)   20.11.2026   _x86_64_  (2 CPU)").days
    (datetime.date(2026, 11, 20),)
    """
    match = _BANNER.match(line)
    if match is None:
        return None
    rest = match["rest"]
    if match["system"] == "SunOS":
        words = rest.split()
        return Banner("SunOS", words[0] if words else "", match["name"], dates(words[-1]) if words else ())
    host, close, day = rest.partition(")")
    if not host.startswith("(") or not close:
        return None
    cpus = int(match["cpus"]) if match["cpus"] and len(match["cpus"]) < 7 else None
    return Banner(match["system"], match["name"], host[1:], dates(day.strip()), match["machine"], cpus)


def dates(text: str) -> tuple[date, ...]:
    """The days a date in any locale may mean, likeliest first; empty when it is none.

    >>> dates("11/20/26"), dates("2026-11-20") == dates("20-11-26")
    ((datetime.date(2026, 11, 20),), True)
    >>> [str(day) for day in dates("06/01/20")]
    ['2020-06-01', '2020-01-06']
    """
    parts = _DIGITS.findall(text)
    if len(parts) != 3 or max(map(len, parts)) > 4:
        return ()
    first, second, third = (int(part) for part in parts)
    if len(parts[0]) == 4:
        orders = [(first, second, third)]
    elif "/" in text:  # American in C and en_US; the rest of the world writes the day first
        orders = [(third, first, second), (third, second, first)]
    else:
        orders = [(third, second, first)]
    days = []
    for year, month, day in orders:
        try:
            meant = date(year + 2000 if year < 100 else year, month, day)
        except ValueError:
            continue
        if 1990 <= meant.year < 2100:
            days.append(meant)
    return tuple(dict.fromkeys(days))


def clock_of(line: str) -> tuple[int, str] | None:
    """The time of day in nanoseconds a line begins with, and the rest of the line; None when it has none.

    >>> clock_of("10:57:52 PM  all  0.51")[0] == clock_of("22:57:52     all  0,51")[0]
    True
    """
    match = _CLOCK.match(line)
    if match is None:
        return None
    hour, minute, second = int(match["h"]), int(match["m"]), int(match["s"])
    half = (match["before"] or match["after"] or "").lower()
    if half:
        hour = hour % 12 + (12 if half.startswith(_AFTERNOON) else 0)
    if hour > 23 or minute > 59 or second > 60:
        return None
    return (hour * 3600 + minute * 60 + second) * NS_PER_S, line[match.end() :]


def epoch_ns(text: str) -> int | None:
    """The nanoseconds of seconds since 1970, None when the text is no such time of our day.

    >>> epoch_ns("1795215490"), epoch_ns("12")
    (1795215490000000000, None)
    """
    if not (text.isascii() and text.isdigit() and 9 <= len(text) <= 10):
        return None
    return int(text) * NS_PER_S if int(text) < _EPOCH_S_MAX else None


def number(token: str) -> float:
    """A number as sysstat prints it: decimal point or comma, ``-`` for nothing, units of ``--human`` in KiB.

    Raises:
        ValueError: it is none.

    >>> number("0,51"), number("1.5M"), number("96.2%")
    (0.51, 1536.0, 96.2)
    """
    try:
        return float(token)
    except ValueError:
        if token in {"-", "-nan"}:
            return float("nan")
        plain = token.replace(",", ".")
        match = _SUFFIXED.fullmatch(plain)
        return float(match[1]) * _SUFFIX_KIB[match[2]] if match else float(plain)


@dataclass(frozen=True, slots=True)
class TableLayout:
    """How to read the rows below one heading.

    Attributes:
        group: what the items are, "" for the machine.
        columns: own names of the values a row yields.
        parse: the item and values of a row's text (without its clock), None for a row to leave out; ValueError when
            the text is no such row.
        strict: a row that does not parse means a damaged file; otherwise it is a counter we do not import.
    """

    group: str
    columns: tuple[str, ...]
    parse: Callable[[str], tuple[str, list[float]] | None]
    strict: bool = True


LayoutOf = Callable[[list[str]], TableLayout | None]


def column_layout(words: list[str], groups: frozenset[str], known: Iterable[str]) -> TableLayout | None:
    """The layout below a heading of sar or mpstat: a column for the item, first or last, then numbers.

    Args:
        words: the heading, without its clock.
        groups: words that head the column of the item.
        known: own names that have a canonical metric; a heading without any is not read strictly.
    """
    if not _is_heading(words):
        return None
    first, last = words[0] in groups, len(words) > 1 and words[-1] in groups
    group = words[0] if first else words[-1] if last else ""
    names = words[1:] if first else words[:-1] if last else words
    kept = [j for j, name in enumerate(names) if PER_CPU.fullmatch(name) is None]
    columns = tuple(f"{group}:{names[j]}" if group else names[j] for j in kept)
    width = len(words)
    whole = len(kept) == len(names)

    def parse(text: str) -> tuple[str, list[float]]:
        tokens = text.split() if not last else text.split(None, width - 1)
        if len(tokens) != width:
            message = f"{len(tokens)} columns"
            raise ValueError(message)
        item = tokens.pop(0) if first else tokens.pop().strip() if last else ""
        if not whole:
            tokens = [tokens[j] for j in kept]
        try:
            return item, [float(token) for token in tokens]
        except ValueError:
            return item, [number(token) for token in tokens]

    return TableLayout(group, columns, parse, strict=any(name in known for name in columns))


def _is_heading(words: list[str]) -> bool:
    return bool(words) and all(map(_HEADING_WORD.fullmatch, words))


@dataclass(slots=True)
class SysstatTables:
    """The tables of a recording, and its banners.

    Moments are (banner, time of day) until `times_of`, or UTC nanoseconds when ``absolute``; ``zoned`` says whether
    those are certain or a zone had to be assumed.
    """

    source: Source
    banners: list[Banner] = field(default_factory=list)
    tables: dict[tuple[str, ...], SampleTable] = field(default_factory=dict)
    absolute: bool = False
    zoned: bool = True
    restart_count: int = 0
    days: dict[int, date] = field(default_factory=dict)  # of each banner, once it is settled

    @property
    def guest(self) -> Entity:
        """The guest of the first banner."""
        return self.banners[0].guest if self.banners else UNNAMED_GUEST


def read_text(source: Source, layout_of: LayoutOf, builder: CaptureBuilder) -> SysstatTables:
    """The tables of a recording.

    Args:
        source: the file.
        layout_of: the layout below a heading, None when the words are no heading of the tool.
        builder: takes warnings about what was left out.

    Raises:
        InputError: a line in the middle is neither heading, row, average nor note.
    """
    text = source.text()
    lines = text.splitlines()
    cut = bool(lines) and not text.endswith(("\n", "\r")) and _SUMMARY.match(lines[-1]) is None
    reader = _TextReader(SysstatTables(source), layout_of, builder, len(lines) if cut else len(lines) + 1)
    for index, line in enumerate(lines, 1):
        if line and not line.isspace():
            reader.line(index, line)
            reader.after_blank = False
        else:
            reader.after_blank = True
    if not any(table.moments for table in reader.recording.tables.values()):
        raise InputError(
            source.name,
            found=f"{len(lines)} lines without a sample",
            expected="a heading and rows that begin with a time",
            advice="Record it again and let the tool print at least one report.",
        )
    return reader.recording


def moment_of(recording: SysstatTables, time_of_day_ns: int) -> int:
    """A time of day below the latest banner, as a moment of the recording's tables."""
    return (max(len(recording.banners) - 1, 0) << _SEGMENT_SHIFT) + time_of_day_ns


def table_of(recording: SysstatTables, group: str, columns: tuple[str, ...], lead_in: int | None = None) -> SampleTable:
    """The table of a heading, begun when it is new."""
    key = (group, *columns)
    table = recording.tables.get(key)
    if table is None:
        table = recording.tables[key] = SampleTable(group, columns, lead_in=lead_in)
    return table


@dataclass(slots=True)
class _TextReader:
    """State of reading a text line by line."""

    recording: SysstatTables
    layout_of: LayoutOf
    builder: CaptureBuilder
    last_index: int  # number of the line that may have been cut; one past the end when none was
    layout: TableLayout | None = None
    table: SampleTable | None = None
    moment: int | None = None
    after_blank: bool = True

    def line(self, index: int, line: str) -> None:
        if line.lstrip().startswith("#"):
            self._heading(line.split("#", 1)[1].split()[1:], None)
            return
        clock = self._clock(line)
        if clock is None:
            self._without_clock(index, line)
            return
        self.moment, rest = clock
        words = rest.split(None, 3)
        if words and (words[0] == "COM" or "RESTART" in words[:2] or words[:2] == ["unix", "restarts"]):
            self.recording.restart_count += words[0] != "COM"
        elif not self._row(rest, final=index >= self.last_index) and not self._heading(rest.split(), self.moment):
            self._refuse(index, line)

    def _clock(self, line: str) -> tuple[int, str] | None:
        clock = clock_of(line)
        if clock is not None:
            return moment_of(self.recording, clock[0]), clock[1]
        word, _, rest = line.strip().partition(" ")
        epoch = epoch_ns(word)
        if epoch is None:
            return None
        self.recording.absolute = True
        return epoch, rest

    def _without_clock(self, index: int, line: str) -> None:
        banner = parse_banner(line)
        if banner is not None:
            self.recording.banners.append(banner)
            self.layout = self.table = None
        elif _SUMMARY.match(line):
            return
        elif not (line[0].isspace() and self._sun() and self._row(line, final=False)):
            self._refuse(index, line)

    def _sun(self) -> bool:
        """Solaris prints the clock once for all disks of a report."""
        return bool(self.recording.banners) and self.recording.banners[-1].system == "SunOS" and self.moment is not None

    def _row(self, text: str, *, final: bool) -> bool:
        if self.layout is None or self.table is None or self.moment is None:
            return False
        try:
            row = self.layout.parse(text)
        except ValueError:
            return False
        if final:
            self.builder.warn("cut", "the last line has no end and was left out")
        elif row is not None:
            self.table.add(self.moment, *row)
        return True

    def _heading(self, words: list[str], moment: int | None) -> bool:
        marked = self.after_blank or self.layout is None or any("/" in word or "%" in word for word in words)
        layout = self.layout_of(words) if marked else None
        if layout is None:
            return False
        self.layout = layout
        self.table = table_of(self.recording, layout.group, layout.columns, moment)
        return True

    def _refuse(self, index: int, line: str) -> None:
        if index >= self.last_index:
            self.builder.warn("cut", "the last line is cut and was left out")
        elif self.layout is not None and not self.layout.strict and self.moment is not None and clock_of(line):
            self.builder.warn(
                "rows", f"rows below {' '.join(self.layout.columns[:3])} could not be read and were left out"
            )
        else:
            raise InputError(
                f"{self.recording.source.name}:{index}",
                found=f"{line.strip()[:60]!r}",
                expected="a row that fits its heading" if self.layout else "a heading before the first row",
                advice="The file is damaged or was edited; record it again, or cut the bad part out.",
            )


def times_of(
    recording: SysstatTables, table: SampleTable, request: Request, builder: CaptureBuilder
) -> NDArray[np.int64]:
    """When the samples of a table were, int64 [samples] UTC nanoseconds, as its banners and the request say.

    Raises:
        UsageError: the request names a date or time zone that does not exist.
    """
    moments = np.array(table.moments, dtype=np.int64)
    if recording.absolute:
        return moments
    times = np.empty_like(moments)
    segments = moments >> _SEGMENT_SHIFT
    for segment in np.unique(segments):
        rows = segments == segment
        day = recording.days.get(int(segment)) or _day(recording, int(segment), request, builder)
        recording.days[int(segment)] = day
        times[rows] = _on_day(rolled_over((moments[rows] & _TIME_OF_DAY).tolist()), day, request)
    return times


def clock_known(recording: SysstatTables, request: Request, builder: CaptureBuilder) -> bool:
    """Whether the times are certain; warns when a zone had to be assumed."""
    if recording.absolute and recording.zoned:
        return True
    dated = recording.absolute or all(len(banner.days) == 1 for banner in recording.banners)
    if request.timezone is None:
        builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
    return dated and bool(recording.banners) and request.timezone is not None


def _on_day(times: NDArray[np.int64], day: date, request: Request) -> NDArray[np.int64]:
    midnight = datetime.combine(day, time())
    if request.timezone is None:
        return times + to_ns(midnight, request)
    return np.array(
        [to_ns(midnight + timedelta(microseconds=int(moment) // 1000), request) for moment in times], dtype=np.int64
    )


def _day(recording: SysstatTables, segment: int, request: Request, builder: CaptureBuilder) -> date:
    """The day of a banner; where it may mean two, the one asked for, else the likelier."""
    days = recording.banners[segment].days if recording.banners else ()
    if len(days) == 1:
        return days[0]
    asked = assumed_date(recording.source, request)
    if not days:
        builder.warn("no-date", f"the recording has no date that can be read; {asked} was assumed; --date sets it")
        return asked
    if request.date is not None and asked in days:
        return asked
    builder.warn("date-order", f"the date may mean {' or '.join(map(str, days))}; the first was taken; --date sets it")
    return days[0]


def record_guest(recording: SysstatTables, builder: CaptureBuilder) -> Entity:
    """Note what the banner says of the guest, and return it."""
    guest = recording.guest
    banner = recording.banners[0] if recording.banners else None
    release = f"{banner.system} {banner.release}" if banner and banner.release else None
    cpu_count = banner.cpu_count if banner else None
    builder.inventory.add(guest, builder.info.name, cpu_count=cpu_count, os_release=release)
    if recording.restart_count:
        builder.warn("restart", "the machine or the recorder was restarted while recording", recording.restart_count)
    return guest


def lone_report(recording: SysstatTables, builder: CaptureBuilder) -> bool:
    """Whether there is one report only, which a form without headings does not tell from one since boot."""
    alone = all(len(table.moments) <= 1 for table in recording.tables.values())
    if alone:
        builder.warn("lone-report", "a single report may be an average since boot and is taken as one")
    return alone


def add_cpu_busy(columns: Columns) -> None:
    """Add busy time; a CPU whose shares are all zero was offline, which is "not measured".

    Source: Linux kernel documentation, filesystems/proc: idle and iowait are the time a CPU ran nothing.
    """
    if "guest_cpu_idle_pct" not in columns:
        return
    shares = [name for name in columns if name.startswith("guest_cpu_") and name.endswith("_pct")]
    offline = ~np.any([np.nan_to_num(columns[name]) for name in shares], axis=0)
    for name in shares:
        columns[name] = np.where(offline, np.nan, columns[name])
    idle = np.clip(columns["guest_cpu_idle_pct"], 0.0, 100.0)  # a damaged recording says -1e308
    waiting = np.clip(np.nan_to_num(columns.get("guest_cpu_iowait_pct", np.zeros(1))), 0.0, 100.0)
    columns["guest_cpu_busy_pct"] = np.clip(100.0 - idle - waiting, 0.0, 100.0)
