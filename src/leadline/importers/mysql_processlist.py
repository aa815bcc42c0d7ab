r"""Sessions of MySQL or MariaDB by what they do, from its list of processes.

Reads:
    ``SHOW FULL PROCESSLIST`` and ``information_schema.PROCESSLIST``: the table of the shell, ``\G``, tabs of ``mysql
    -e``, ``mysqladmin processlist`` and CSV, with any of its columns; of ``performance_schema.threads`` the columns
    ``PROCESSLIST_*``. One list or several.

Sample:
    .. code-block:: text

        +----+------+-----------+------+---------+------+---------------------------------+--------------------------+
        | Id | User | Host      | db   | Command | Time | State                           | Info                     |
        +----+------+-----------+------+---------+------+---------------------------------+--------------------------+
        |  5 | app  | localhost | shop | Query   |  310 | Sending data                    | select * from orders     |
        |  6 | app  | localhost | shop | Query   |  120 | Waiting for table metadata lock | alter table orders ...   |
        +----+------+-----------+------+---------+------+---------------------------------+--------------------------+

Lost:
    Literals of statements, users and hosts. Waits for rows: the server does not say in this list that a statement
    waits for one. Whether a session that sleeps has a transaction open. The session that asks for the list.

Units:
    ``Time`` is how long a session has been in its command, in seconds. A list has no time of its own: that of the file
    is taken, lists of one file one second apart unless a line with a time is above them.

Sources:
    MySQL 8.4 reference manual, "SHOW PROCESSLIST" and "General Thread States"; MariaDB documentation, "Thread States".
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.contracts.importer import UNNAMED_GUEST, Field, ImporterMeta, Request
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import EntityKind, Layer
from leadline.formats.mysql_sessions import BACKGROUND, IDLE, SYSTEM, wait_of
from leadline.formats.printed import number_of
from leadline.formats.printed_tables import PrintedTable, TableError, printed_tables, table_columns
from leadline.formats.statements import UNKNOWN, shown_name, statement_name

if TYPE_CHECKING:
    from leadline.core.io.source import Source

META = ImporterMeta(
    tool="MySQL process list",
    layers=(Layer.DATABASE,),
    fields={
        "Command": Field("db_active_sessions_count", "count"),
        "Id": Field("db_sessions_count", "count"),
        "State": Field("db_wait_event_sessions_count", "count"),
        "State = Waiting for ... lock": Field("db_blocked_sessions_count", "count"),
        "Time, State = Waiting for ... lock": Field("db_lock_wait_age_s_max", "s"),
        "Info": Field("db_statement_sessions_count", "count"),
    },
    record=r"mysql -e 'SHOW FULL PROCESSLIST\G' > processlist.txt",
    marks=("command",),
)

_COLUMNS = frozenset(
    "id user host db command time state info progress time_ms stage max_stage memory_used max_memory_used "
    "examined_rows sent_rows rows_sent rows_examined query_id info_binary tid thread_id name type "
    "execution_engine".split()
)
_PREFIX = "processlist_"
_NEEDED = frozenset({"command", "time", "state"})
_SERVER = Entity(EntityKind.DATABASE, "mysql", UNNAMED_GUEST)
_KEPT_MAX = 50
_SECOND_NS = 1_000_000_000
_HEAD_LINES = 400


@dataclass(frozen=True, slots=True)
class _Process:
    """A session: ``event`` is its state with what it is a wait for, empty for none."""

    is_client: bool
    is_active: bool
    time_s: float
    event: str
    statement: str


def sniff(source: Source) -> int:
    """Sure by the columns of the list."""
    lines = source.head_uncut.splitlines()[:_HEAD_LINES]
    return 90 if any(_plain(columns) >= _NEEDED for columns in table_columns(lines, _known())) else 0


def _known() -> frozenset[str]:
    return _COLUMNS | frozenset(f"{_PREFIX}{name}" for name in _COLUMNS)


def _plain(columns: Iterable[str]) -> frozenset[str]:
    return frozenset(name.removeprefix(_PREFIX) for name in columns)


def read(source: Source, request: Request) -> Capture:
    """A sample for each list.

    Raises:
        InputError: a line is no row of a list, or there is none.
    """
    builder = CaptureBuilder(source.name, "mysql-processlist", META.tool)
    try:
        tables = printed_tables(source.lines(), _known())
    except TableError as error:
        raise _refused(f"{source.name}:{error.line}", str(error)) from None
    lists = [_processes(source, table) for table in tables if _plain(table.columns) >= _NEEDED]
    if not lists:
        raise _refused(source.name, "no list of processes")
    if len(lists) < len(tables):
        builder.warn("other-tables", "other tables were left out", len(tables) - len(lists))
    builder.warn("no-times", "a list has no time: the time of the file was taken")
    times = source.mtime_ns - _SECOND_NS * np.arange(len(lists) - 1, -1, -1, dtype=np.int64)
    builder.inventory.add(_SERVER, source.name, engine="mysql")
    _emit(lists, times, builder, request)
    return builder.build(clock_known=False)


def _processes(source: Source, table: PrintedTable) -> list[_Process]:
    """The sessions of a list.

    Raises:
        InputError: a time is no number.
    """
    processes = []
    for line, cells in table.records():
        row = {name.removeprefix(_PREFIX): "" if text in {"NULL", r"\N"} else text for name, text in cells.items()}
        time_s = number_of(row["time"]) if row["time"] else float("nan")
        if row["time"] and not abs(time_s) < 1e12:
            raise _refused(f"{source.name}:{line}", f"Time is {row['time'][:40]!r}")
        process = _process(row, time_s)
        if process is not None:
            processes.append(process)
    return processes


def _process(row: dict[str, str], time_s: float) -> _Process | None:
    """A session of a row; None for the one that asks for the list."""
    command, state, text = row["command"].casefold(), row["state"], row.get("info", "")
    if re.search(r"show\s+(?:full\s+)?processlist|information_schema\.processlist|performance_schema", text, re.I):
        return None
    is_client = command not in BACKGROUND and row.get("user", "").casefold() not in SYSTEM
    kind = wait_of(state)
    return _Process(
        is_client=is_client,
        is_active=bool(command) and command not in IDLE,
        time_s=time_s if time_s < 1e9 else float("nan"),  # the server's clock went back
        event=f"{kind}:{state}" if kind else "",
        statement=shown_name(statement_name(text)) if text else UNKNOWN,
    )


def _emit(lists: list[list[_Process]], times: np.ndarray, builder: CaptureBuilder, request: Request) -> None:
    """Add every series that is asked for."""
    clients = [[one for one in processes if one.is_client] for processes in lists]
    active = [[one for one in processes if one.is_active] for processes in clients]

    def add(metric: str, entity: Entity, values: Iterable[float], alone_s: float | None = None) -> None:
        column = np.array(list(values), dtype=np.float64)
        if request.wants(metric) and np.isfinite(column).any():
            builder.add_series(metric, entity, times, column, interval_s=alone_s if len(times) == 1 else None)

    add("db_sessions_count", _SERVER, map(len, clients))
    add("db_active_sessions_count", _SERVER, map(len, active))
    locked = [[one for one in processes if one.event.startswith("lock:")] for processes in active]
    add("db_blocked_sessions_count", _SERVER, map(len, locked))
    ages = [max((one.time_s for one in each if one.time_s >= 0), default=float("nan")) for each in locked]
    add("db_lock_wait_age_s_max", _SERVER, ages, 1.0)
    for event in dict.fromkeys(one.event for processes in active for one in processes if one.event):
        counts = [sum(one.event == event for one in processes) for processes in active]
        add("db_wait_event_sessions_count", Entity(EntityKind.DATABASE, event, _SERVER), counts)
    names = Counter(one.statement for processes in active for one in processes if one.statement != UNKNOWN)
    for name, _ in names.most_common(_KEPT_MAX):
        entity = builder.inventory.add(Entity(EntityKind.STATEMENT, name, _SERVER), builder.info.name, statement=name)
        add("db_statement_sessions_count", entity, [sum(one.statement == name for one in each) for each in active])


def _refused(where: str, problem: str) -> InputError:
    return InputError(
        where,
        found=problem,
        expected="SHOW FULL PROCESSLIST as the shell prints it, with its heading",
        advice=f"Record it again: {META.record}",
    )
