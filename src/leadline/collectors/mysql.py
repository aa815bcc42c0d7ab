"""MySQL's or MariaDB's status variables, InnoDB's status and the sessions at work, sampled over time.

Collects:
    ``SHOW GLOBAL STATUS`` again and again, a row for each sample: the variables that are numbers, without those of
    single commands, TLS and the performance schema itself (see the importer mysql-status). Once a minute
    ``SHOW ENGINE INNODB STATUS``: pending I/O, log, buffer pool, row operations, semaphores, the length of the history
    list, and none of its transactions and statements (see innodb-status).
    On request the sessions at work, with what they wait for, who blocks them, and those that sleep in a transaction
    (see pg-active-sessions, whose columns they have). Of a statement only the verb and the first table are kept,
    because its text may hold secrets. On request the texts of statements without literals.

Cost:
    One connection that stays open: 2 ms of the server's CPU per sample, and 1 KB. For active sessions a second
    connection: 2 ms per sample beside a hundred sessions that sleep (MariaDB 10.11). Statements end after five seconds.

Late or missing data:
    Without the privilege PROCESS only this user's sessions are seen, and no InnoDB status. Waits for I/O and internal
    locks are there where the performance schema is on, with the consumer events_waits_current; else a session has its
    state, and whether it computes or reads is not known. When the connection is lost the recording ends, with what was
    sampled kept. A password goes to a server on another machine in the form that its method of login wants; name
    ``ca_file`` to encrypt the connection and check who answers.

Sources:
    MySQL 8.4 reference manual, "SHOW STATUS", "The INFORMATION_SCHEMA INNODB_TRX Table", "Performance Schema Wait Event
    Tables"; MariaDB documentation of the same; written for MySQL 5.7 to 8.4, tried with MariaDB 10.11.
"""

from __future__ import annotations

import re
import time
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.collectors._sessions.mysql import DENIED, FILE_NAME, MORE, MysqlSessions
from leadline.collectors._sessions.sampler import SessionRows, SessionSampler, beginning
from leadline.core.contracts.collector import CollectorMeta
from leadline.core.io.outputs import check_to_append, open_to_append
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import Layer
from leadline.core.system import dsn
from leadline.core.system.addresses import Address
from leadline.core.system.extras import require
from leadline.core.system.secret import of_environment

if TYPE_CHECKING:
    from pymysql.connections import Connection

META = CollectorMeta(tool="MySQL", layers=(Layer.DATABASE,), privilege="PROCESS, or any user with less to see")

STATUS, INNODB = "mysql_status.tsv", "innodb_status.txt"
CONNECT_TIMEOUT_S = 10
ANSWER_TIMEOUT_S = 10
INNODB_EVERY_S = 60.0
PORT = 3306
_STATUS_BEGINNING = re.compile(rb"time\t(?:[A-Z]\w{1,80}\t){20}")
_RULE = "=" * 37
_INNODB_BEGINNING = re.compile(rb"={37}\n\d{4}-\d\d-\d\d \d\d:\d\d:\d\d INNODB MONITOR OUTPUT\n")
# Variables that nobody reads: how often each command ran but for the usual ones, TLS, the performance schema itself.
_LEFT_OUT = re.compile(
    r"(?:performance_schema|ssl|feature|com_(?!(?:commit|rollback|begin|select|insert|insert_select|update|update_multi"
    r"|delete|delete_multi|replace|load|lock_tables|alter_table|create_table|create_index|truncate|call_procedure)\Z))"
    r"_?\w*",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"-?\d{1,20}(?:\.\d{1,9})?")
# Sections that hold no statement; of the transactions the lines that count.
_SECTIONS = frozenset(
    {"BACKGROUND THREAD", "SEMAPHORES", "FILE I/O", "LOG", "BUFFER POOL AND MEMORY", "ROW OPERATIONS"}
)
_COUNTING = ("Per second averages", "History list length", "Purge done", "Trx id counter")
_SESSION = (
    "set session transaction read only",
    "set session time_zone = '+00:00'",
)
_LIMITS = {True: "set session max_statement_time = 5", False: "set session max_execution_time = 5000"}


