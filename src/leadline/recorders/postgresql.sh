# Target: a PostgreSQL server that psql reaches (PGHOST, PGUSER, PGPASSFILE as usual)
# Collects: what sessions at work wait for, every INTERVAL seconds: user, address, wait, verb and table of the statement
# Collects: pg_stat_database, bgwriter, wal, io, checkpointer every ten seconds; settings without commands and connections
# Queries: texts of the statements, their literals replaced by question marks
# Tried: PostgreSQL 15; written for 9.6 to 18

pg() { psql -X -q -A -t -v ON_ERROR_STOP=1 "$@" 2>/dev/null; }

pg_sessions_query() { # a row for each session at work, or one without a session
    query_id=null leader=null text=null
    [ "$PG_VERSION" -ge 140000 ] && query_id=a.query_id
    [ "$PG_VERSION" -ge 130000 ] && leader=a.leader_pid
    [ -n "$PG_QUERIES" ] && text="regexp_replace(regexp_replace(left(a.query, 2000), '''([^'']|'''')*''', '?', 'g'), '\\m[0-9.]+\\M', '?', 'g')"
    cat <<SQL
COPY (SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00' AS now, a.pid, a.datname,
  a.backend_type, a.state, a.wait_event_type, a.wait_event, $query_id AS query_id,
  round(greatest(extract(epoch FROM clock_timestamp() - a.xact_start), 0)::numeric, 3) AS xact_age_s,
  round(greatest(extract(epoch FROM clock_timestamp() - a.query_start), 0)::numeric, 3) AS query_age_s,
  CASE WHEN a.wait_event_type = 'Lock' THEN array_to_string(pg_blocking_pids(a.pid), ' ') END AS blocked_by,
  upper(substring(a.query FROM '^\\s*(\\w+)')) || coalesce(' ' || CASE upper(substring(a.query FROM '^\\s*(\\w+)'))
    WHEN 'INSERT' THEN 'INTO ' WHEN 'DELETE' THEN 'FROM ' ELSE '' END
    || substring(a.query FROM '(?i)\\m(?:from|update|into|table)\\s+([\\w."]+)'), '') AS query,
  $leader AS leader_pid,
  round(greatest(extract(epoch FROM clock_timestamp() - a.state_change), 0)::numeric, 3) AS state_age_s,
  NULL AS relation, a.usename, host(a.client_addr) AS client_addr, NULL AS application, $text AS statement_text
  FROM (SELECT 1) AS one LEFT JOIN pg_stat_activity a ON a.pid <> pg_backend_pid() AND a.backend_type IS NOT NULL
    AND a.state IS DISTINCT FROM 'idle' AND a.wait_event_type IS DISTINCT FROM 'Activity'
    AND (a.state IS NOT NULL OR a.backend_type <> 'client backend')
    AND a.application_name <> 'leadline recorder') TO STDOUT WITH (FORMAT csv$1);
SQL
}

pg_sessions() { # one connection that is asked again and again
    {
        echo "SET application_name = 'leadline recorder'; SET default_transaction_read_only = on; SET statement_timeout = '5s';"
        pg_sessions_query ", HEADER"
        while pause "$INTERVAL"; do pg_sessions_query ""; done
    } | psql -X -q >>"$DIR/pg_active_sessions.csv" 2>/dev/null
}

pg_views() {
    header=", HEADER"
    while going; do
        for view in $PG_VIEWS; do
            pg -c "COPY (SELECT to_char(clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD HH24:MI:SS.US') || '+00' AS now, * FROM $view) TO STDOUT WITH (FORMAT csv$header)" >>"$DIR/$view.csv"
        done
        header=""
        pause 10
    done
}

postgresql_begin() {
    PG_QUERIES="@WITH_QUERIES@"
    have psql || { missing "PostgreSQL: psql is not here"; return; }
    PG_VERSION=$(pg -c 'SHOW server_version_num')
    [ -n "$PG_VERSION" ] || { missing "PostgreSQL: psql reaches no server (PGHOST, PGPORT, PGUSER, PGPASSFILE)"; return; }
    [ "$PG_VERSION" -ge 90600 ] || { missing "PostgreSQL: version $PG_VERSION is older than 9.6"; return; }
    PG_VIEWS="pg_stat_database pg_stat_bgwriter"
    [ "$PG_VERSION" -ge 140000 ] && PG_VIEWS="$PG_VIEWS pg_stat_wal"
    [ "$PG_VERSION" -ge 160000 ] && PG_VIEWS="$PG_VIEWS pg_stat_io"
    [ "$PG_VERSION" -ge 170000 ] && PG_VIEWS="$PG_VIEWS pg_stat_checkpointer"
    pg -c "COPY (SELECT name, setting, unit, context, vartype, source, boot_val, reset_val, pending_restart FROM pg_settings
        WHERE name !~ '(command|conninfo|password|key|cert|passphrase|_file\$|directory|listen_addresses|synchronous_standby_names)')
        TO STDOUT WITH (FORMAT csv, HEADER)" >"$DIR/pg_settings.csv"
    if [ "$PG_VERSION" -ge 100000 ]; then
        background pg_sessions
    else
        missing "sessions at work: PostgreSQL before 10 does not tell their kind"
    fi
    background pg_views
    [ "$(pg -c "SELECT pg_has_role('pg_monitor', 'member')")" = t ] ||
        missing "what other users' sessions wait for: grant pg_monitor to this user"
}
