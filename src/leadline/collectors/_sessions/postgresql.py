"""Active sessions of PostgreSQL: one query of pg_stat_activity, on a connection of its own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from leadline.collectors._sessions.sampler import READ_CHARACTERS

if TYPE_CHECKING:
    import psycopg

FILE_NAME = "pg_active_sessions.csv"
# Source: release notes of PostgreSQL 14 (pg_stat_activity.query_id) and 13 (leader_pid)
_SINCE_QUERY_ID, _SINCE_LEADER = 140000, 130000

# One row per session at work, or one row of nulls when there is none.
_QUERY = """
with moment as materialized (select clock_timestamp() as now)
select to_char(m.now at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00', a.pid, a.datname, a.backend_type,
    a.state, a.wait_event_type, a.wait_event, {query_id},
    round(greatest(extract(epoch from m.now - a.xact_start), 0)::numeric, 3),
    round(greatest(extract(epoch from m.now - a.query_start), 0)::numeric, 3),
    case when a.wait_event_type = 'Lock' then array_to_string(pg_blocking_pids(a.pid), ' ') end,
    left(a.query, {characters}), {leader_pid},
    round(greatest(extract(epoch from m.now - a.state_change), 0)::numeric, 3),
    v.relid::regclass::text, a.usename, host(a.client_addr), a.application_name
from moment m left join pg_stat_activity a on a.pid <> pg_backend_pid() and a.pid <> {other_pid}
    and a.backend_type is not null and a.state is distinct from 'idle'
    and a.wait_event_type is distinct from 'Activity'
    and (a.state is not null or a.backend_type <> 'client backend')
    left join pg_stat_progress_vacuum v on v.pid = a.pid and v.datname = current_database()
"""


class PostgresqlSessions:
    """The sessions of a server but for two: the one that asks, and another of Leadline."""

    tool = "PostgreSQL"

    def __init__(self, connection: psycopg.Connection[Any], other_pid: int) -> None:
        import psycopg  # noqa: PLC0415 - 0.2 s that only this needs

        self.errors: tuple[type[Exception], ...] = (psycopg.Error,)
        self._connection = connection
        version = connection.info.server_version
        columns = {
            "query_id": "a.query_id" if version >= _SINCE_QUERY_ID else "null",
            "leader_pid": "a.leader_pid" if version >= _SINCE_LEADER else "null",
        }
        self._query = _QUERY.format(**columns, characters=READ_CHARACTERS, other_pid=other_pid).encode()

    def rows(self) -> Sequence[Sequence[object]]:
        """A sample, or one row of nulls where nobody is at work."""
        return self._connection.execute(self._query, prepare=True).fetchall()

    def close(self) -> None:
        """Give up the connection."""
        self._connection.close()