def record(
    target: Address,
    folder: Path,
    *,
    active_sessions_every_ms: int = 0,
    statement_texts: bool = False,
    whole_rows: bool = False,
    ca_file: str = "",
) -> MysqlRecorder:
    """A recorder of the server that ``mysql://user@host:3306/`` or ``mysql://user@localhost/?unix_socket=PATH`` names.

    Active sessions are sampled unless their interval is 0. With ``statement_texts`` the texts of their statements are
    kept, without literals. With ``whole_rows`` a row repeats what the same session had in the sample before. With
    ``ca_file`` the connection is encrypted, and the server's certificate is checked against that authority.

    Raises:
        UsageError: the target is none, or the folder holds files of those names that Leadline did not record.
        ToolError: it cannot be reached or refuses the login.
    """
    check_to_append(folder / STATUS, _STATUS_BEGINNING)
    check_to_append(folder / INNODB, _INNODB_BEGINNING)
    if active_sessions_every_ms > 0:
        check_to_append(folder / FILE_NAME, beginning(MORE))
    recorder = MysqlRecorder(_connected(target, ca_file), folder)
    if active_sessions_every_ms > 0:
        try:
            rows = SessionRows(texts=statement_texts, whole=whole_rows, more=MORE)
            recorder.sample_sessions(_connected(target, ca_file), active_sessions_every_ms / 1000, rows)
        except BaseException:
            recorder.close()
            raise
    return recorder


def _connected(target: Address, ca_file: str) -> Connection[Any]:
    """A connection that only reads."""
    parameters = dsn.parts(target.text) if dsn.engine_of(target.text) == dsn.MYSQL else {}
    if not parameters:
        raise UsageError(
            dsn.masked(target.text),
            found="no address of a MySQL server",
            expected="mysql://user@host:3306/ or mysql://user@localhost/?unix_socket=/run/mysqld/mysqld.sock",
            advice="Write special characters as %XX.",
        )
    pymysql = require("pymysql")
    secret = target.secret or of_environment("MYSQL_PWD")
    tls = {"ssl_ca": ca_file, "ssl_verify_cert": True, "ssl_verify_identity": True} if ca_file else {}
    try:
        connection: Connection[Any] = pymysql.connect(
            host=str(parameters["host"]),
            port=int(parameters.get("port") or PORT),
            unix_socket=parameters.get("socket"),
            user=parameters.get("user"),
            password=secret.reveal(),
            database=parameters.get("dbname"),
            connect_timeout=CONNECT_TIMEOUT_S,
            read_timeout=ANSWER_TIMEOUT_S,
            write_timeout=ANSWER_TIMEOUT_S,
            charset="utf8mb4",
            autocommit=True,
            program_name="leadline",
            **tls,
        )
        with connection.cursor() as cursor:
            for statement in (*_SESSION, _LIMITS["mariadb" in connection.get_server_info().lower()]):
                cursor.execute(statement)
    except (pymysql.MySQLError, OSError, RuntimeError, ValueError) as error:
        raise ToolError(
            dsn.masked(target.text),
            found=f"no connection ({_reason(error)})",
            expected="a MySQL or MariaDB server that lets this user in",
            advice="Try the same with mysql; the password may come from MYSQL_PWD.",
        ) from None  # the error holds the words of the connection
    return connection


def _reason(error: Exception) -> str:
    """What an error of the client says, in a few words."""
    return " ".join(str(error.args[-1] if error.args else error).split())[:160] or type(error).__name__


