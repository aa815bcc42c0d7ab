"""Active sessions of MySQL and MariaDB: its process list, InnoDB's transactions, and what threads wait for."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from typing import TYPE_CHECKING, Any

from leadline.collectors._sessions.sampler import COLUMNS, READ_CHARACTERS
from leadline.formats.mysql_sessions import BACKGROUND, SYSTEM, plain_statement, wait_of

if TYPE_CHECKING:
    from pymysql.connections import Connection

FILE_NAME = "mysql_active_sessions.csv"
MORE = ("mysql_state",)
_CELLS = len(COLUMNS) - 2 + len(MORE)  # after the time, without the text of a statement
# Errors of a user who may not see something, or of a server that does not have it.
# Source: MySQL 8.4 reference manual, "Server Error Message Reference".
DENIED = frozenset({1044, 1109, 1142, 1143, 1146, 1193, 1227, 1356})

# The left side is there where nobody is at work, too. A session that sleeps is of interest while it has a transaction.
_SESSIONS = """
select utc_timestamp(6), p.ID, p.DB, p.COMMAND, p.STATE, {age_s}, left(p.INFO, {characters}), p.USER, p.HOST,
    t.trx_state, timestampdiff(microsecond, t.trx_started, utc_timestamp(6)) / 1e6
from (select 1 as one) m left join (
    information_schema.PROCESSLIST p left join {transactions} t on t.trx_mysql_thread_id = p.ID
) on p.ID <> connection_id() and p.ID <> {other} and (p.COMMAND <> 'Sleep' or t.trx_state is not null)
"""
_TRANSACTIONS = "information_schema.INNODB_TRX"
_NO_TRANSACTIONS = "(select 0 as trx_mysql_thread_id, null as trx_state, utc_timestamp(6) as trx_started)"
# MariaDB; MySQL since 8.0. Source: their manuals, "INNODB_LOCK_WAITS" and "The data_lock_waits Table".
_BLOCKERS = {
    True: """
select r.trx_mysql_thread_id, b.trx_mysql_thread_id from information_schema.INNODB_LOCK_WAITS w
join information_schema.INNODB_TRX r on r.trx_id = w.requesting_trx_id
join information_schema.INNODB_TRX b on b.trx_id = w.blocking_trx_id
""",
    False: """
