"""What an AWR or Statspack report says of one interval of an Oracle instance."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime

from leadline.formats.oracle.amounts import MS_OF, Amount, amount_of, mean_ms, unit_in
from leadline.formats.oracle.report_tables import ReportTable, named, tables_of_html, tables_of_text, without_pages
from leadline.formats.stamps import YEARS

# The first line of a report, or the heading of one in HTML.
REPORT = re.compile(
    r"^[^\S\n]*(?:WORKLOAD REPOSITORY (?:PDB )?report\b|STATSPACK (?:Statistics )?report for\b)", re.MULTILINE | re.I
)
_HTML = re.compile(r"<(?:html|!doctype html|table)\b", re.IGNORECASE)
_SNAP = re.compile(
    r"^[^\S\n]{0,40}(?P<which>Begin|End) Snap:\s+\d+"
    r"\s+(?P<day>\d{1,2})-(?P<month>[^\d\s-]{3,9}|\d{1,2}月)\s*-(?P<year>\d{2,4})"
    r"\s+(?P<h>\d{1,2}):(?P<m>\d\d):(?P<s>\d\d)(?:\s+(?P<sessions>[\d,.]+))?",
    re.MULTILINE,
)
_MINUTES = re.compile(r"(?P<name>Elapsed|DB Time|DB CPU):\s+(?P<number>[\d.,]+)\s+\(mins\)", re.IGNORECASE)
_COMMA = re.compile(r"Elapsed:\s+(?:\d{1,3}\.)*\d{1,3},\d\d\s+\(mins\)")
_LOAD = re.compile(r"^\s*(?P<name>[A-Z][\w/() ]{2,40}?):\s+(?P<number>[\d.,]+)(?:\s|$)")
_SQL_ID = re.compile(r"[0-9a-z]{13}|\d{6,10}")
_CHARACTERS_OF_A_LINE = (64, 80)  # lines of a statement are cut here, also within a word (Statspack, AWR)
# English, and what other languages begin with, of NLS_DATE_LANGUAGE.
_MONTHS = (
    ("jan", "ene", "gen", "янв"), ("feb", "fév", "fev", "фев"), ("mar", "mär", "mrz", "мар"),
    ("apr", "avr", "abr", "апр"), ("may", "mai", "mag", "май"), ("jun", "juin", "giu", "июн"),
    ("jul", "juil", "lug", "июл"), ("aug", "aoû", "ago", "авг"), ("sep", "set", "сен"),
    ("oct", "okt", "out", "ott", "окт"), ("nov", "ноя"), ("dec", "dez", "déc", "dic", "дек"),
)  # fmt: skip
# What reports without a wait class or a share of the time list among all the others. Source: stats$idle_event.
_IDLE = re.compile(
    r"SQL\*Net message (?:from client|to client)|SQL\*Net more data from client|rdbms ipc message|.* timer$"
    r"|PX Idle|PX Deq|.*(?:idle|slave wait)|Streams AQ|wait for unread message|PL/SQL lock timer|jobq|pipe get"
    r"|null event|lock manager wait|virtual circuit status|class slave|KSV master|VKRM|single-task message",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class WaitEvent:
    """A wait event of an interval: how often it was waited for, for how long in sum and on average; NaN: not known."""

    name: str
    waits: float
    total_s: float
    mean_ms: float
    is_idle: bool = False


@dataclass(frozen=True, slots=True)
class TimedStatement:
    """A statement of an interval, by its SQL id (old reports: hash value), with its text as printed."""

    sql_id: str
    elapsed_s: float
    executions: float
    text: str


@dataclass(slots=True)
class OracleReport:
    """One report.

    Attributes:
        begin, end: snapshot times of the database's machine; None where they cannot be read.
        elapsed_s, db_time_s, db_cpu_s: of the interval; NaN: not known.
        sessions: connected at its end; NaN: not known.
        host, instance, release: as printed; empty: not known.
        load: per second, by the names of the load profile in lower case.
        foreground, background, all_waits, top: wait events of those tables.
        cpu_pct: shares of the host's processors (user, system, wio, idle).
        statements: those that took most time.
        tablespaces: milliseconds of a read, by tablespace.
        left_out: rows that could not be read.
    """

    begin: datetime | None = None
    end: datetime | None = None
    elapsed_s: float = math.nan
    db_time_s: float = math.nan
    db_cpu_s: float = math.nan
    sessions: float = math.nan
    host: str = ""
    instance: str = ""
    release: str = ""
    load: dict[str, float] = field(default_factory=dict)
    foreground: list[WaitEvent] = field(default_factory=list)
    background: list[WaitEvent] = field(default_factory=list)
    all_waits: list[WaitEvent] = field(default_factory=list)
    top: list[WaitEvent] = field(default_factory=list)
    cpu_pct: dict[str, float] = field(default_factory=dict)
    statements: list[TimedStatement] = field(default_factory=list)
    tablespaces: dict[str, float] = field(default_factory=dict)
    left_out: int = 0

    @property
    def is_empty(self) -> bool:
        """Whether nothing in it was measured."""
        waits = (self.foreground, self.background, self.all_waits, self.top)
        return not any((*waits, self.load, self.cpu_pct, self.statements)) and math.isnan(self.db_time_s)


def split_reports(text: str) -> list[str]:
    """The reports of a file: several may stand one after the other in text."""
    if is_html(text):
        return [text]
    starts = [match.start() for match in REPORT.finditer(text)]
    ends = [*starts[1:], len(text)]
    return [text[start:end] for start, end in zip(starts, ends, strict=True)] if starts else [text]


def is_html(text: str) -> bool:
    """Whether a report is in HTML."""
    return _HTML.search(text[:4096]) is not None


def parse_report(text: str) -> OracleReport:
    """What one report says; what it does not say stays empty or NaN."""
    report = OracleReport()
    if is_html(text):
        tables, outside = tables_of_html(text)
        head = "\n".join([*_rows_as_lines(tables), outside])
        load: Iterable[str] = [line for table in named(tables, r"load profile") for line in _rows_as_lines([table])]
    else:
        head = without_pages(text)
        tables = tables_of_text(head.splitlines())
        load = _load_lines(head.splitlines())
    comma = _COMMA.search(head) is not None
    _read_head(report, head, comma)
    _read_names(report, tables)
    for line in load:
        match = _LOAD.match(line)
        if match is not None:
            number = amount_of(match["number"], decimal_comma=comma).value
            report.load.setdefault(match["name"].casefold(), number)
    _read_waits(report, tables, comma)
    _read_cpu(report, tables, comma)
    _read_statements(report, tables, comma)
    _read_tablespaces(report, tables, comma)
    return report


def _rows_as_lines(tables: Iterable[ReportTable]) -> Iterator[str]:
    """The rows of small tables of HTML as the lines they would be in text."""
    for table in tables:
        if len(table.rows) <= 60:  # the longest load profile of RAC has fewer
            yield from (" ".join(cell for cell in row if cell) for row in table.rows)


def _load_lines(lines: list[str]) -> Iterator[str]:
    """The lines of the load profile."""
    begins = [number for number, line in enumerate(lines) if line.lstrip().startswith("Load Profile")]
    if not begins:
        return
    has_begun = False
    for line in lines[begins[0] + 1 :]:
        if _LOAD.match(line):
            has_begun = True
            yield line
        elif has_begun and not line.strip():
            return


def _read_head(report: OracleReport, head: str, comma: bool) -> None:
    for match in _SNAP.finditer(head):
        moment = _moment(match)
        if match["which"] == "Begin" and report.begin is None:
            report.begin = moment
        elif match["which"] == "End" and report.end is None:
            report.end = moment
            report.sessions = amount_of(match["sessions"] or "", decimal_comma=comma).value
    known: dict[str, float] = {}
    for match in _MINUTES.finditer(head):
        number = amount_of(match["number"], decimal_comma=comma).value
        known.setdefault(match["name"].casefold(), number * 60.0)
    report.db_time_s = known.get("db time", math.nan)
    report.db_cpu_s = known.get("db cpu", math.nan)
    report.elapsed_s = known.get("elapsed", math.nan)
    if report.begin is not None and report.end is not None:
        between = (report.end - report.begin).total_seconds()
        report.elapsed_s = between if between > 0 else report.elapsed_s


def _moment(match: re.Match[str]) -> datetime | None:
    """The time of a snapshot, as ``12-Feb-14 12:16:04``; None where it is none."""
    month = match["month"].casefold()
    number = int(month[:-1]) if month.endswith("月") else 0
    for place, beginnings in enumerate(_MONTHS, 1):
        number = place if month.startswith(beginnings) else number
    year = int(match["year"])
    year += 0 if year > 99 else 1900 if year > 68 else 2000
    if year not in YEARS:
        return None
    try:
        return datetime(  # noqa: DTZ001 - of the database's machine; the importer gives it a zone
            year, number, int(match["day"]), int(match["h"]), int(match["m"]), int(match["s"])
        )
    except ValueError:
        return None


def _read_names(report: OracleReport, tables: list[ReportTable]) -> None:
    """Instance, release and host: in one table or in two, by version."""
    for table in tables[:8]:
        rows = [row for row in table.rows if any(row)] or [re.split(r"\s{2,}", line.strip()) for line in table.body[:1]]
        if not rows:
            continue
        for name, pattern in (("instance", r"\binstance$"), ("release", r"release"), ("host", r"^host$|host name")):
            place = table.column(pattern)
            if place is not None and table.columns[place] == "host" and "name" in table.columns[place + 1 : place + 2]:
                place += 1  # Statspack underlines the first word of "Host Name"
            if place is not None and place < len(rows[0]) and not getattr(report, name):
                setattr(report, name, rows[0][place][:64])


def _read_waits(report: OracleReport, tables: list[ReportTable], comma: bool) -> None:
    kinds = (
        (report.foreground, r"foreground wait events"),
        (report.background, r"background wait events"),
        (report.all_waits, r"^(?!.*(?:(?:fore|back)ground wait|top )).*wait events\b(?!.*histogram)"),
        (report.top, r"top \d+ (?:timed )?(?:foreground )?(?:wait )?events|top wait events|top timed events"),
    )
    for waits, pattern in kinds:
        names: set[str] = set()
        for table in named(tables, pattern):
            for event in _events(table, comma):
                if event is None:
                    report.left_out += 1
                elif event.name not in names:
                    names.add(event.name)
                    waits.append(event)


def _events(table: ReportTable, comma: bool) -> Iterator[WaitEvent | None]:
    """The events of a table; None for a row that is damaged."""
    name_at, waits_at = table.column(r"\bevent$"), table.column(r"\bwaits$")
    total_at = table.column(r"tota\w* (?:wait )?time|time ?\((?:s|sec|cs)\)", r"^%|avg")
    avg_at, share_at = table.column(r"avg|average"), table.column(r"^%.*time$|%total", r"out")
    if name_at is None or (total_at is None and avg_at is None):
        return
    for row in table.rows:
        if not any(row) or len(row) < 2:
            continue

        def cell(place: int | None, row: list[str] = row) -> str:
            return row[place] if place is not None and place < len(row) else ""

        name = cell(name_at)
        waits = amount_of(cell(waits_at), decimal_comma=comma)
        total = _in_ms(amount_of(cell(total_at), decimal_comma=comma), table, total_at, "s")
        printed = _in_ms(amount_of(cell(avg_at), decimal_comma=comma), table, avg_at, "ms")
        total_s = Amount(total.value / 1000.0, total.unsure / 1000.0)
        if not name or (math.isnan(total_s.value) and math.isnan(printed.value)):
            yield None
            continue
        is_idle = is_idle_event(name) or (share_at is not None and not cell(share_at))
        yield WaitEvent(name, waits.value, total_s.value, mean_ms(waits, total_s, printed), is_idle)


def is_idle_event(name: str) -> bool:
    """Whether sessions that wait for an event have no work to do."""
    return _IDLE.match(name) is not None


def _in_ms(amount: Amount, table: ReportTable, place: int | None, otherwise: str) -> Amount:
    name = table.columns[place] if place is not None else ""
    scale = MS_OF[amount.unit or unit_in(name, otherwise)]
    return Amount(amount.value * scale, amount.unsure * scale)


def _read_cpu(report: OracleReport, tables: list[ReportTable], comma: bool) -> None:
    names = {"user": r"%?\buser$", "system": r"%?\bsys(?:tem)?$", "wio": r"%?\bwio$", "idle": r"%?\bidle$"}
    for table in named(tables, r"host cpu|system load statistics"):
        for row in table.rows[:1]:
            for name, pattern in names.items():
                place = table.column(pattern)
                if place is not None and place < len(row):
                    value = amount_of(row[place], decimal_comma=comma).value
                    if 0 <= value <= 100:
                        report.cpu_pct.setdefault(name, value)


def _read_statements(report: OracleReport, tables: list[ReportTable], comma: bool) -> None:
    known: set[str] = set()
    whole = {row[0]: row[1] for t in tables if t.columns == ("sql id", "sql text") for row in t.rows if len(row) == 2}
    for table in named(tables, r"sql ordered by elapsed|top sql by elapsed time"):
        id_at, elapsed_at = table.column(r"sql id$|hash value$"), table.column(r"^elapsed\b.*time \(s\)$", r"per exec")
        count_at, text_at = table.column(r"executions$"), table.column(r"sql text$")
        if id_at is None or elapsed_at is None or count_at is None:
            continue
        for row, text in _statement_rows(table, id_at, text_at):
            elapsed = amount_of(row[elapsed_at], decimal_comma=comma).value
            if row[id_at] in known or math.isnan(elapsed):
                continue
            known.add(row[id_at])
            executions = amount_of(row[count_at], decimal_comma=comma).value
            report.statements.append(TimedStatement(row[id_at], elapsed, executions, whole.get(row[id_at], text)))


def _statement_rows(table: ReportTable, id_at: int, text_at: int | None) -> Iterator[tuple[list[str], str]]:
    """The rows of statements and their texts: a cell in HTML, the lines below a row in text."""
    if not table.cuts:
        for row in table.rows:
            if len(row) > id_at and _SQL_ID.fullmatch(row[id_at]):
                yield row, row[text_at] if text_at is not None and text_at < len(row) else ""
        return
    pieces: list[tuple[list[str], list[str]]] = []
    for line in table.body:
        cells = cells_if_row(line, table, id_at)
        if cells is not None:
            pieces.append((cells, []))
        elif pieces and not re.match(r"\s*(?:Module|PDB):", line):
            pieces[-1][1].append(line)
    yield from ((cells, _text_of(lines)) for cells, lines in pieces)


def cells_if_row(line: str, table: ReportTable, id_at: int) -> list[str] | None:
    """The cells of a line that is a row of a table of statements; None for a line of text."""
    cells = table_cells(line, table)
    if len(cells) <= id_at or not _SQL_ID.fullmatch(cells[id_at]):
        return None
    return cells if math.isfinite(amount_of(cells[0]).value) else None


def table_cells(line: str, table: ReportTable) -> list[str]:
    """The cells of a line of a table."""
    starts = (0, *table.cuts[:-1])
    return [line[start:end].strip() for start, end in zip(starts, table.cuts, strict=True)]


def _text_of(lines: list[str]) -> str:
    """A statement's text from its lines, which end in the middle of a word where they are full."""
    text = ""
    for line in lines:
        text += line if len(line) in _CHARACTERS_OF_A_LINE else f"{line}\n"
    return text.strip()


def _read_tablespaces(report: OracleReport, tables: list[ReportTable], comma: bool) -> None:
    for table in named(tables, r"tablespace io stat|i/o statistics for each tablespace|tablespace i/o"):
        read_at, name_at = table.column(r"av rd ?\(ms\)", r"1-bk"), table.column(r"^tablespace$")
        if read_at is None:
            continue
        name = ""
        for row in table.rows if not table.cuts else (table_cells(line, table) for line in table.body):
            value = amount_of(row[read_at], decimal_comma=comma).value if len(row) > read_at else math.nan
            if name_at is not None and row:
                name = row[name_at]
            elif math.isnan(value) and any(row):
                name = "".join(row)
            if name and math.isfinite(value):
                report.tablespaces.setdefault(name[:64], value)