class MysqlRecorder:
    """Appends a row of status variables per sample, and a report of InnoDB once a minute."""

    def __init__(self, connection: Connection[Any], folder: Path) -> None:
        self.notes: list[str] = []
        self._connection = connection
        self._folder = folder
        self._sessions: SessionSampler | None = None
        self._innodb_at: float | None = time.monotonic()
        self._names: tuple[str, ...] = ()

    def sample_sessions(self, connection: Connection[Any], every_s: float, rows: SessionRows) -> None:
        """Sample the sessions at work from now on, on a connection of their own."""
        source = MysqlSessions(connection, self._connection.thread_id())
        self.notes += source.notes
        self._sessions = SessionSampler(source, self._folder / FILE_NAME, every_s, rows)

    def sample(self) -> None:
        """Append a row, and once a minute a report of InnoDB.

        Raises:
            ToolError: the connection is lost, or the files cannot be written.
        """
        import pymysql  # noqa: PLC0415 - only this collector needs it

        if self._sessions is not None:
            self._sessions.check()
        try:
            self._sample_status()
            if self._innodb_at is not None and time.monotonic() >= self._innodb_at:
                self._innodb_at += INNODB_EVERY_S * (1 + (time.monotonic() - self._innodb_at) // INNODB_EVERY_S)
                self._sample_innodb()
        except (pymysql.MySQLError, OSError) as error:
            raise ToolError(
                "MySQL",
                found=f"the recording broke off ({_reason(error)})",
                expected="a server that goes on answering, and space to write to",
                advice="What was sampled until then is kept.",
            ) from error

    def close(self) -> None:
        """Give up the connections."""
        if self._sessions is not None:
            self.notes.extend(self._sessions.close())
        with suppress(Exception):  # it may be lost already
            self._connection.close()

    def _ask(self, query: str) -> list[tuple[Any, ...]]:
        with self._connection.cursor() as cursor:
            cursor.execute(query)
            return list(cursor.fetchall())

    def _now(self) -> datetime:
        (moment,) = self._ask("select utc_timestamp(6)")[0]
        return moment  # type: ignore[no-any-return]

    def _sample_status(self) -> None:
        moment = self._now()
        status = {name: text for name, text in self._ask("SHOW GLOBAL STATUS") if _NUMBER.fullmatch(str(text))}
        path = self._folder / STATUS
        with open_to_append(path, _STATUS_BEGINNING) as stream:
            text = ""
            if not self._names:
                recorded = _header(path)
                self._names = recorded or tuple(name for name in sorted(status) if not _LEFT_OUT.fullmatch(name))
                text = "" if recorded else "\t".join(("time", *self._names)) + "\n"
            cells = (f"{moment:%Y-%m-%d %H:%M:%S.%f}+00:00", *(str(status.get(name, "")) for name in self._names))
            stream.write((text + "\t".join(cells) + "\n").encode())

    def _sample_innodb(self) -> None:
        import pymysql  # noqa: PLC0415

        try:
            rows = self._ask("SHOW ENGINE INNODB STATUS")
        except pymysql.MySQLError as error:
            if not error.args or error.args[0] not in DENIED:
                raise
            self.notes.append(f"InnoDB's status left out: {_reason(error)}")
            self._innodb_at = None
            return
        lines = _without_statements(str(rows[0][-1])) if rows else []
        report = [_RULE, f"{self._now():%Y-%m-%d %H:%M:%S} INNODB MONITOR OUTPUT", _RULE, *lines, ""]
        with open_to_append(self._folder / INNODB, _INNODB_BEGINNING) as stream:
            stream.write("\n".join(report).encode())


def _header(path: Path) -> tuple[str, ...]:
    """The variables that a recording goes on with; none where it is new."""
    with path.open(encoding="utf-8") as stream:
        return tuple(stream.readline().rstrip("\n").split("\t")[1:])


def _without_statements(report: str) -> list[str]:
    """The lines of InnoDB's report that hold no statement, user or host."""
    lines = report.split("\n")
    kept: list[str] = []
    section = ""
    for before, line, after in zip(["", *lines], lines, [*lines[1:], ""], strict=False):
        is_heading = bool(line) and set(before) == set(after) == {"-"}
        if is_heading:
            section = line.strip()
        if section in _SECTIONS:
            kept += [before, line] if is_heading and kept[-1:] != [before] else [line]
        elif line.startswith(_COUNTING):
            kept.append(line)
    return kept
