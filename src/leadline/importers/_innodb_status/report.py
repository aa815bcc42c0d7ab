"""One report of the InnoDB monitor: the numbers of its sections by our names, NaN or absent where not printed."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import datetime

from leadline.formats.printed import number_of
from leadline.formats.statements import UNKNOWN, shown_name, statement_name

HEADER = re.compile(r"^(?P<time>[\d :-]{0,24}\d)?(?: [0-9a-fx]{1,20})? ?INNODB MONITOR OUTPUT", re.MULTILINE)
_SECONDS = re.compile(r"Per second averages calculated from the last (\d{1,9}) seconds")
_SHORT_YEAR = re.compile(r"(\d\d)(\d\d)(\d\d) +(\d{1,2}:\d\d:\d\d)")
_N = r"(\d{1,15}(?:\.\d{1,6})?)"
# Levels, and rates per second, by the line that prints them; the first line that fits counts.
_LEVELS: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("history", re.compile(r"^History list length (\d{1,15})", re.MULTILINE)),
    ("preads", re.compile(r"^(\d{1,9}) pending preads", re.MULTILINE)),
    ("pwrites", re.compile(r"pending preads, (\d{1,9}) pending pwrites", re.MULTILINE)),
    ("log_fsyncs", re.compile(r"^Pending flushes \(fsync\)(?: log)?: (\d{1,9})", re.MULTILINE)),
    ("pool_fsyncs", re.compile(r"^Pending flushes \(fsync\) log: \d{1,9}; buffer pool: (\d{1,9})", re.MULTILINE)),
    ("log_writes", re.compile(r"^(\d{1,9}) pending log (?:writes|flushes)", re.MULTILINE)),
    ("checkpoint_writes", re.compile(r"^\d{1,9} pending log \w{1,9}, (\d{1,9}) pending chkp writes", re.MULTILINE)),
    ("pool_reads", re.compile(r"^Pending reads {1,9}(\d{1,9})", re.MULTILINE)),
    ("pool_pages", re.compile(r"^Buffer pool size {1,9}(\d{1,15})$", re.MULTILINE)),
    ("free_pages", re.compile(r"^Free buffers {1,9}(\d{1,15})", re.MULTILINE)),
    ("dirty_pages", re.compile(r"^Modified db pages {1,9}(\d{1,15})", re.MULTILINE)),
    ("hit_per_mille", re.compile(r"^Buffer pool hit rate (\d{1,4}) / 1000", re.MULTILINE)),
    ("inside", re.compile(r"^(\d{1,9}) queries inside InnoDB", re.MULTILINE)),
    ("outside", re.compile(r"^\d{1,9} queries inside InnoDB, (\d{1,9}) queries in queue", re.MULTILINE)),
    ("checkpoint_age", re.compile(r"^Checkpoint age {1,20}(\d{1,18})$", re.MULTILINE)),
    ("checkpoint_age_max", re.compile(r"^Max checkpoint age {1,20}(\d{1,18})$", re.MULTILINE)),
)
_RATES: tuple[tuple[re.Pattern[str], tuple[str, ...]], ...] = (
    (
        re.compile(rf"^{_N} reads/s, {_N} avg bytes/read, {_N} writes/s, {_N} fsyncs/s", re.MULTILINE),
        ("file_reads", "read_bytes", "file_writes", "fsyncs"),
    ),
    (
        re.compile(rf"^{_N} reads/s, {_N} creates/s, {_N} writes/s", re.MULTILINE),
        ("page_reads", "creates", "page_writes"),
    ),
    (
        re.compile(rf"^{_N} inserts/s, {_N} updates/s, {_N} deletes/s, {_N} reads/s", re.MULTILINE),
        ("inserted", "updated", "deleted", "rows_read"),
    ),
    (re.compile(rf"^\d{{1,18}} log i/o's done, {_N} log i/o's/second", re.MULTILINE), ("log_writes",)),
)
_AIO = re.compile(r"^Pending normal aio reads:([^\n]{0,400}?), aio writes:([^\n]{0,400})", re.MULTILINE)
_LOG = re.compile(r"^(Log sequence number|Last checkpoint at) {1,20}(\d{1,20})(?: (\d{1,20}))?$", re.MULTILINE)
_SEMAPHORE = re.compile(
    r"^--Thread \d{1,20} has waited at (\S{1,120}) line \d{1,9} for " + _N + " seconds", re.MULTILINE
)
_PENDING_WRITES = re.compile(r"^Pending writes: ([^\n]{1,120})", re.MULTILINE)
_TRANSACTION = re.compile(
    r"^-{2,3}TRANSACTION \(?[^,\n]{1,40}, (ACTIVE|not started)(?: \([A-Z ]{1,30}\))?(?: (\d{1,12}) sec)?"
)
_THREAD = re.compile(r"(?:MySQL|MariaDB) thread id (\d{1,20}), .{0,120}query id \d{1,20}")
_WAITING = re.compile(r"-{2,}\s?TRX HAS BEEN WAITING (\d{1,18}) (SEC|us)")
_END = re.compile(r"-{2,}|TABLE LOCK|RECORD LOCKS|Trx read view|Trx #rec|\*\*\* |mysql tables in use|END OF INNODB")
_DEADLOCK = re.compile(r"^LATEST DETECTED DEADLOCK$", re.MULTILINE)


@dataclass(slots=True)
class OpenTransaction:
    """A transaction of the list; times are seconds.

    Attributes:
        statement: verb and first table; empty where its session runs nothing.
    """

    age_s: float
    thread: str = ""
    statement: str = ""
    wait_s: float = float("nan")
    is_waiting: bool = False

    @property
    def is_idle(self) -> bool:
        """Whether a session holds it open and runs no statement."""
        return bool(self.thread) and not self.statement and not self.is_waiting


@dataclass(slots=True)
class InnodbReport:
    """What one report says.

    Attributes:
        moment: as printed, in the server's zone; None where the heading is missing.
        seconds: over which rates are means; 0 where not printed or too short for a rate.
        levels: numbers of the moment.
        rates: per second.
        semaphore_waits_s: how long each thread has waited for an internal lock.
        semaphores: where in the source they wait.
    """

    moment: datetime | None = None
    seconds: float = 0.0
    levels: dict[str, float] = field(default_factory=dict)
    rates: dict[str, float] = field(default_factory=dict)
    semaphore_waits_s: list[float] = field(default_factory=list)
    semaphores: list[str] = field(default_factory=list)
    has_transactions: bool = False
    transactions: list[OpenTransaction] = field(default_factory=list)
    deadlock: list[str] = field(default_factory=list)


def report_of(text: str) -> InnodbReport:
    """The report in a text that holds one or a part of one."""
    header, averages = HEADER.search(text), _SECONDS.search(text)
    report = InnodbReport(None if header is None else moment_of(header["time"] or ""))
    report.seconds = float(averages[1]) if averages is not None else 0.0
    text = text.split("\nINDIVIDUAL BUFFER POOL INFO", 1)[0] + "\n" + text.partition("\nROW OPERATIONS")[2]
    for name, pattern in _LEVELS:
        match = pattern.search(text)
        if match is not None:
            report.levels[name] = number_of(match[1])
    for pattern, names in _RATES:
        match = pattern.search(text)
        if match is not None:
            report.rates |= {name: number_of(value) for name, value in zip(names, match.groups(), strict=True)}
    _add_pending(report, text)
    _add_log(report, text)
    for match in _SEMAPHORE.finditer(text):
        report.semaphores.append(match[1].rpartition("/")[2])
        report.semaphore_waits_s.append(number_of(match[2]))
    before, _, after = text.partition("LIST OF TRANSACTIONS FOR EACH SESSION")
    report.deadlock = _deadlock(before)
    report.has_transactions = bool(after) or re.search(r"^---TRANSACTION ", text, re.MULTILINE) is not None
    report.transactions = _transactions(after or text)
    return report


def moment_of(text: str) -> datetime | None:
    """The time of a heading: with a year of four digits, or two before MySQL 5.6; None for another text."""
    short = _SHORT_YEAR.fullmatch(text.strip())
    if short is not None:
        text = f"20{short[1]}-{short[2]}-{short[3]} {short[4].rjust(8, '0')}"
    try:
        return datetime.fromisoformat(text.strip()) if text.strip() else None
    except ValueError:
        return None


def _listed(text: str) -> float:
    """The sum of numbers between brackets, else the number before them; NaN where there is none."""
    inside = re.search(r"\[([\d, ]{1,400})\]", text)
    numbers = re.findall(r"\d{1,9}", inside[1] if inside is not None else text)
    return float(sum(map(int, numbers))) if numbers else float("nan")


def _add_pending(report: InnodbReport, text: str) -> None:
    """Add the requests that have not ended, by kind."""
    levels = report.levels
    aio = _AIO.search(text)
    listed = (_listed(aio[1]), _listed(aio[2])) if aio is not None else (float("nan"), float("nan"))
    pool = _PENDING_WRITES.search(text)
    pool_writes = float(sum(map(int, re.findall(r"\d{1,9}", pool[1])))) if pool is not None else float("nan")
    sums = {
        "pending_reads": (listed[0], levels.get("preads"), None if listed[0] > 0 else levels.get("pool_reads")),
        "pending_writes": (listed[1], levels.get("pwrites"), None if listed[1] > 0 else pool_writes),
        "pending_fsyncs": (levels.get("log_fsyncs"), levels.get("pool_fsyncs")),
    }
    for name, parts in sums.items():
        known = [part for part in parts if part is not None and part == part]  # noqa: PLR0124 - not NaN
        if known:
            levels[name] = sum(known)


def _add_log(report: InnodbReport, text: str) -> None:
    """Add how far the last checkpoint is behind, where the report counts it or both positions are printed."""
    at = {name: int(high) if low is None else (int(high) << 32) + int(low) for name, high, low in _positions(text)}
    if "checkpoint_age" not in report.levels and len(at) == 2:
        age = at["Log sequence number"] - at["Last checkpoint at"]
        if age >= 0:
            report.levels["checkpoint_age"] = float(age)
    most = report.levels.get("checkpoint_age_max", 0.0)
    if most > 0 and "checkpoint_age" in report.levels:
        report.levels["checkpoint_age_pct"] = 100.0 * report.levels["checkpoint_age"] / most


def _positions(text: str) -> list[tuple[str, str, str | None]]:
    return [(match[1], match[2], match[3]) for match in _LOG.finditer(text)]


def _transactions(text: str) -> list[OpenTransaction]:
    """The transactions of the list that are active."""
    transactions: list[OpenTransaction] = []
    current: OpenTransaction | None = None
    is_statement = False
    for line in text.splitlines():
        match = _TRANSACTION.match(line)
        if match is not None:
            current = OpenTransaction(float(match[2] or 0)) if match[1] == "ACTIVE" else None
            is_statement = False
            if current is not None:
                transactions.append(current)
            continue
        if current is None:
            continue
        waiting, thread = _WAITING.match(line), _THREAD.match(line)
        if waiting is not None:
            current.is_waiting, is_statement = True, False
            current.wait_s = float(waiting[1]) / (1e6 if waiting[2] == "us" else 1.0)
        elif thread is not None:
            current.thread, is_statement = thread[1], True
        elif line.startswith("LOCK WAIT"):
            current.is_waiting = True
        elif re.match(r"-{8,}$|[A-Z ]{3,40}/?O?$", line) and not is_statement:
            current = None if line[:1] != "-" else current  # the next section
        elif is_statement and line.strip():
            is_statement = False
            if not _END.match(line):
                current.statement = shown_name(statement_name(line))
    return transactions


def _deadlock(text: str) -> list[str]:
    """The statements of the latest deadlock, without literals; empty where there was none."""
    begin = _DEADLOCK.search(text)
    if begin is None:
        return []
    names: list[str] = []
    is_statement = False
    for line in text[begin.end() :].splitlines():
        if is_statement and line.strip() and not _END.match(line):
            names.append(shown_name(statement_name(line)))
        is_statement = _THREAD.match(line) is not None
        if line.startswith("*** WE ROLL BACK") or line.strip() in {"TRANSACTIONS", "FILE I/O"}:
            break
    return [name for name in names if name != UNKNOWN]
