"""PostgreSQL's cumulative statistics, sampled over time, and its settings.

Collects:
    ``pg_stat_database``, ``pg_stat_bgwriter``, ``pg_stat_wal`` (14 and newer), ``pg_stat_io`` (16) and
    ``pg_stat_checkpointer`` (17) again and again, each as CSV snapshots with a time, and ``pg_settings`` once: sizes,
    times, counts, costs and switches, and no commands, connection strings, addresses or paths of keys.
    Transactions, checkpoints, read and log write latency follow from them (see the importer pg-stat).
    On request the sessions at work, many times a second (see the importer pg-active-sessions). Of a statement only the
    verb and the first table are kept, because its text may hold secrets; of a session the user, the client's address
    and how long it is in its state. On request the texts of statements without literals, and the names of applications.
    Every minute, where the database has the extension pg_stat_statements, what the statements did that did most by
    time, blocks read, WAL or temporary files, fifty by each (see the importer pg-stat-statements).

Cost:
    One connection that stays open; a few milliseconds of one backend per sample. Transactions are read-only, statements
    end after five seconds. Active sessions take a second connection and one query of ``pg_stat_activity`` per sample.
    Their file grows by about 130 bytes per session and sample: 80 sessions, ten times a second, are 0.4 GB an hour.
    A look at pg_stat_statements reads its counts, and its texts only when statements are new among those kept.

Late or missing data:
    The server publishes what a backend did when its transaction ends, at the latest after a second. Latencies are there
    only with track_io_timing and track_wal_io_timing. Views of newer versions and those without privilege (grant
    pg_monitor) are left out and named. A late sample of active sessions is skipped and counted.
    When the connection is lost the recording ends, with what was sampled kept.

Sources:
    PostgreSQL 13 to 17 documentation, chapter "The Cumulative Statistics System"; psycopg 3, COPY.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leadline.collectors._postgresql_statements import BEGINNING as STATEMENTS_BEGINNING
from leadline.collectors._postgresql_statements import FILE_NAME as STATEMENTS
from leadline.collectors._postgresql_statements import StatementSnapshots, snapshots_of
from leadline.collectors._sessions.postgresql import FILE_NAME, PostgresqlSessions
from leadline.collectors._sessions.sampler import SessionRows, SessionSampler, beginning
from leadline.core.contracts.collector import CollectorMeta
from leadline.core.io.outputs import RECORDED_BY, Output, check_to_append, open_to_append
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import Layer
from leadline.core.system.addresses import Address
from leadline.core.system.dsn import is_of_database, masked, parts
from leadline.core.system.secret import of_environment
from leadline.estate.knowledge.database_settings import POSTGRESQL_HARMLESS, POSTGRESQL_NAMING

if TYPE_CHECKING:
    import psycopg

META = CollectorMeta(tool="PostgreSQL", layers=(Layer.DATABASE,), privilege="pg_monitor, or any user with less to see")

SETTINGS = "pg_settings"
# View -> the first version that has it.
VIEWS = {
    "pg_stat_database": 90000,
    "pg_stat_bgwriter": 90000,
    "pg_stat_wal": 140000,
    "pg_stat_io": 160000,
    "pg_stat_checkpointer": 170000,
}
# Where a setting was read from and its description are left out: file names, and texts that are the same everywhere.
_SETTING_COLUMNS = "name, setting, unit, context, vartype, source, boot_val, reset_val, pending_restart"
# View -> the columns its snapshots begin with. Source: PostgreSQL 13 to 18 documentation.
_BEGINNINGS = {
    "pg_stat_database": "datid,datname,numbackends,",
    "pg_stat_bgwriter": "(checkpoints_timed,checkpoints_req|buffers_clean,maxwritten_clean),",
    "pg_stat_wal": "wal_records,wal_fpi,",
    "pg_stat_io": "backend_type,object,context,",
    "pg_stat_checkpointer": "num_timed,num_requested,",
}
_SESSION = (
    "set session characteristics as transaction read only",
    "set statement_timeout = '5s'",
    "set timezone = 'UTC'",
    "set datestyle = 'ISO'",
)
CONNECT_TIMEOUT_S = 10


def record(
    target: Address,
    folder: Path,
    *,
    active_sessions_every_ms: int = 0,
    statement_texts: bool = False,
    whole_rows: bool = False,
    statements_every_s: int = 60,
) -> PostgresqlRecorder:
    """A recorder of the server a connection string names; active sessions are sampled unless their interval is 0.

    With ``statement_texts`` the texts of their statements are kept, without literals, and the names of applications.
    With ``whole_rows`` a row repeats what the same session had in the sample before, so that the end of the file can be
    read by itself. Statements are looked at every ``statements_every_s`` seconds, 0 for never.

    Raises:
        UsageError: the folder holds settings or snapshots that Leadline did not record.
        ToolError: it cannot be reached or refuses the login.
    """
    settings = Output(folder / f"{SETTINGS}.csv", "--output", advice="Name another folder.")
    settings.check()
    for view in VIEWS:
        check_to_append(folder / f"{view}.csv", _beginning(view))
    check_to_append(folder / STATEMENTS, STATEMENTS_BEGINNING)
    if active_sessions_every_ms > 0:
        check_to_append(folder / FILE_NAME, beginning())
    recorder = PostgresqlRecorder(_connected(target), folder, settings)
    if statements_every_s > 0:
        recorder.sample_statements(statements_every_s, texts=statement_texts)
    if active_sessions_every_ms > 0:
        try:
            rows = SessionRows(texts=statement_texts, whole=whole_rows)
            recorder.sample_sessions(_connected(target), active_sessions_every_ms / 1000, rows)
        except BaseException:
            recorder.close()
            raise
    return recorder


def _beginning(view: str) -> re.Pattern[bytes]:
    """What a file with snapshots of a view begins with."""
    return re.compile(f"now,{_BEGINNINGS[view]}[a-z0-9_,]+\n".encode())


def _connected(target: Address) -> psycopg.Connection[Any]:
    """A connection that only reads."""
    import psycopg  # noqa: PLC0415 - 0.2 s that only this collector needs

    try:
        connection = psycopg.connect(
            target.text,
            password=(target.secret or of_environment("PGPASSWORD")).reveal() or None,
            autocommit=True,
            application_name="leadline",
            connect_timeout=CONNECT_TIMEOUT_S,
        )
    except (psycopg.Error, ValueError) as error:
        raise _unreachable(target.text, error) from None  # the error of libpq may repeat the password
    for statement in _SESSION:
        connection.execute(statement.encode())
    return connection


def _unreachable(target: str, error: Exception) -> ToolError:
    first = str(error).strip().splitlines()
    reason = first[0][:160] if first else type(error).__name__
    if target and not (is_of_database(target) and parts(target)):
        reason = "not a connection string"
    return ToolError(
        masked(target),
        found=f"no connection ({reason})",
        expected="a PostgreSQL server that lets this user in",
        advice="Try the same words with psql; the password may come from PGPASSFILE or PGPASSWORD.",
    )


def _broken_off(error: Exception) -> ToolError:
    reason = str(error).splitlines()[0][:120] if str(error) else "no reason"
    return ToolError(
        "PostgreSQL",
        found=f"the connection broke off ({reason})",
        expected="a server that goes on answering",
        advice="What was sampled until then is kept.",
    )


class PostgresqlRecorder:
    """Appends a snapshot of each view to a CSV file of its name."""

    def __init__(self, connection: psycopg.Connection[Any], folder: Path, settings: Output) -> None:
        self.notes: list[str] = []
        self._connection = connection
        self._folder = folder
        self._headers: set[str] = set()
        self._sessions: SessionSampler | None = None
        self._statements: StatementSnapshots | None = None
        version = connection.info.server_version
        self._views = [view for view, since in VIEWS.items() if version >= since]
        kept = ", ".join(f"'{name}'" for name in sorted(POSTGRESQL_HARMLESS | POSTGRESQL_NAMING))
        query = f"select {_SETTING_COLUMNS}, 'Leadline' as {RECORDED_BY} from pg_settings where name in ({kept})"
        self._copy(SETTINGS, query, header=True, whole=settings)

    def sample_sessions(self, connection: psycopg.Connection[Any], every_s: float, rows: SessionRows) -> None:
        """Sample the sessions at work from now on, on a connection of their own."""
        sees_all = "select pg_has_role(current_user, 'pg_read_all_stats', 'usage')"
        row = connection.execute(sees_all.encode()).fetchone()
        if row is not None and not row[0]:
            self.notes.append("active sessions: only those of this user are seen; grant pg_monitor to see all")
        source = PostgresqlSessions(connection, self._connection.info.backend_pid)
        self._sessions = SessionSampler(source, self._folder / FILE_NAME, every_s, rows)

    def sample_statements(self, every_s: float, *, texts: bool) -> None:
        """Look at the statements again and again from now on, where the database has pg_stat_statements."""
        self._statements = snapshots_of(self._connection, self._folder, every_s=every_s, texts=texts)

    def sample(self) -> None:
        """Append a snapshot of every view.

        Raises:
            ToolError: the connection is lost.
        """
        if self._sessions is not None:
            self._sessions.check()
        for view in list(self._views):
            header = view not in self._headers
            if self._copy(view, f"select clock_timestamp() as now, * from {view}", header=header):
                self._headers.add(view)
            else:
                self._views.remove(view)
        self._sample_statements()

    def _sample_statements(self) -> None:
        import psycopg  # noqa: PLC0415

        if self._statements is None:
            return
        try:
            self._statements.sample()
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.ObjectNotInPrerequisiteState) as error:
            self.notes.append(f"{STATEMENTS} left out: {str(error).splitlines()[0]}")
            self._statements = None
        except psycopg.Error as error:
            raise _broken_off(error) from error

    def _copy(self, name: str, query: str, *, header: bool, whole: Output | None = None) -> bool:
        """Append the rows of a query to its file, or write them to a new one; False when this user may not run it."""
        import psycopg  # noqa: PLC0415

        command = f"copy ({query}) to stdout (format csv, header {str(header).lower()})"
        try:
            with self._connection.cursor() as cursor, cursor.copy(command.encode()) as rows:
                data = b"".join(bytes(part) for part in rows)
        except (psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedTable) as error:
            self.notes.append(f"{name} left out: {str(error).splitlines()[0]}")
            return False
        except psycopg.Error as error:
            raise _broken_off(error) from error
        if whole is not None:
            whole.write(data)
            return True
        with open_to_append(self._folder / f"{name}.csv", _beginning(name)) as stream:
            stream.write(data)
        return True

    def close(self) -> None:
        """Give up the connections."""
        if self._sessions is not None:
            self.notes.extend(self._sessions.close())
        self._connection.close()