select r.trx_mysql_thread_id, b.trx_mysql_thread_id from performance_schema.data_lock_waits w
join information_schema.INNODB_TRX r on r.trx_id = w.requesting_engine_transaction_id
join information_schema.INNODB_TRX b on b.trx_id = w.blocking_engine_transaction_id
""",
}
# A wait that goes on has no end yet; the last one that began is the innermost.
_WAITS = """
select t.PROCESSLIST_ID, w.EVENT_NAME from performance_schema.events_waits_current w
join performance_schema.threads t on t.THREAD_ID = w.THREAD_ID
where w.END_EVENT_ID is null and t.PROCESSLIST_ID is not null and w.EVENT_NAME <> 'idle' order by w.EVENT_ID
"""
_HAS_WAITS = """
select count(*) from performance_schema.setup_consumers
where NAME in ('events_waits_current', 'global_instrumentation', 'thread_instrumentation') and ENABLED = 'YES'
"""


class MysqlSessions:
    """The sessions of a server but for two: the one that asks, and another of Leadline.

    Attributes:
        notes: what this user may not see, and what follows.
    """

    tool = "MySQL"

    def __init__(self, connection: Connection[Any], other: int) -> None:
        import pymysql  # noqa: PLC0415 - only this needs it

        self.errors: tuple[type[Exception], ...] = (pymysql.MySQLError,)
        self.notes: list[str] = []
        self._connection = connection
        self._is_mariadb = "mariadb" in connection.get_server_info().lower()
        sees_all = self._asked(f"select 1 from {_TRANSACTIONS} limit 1") is not None
        if not sees_all:
            self.notes.append("active sessions: only those of this user are seen, without transactions; grant PROCESS")
        self._sees_blockers = sees_all and self._asked(_BLOCKERS[self._is_mariadb]) is not None
        if sees_all and not self._sees_blockers:
            self.notes.append("active sessions: who blocks whom is not seen; grant SELECT on performance_schema")
        self._sees_waits = self._asked(_HAS_WAITS) == [(3,)] and self._asked(_WAITS) is not None
        self._query = _SESSIONS.format(
            age_s="p.TIME_MS / 1000" if self._is_mariadb else "p.TIME",
            characters=READ_CHARACTERS,
            transactions=_TRANSACTIONS if sees_all else _NO_TRANSACTIONS,
            other=other,
        )

    def rows(self) -> list[Sequence[object]]:
        """A sample, or one row of nulls where nobody is at work."""
        sessions = self._ask(self._query)
        waits = dict(self._ask(_WAITS)) if self._sees_waits else {}
        blockers: dict[object, list[str]] = {}
        if self._sees_blockers and any(row[9] == "LOCK WAIT" for row in sessions):
            for pid, blocker in self._ask(_BLOCKERS[self._is_mariadb]):
                if str(blocker) not in blockers.setdefault(pid, []):
                    blockers[pid].append(str(blocker))
        rows: list[Sequence[object]] = [self._row(row, waits, blockers) for row in sessions if _is_client(row)]
        return rows or [(_stamp(sessions[0][0]), *[None] * _CELLS)]

    def _row(
        self, row: Sequence[Any], waits: dict[object, str], blockers: dict[object, list[str]]
    ) -> tuple[object, ...]:
        """A row in the order of the columns, with the state as MySQL calls it at the end."""
        now, pid, database, command, state, age_s, query, user, host, transaction, transaction_s = row
        is_idle = str(command).casefold() == "sleep"
        kind, event = ("", "") if is_idle else self._event(state or "", waits.get(pid), transaction)
        age_s = None if age_s is None else max(round(float(age_s), 3), 0.0)
        since_s = None if transaction_s is None else max(round(float(transaction_s), 3), 0.0)
        return (
            *(_stamp(now), pid, database, "client backend", "idle in transaction" if is_idle else "active"),
            *(kind, event, None, since_s, age_s, " ".join(blockers.get(pid, ())), plain_statement(query or "")),
            *(None, age_s, None, user, str(host or "").rpartition(":")[0] or host, None, state),
        )

    def _event(self, state: str, wait: str | None, transaction: str | None) -> tuple[str, str]:
        """What a session waits for: class and event, both empty where it is at work on a CPU."""
        if transaction == "LOCK WAIT":
            return "lock", "row"
        if wait is not None:
            kind, _, name = wait.removeprefix("wait/").partition("/")
            return kind, name
        kind = wait_of(state)
        if kind:
            return kind, state
        # Without instruments nobody knows whether a statement computes or reads.
        return ("", "") if self._sees_waits or not state else ("state", state)

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def _asked(self, query: str) -> list[tuple[Any, ...]] | None:
        """The rows of a query; None where this user may not run it, or the server has no such table."""
        import pymysql  # noqa: PLC0415

        try:
            return self._ask(query)
        except pymysql.MySQLError as error:
            if error.args and error.args[0] in DENIED:
                return None
            raise

    def close(self) -> None:
        """Give up the connection."""
        with suppress(*self.errors, OSError):
            self._connection.close()


def _is_client(row: Sequence[Any]) -> bool:
    """Whether a row is a session of a client; the row of a sample without sessions has no id."""
    return (
        row[1] is not None and str(row[3]).casefold() not in BACKGROUND and str(row[7] or "").casefold() not in SYSTEM
    )


def _stamp(moment: datetime) -> str:
    return f"{moment:%Y-%m-%d %H:%M:%S.%f}+00"
