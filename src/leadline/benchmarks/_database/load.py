"""What drivers of databases share: where a load goes, how the tool is run, watched and ended."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from leadline.benchmarks._database import mysql_client, throwaway_mysql, throwaway_postgresql
from leadline.benchmarks._database.throwaway import ServerModule
from leadline.core.contracts.benchmark import LoadPlan, Place, Step
from leadline.core.contracts.load_target import Target, TargetKind
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Database, Workload
from leadline.core.system import dsn, following
from leadline.core.system.addresses import Address
from leadline.core.system.following import ToolCommand
from leadline.core.system.processes import running, wait
from leadline.core.system.safety import require_space, require_usable
from leadline.core.system.secret import Secret, in_memory, of_environment

PLACE = "database"
LOG_PLACE = "wal"
FILL_S = 86_400.0
CONNECT_TIMEOUT_S = 10
_SERVERS: dict[str, ServerModule] = {"postgresql": throwaway_postgresql, dsn.MYSQL: throwaway_mysql}
PASSWORD = "PGPASSWORD"
_PASSWORDS = {"postgresql": PASSWORD, dsn.MYSQL: mysql_client.PASSWORD}
_NO_COUNTERS = "the server's own counters are not recorded: Leadline reads those of PostgreSQL"


@dataclass(frozen=True, slots=True)
class Tables:
    """The tables a tool makes: their names, how large they will be, whether the load only reads them."""

    names: tuple[str, ...]
    size_bytes: int
    only_read: bool


def settings_of(workload: Workload) -> Database:
    """The database section, which a driver of databases needs.

    Raises:
        UsageError: there is none.
    """
    if workload.database is None:
        raise UsageError(
            f"workload {workload.name}", found="no database", expected="a database section", advice="See the guide."
        )
    return workload.database


def plan_of(workload: Workload, target: Target, tables: Tables) -> LoadPlan:
    """A throw-away server for ``new`` or a folder, else the database of a DSN.

    Raises:
        UsageError: the target is neither, names no database, or holds data nobody named.
        ToolError: there is not enough space, or the server cannot be reached.
    """
    engine = settings_of(workload).engine
    notes = () if engine == "postgresql" else (_NO_COUNTERS,)
    if not target.name or target.kind is TargetKind.NEW or Path(target.name).is_dir():
        if target.kind is not TargetKind.NEW:
            require_usable(target.name)
        server = _SERVERS[engine]
        base = server.base_of(target.name)
        needed = server.expected_bytes(tables.size_bytes)
        require_space(str(base.parent), needed)
        places = {PLACE: Place(str(base), needed, is_made=True), **_log_place(target, server, engine)}
        return LoadPlan(workload, target, places, (server.NOTE, *notes))
    plain = _server(target.name, engine)
    secret = target.secret or of_environment(_PASSWORDS[engine])
    if target.destroy is not None and dsn.parts(target.destroy) == dsn.parts(target.name):
        note = f"{', '.join(tables.names)} in that database are dropped, made and filled, and dropped in the end"
        place = Place(plain, tables.size_bytes, is_made=False)
        return LoadPlan(workload, Target(plain, plain), {PLACE: place}, (note, *notes), secret=secret)
    if not tables.only_read or target.destroy is not None or not _has_tables(plain, secret, tables.names):
        raise UsageError(
            dsn.masked(target.name),
            found=f"a database in which tables would be dropped ({', '.join(tables.names)})",
            expected="--destroy-data with the very same DSN",
            advice="Name `new` for a server of its own; what only reads may use tables that are there.",
        )
    place = Place(plain, 0, is_made=False)
    return LoadPlan(workload, Target(plain), {PLACE: place}, notes, read_only=True, secret=secret)


def _log_place(target: Target, server: ServerModule, engine: str) -> dict[str, Place]:
    """Where the log goes when it was given a folder of its own.

    Raises:
        UsageError: it is no folder, or the engine's log cannot be kept apart.
    """
    named = target.roles.get(LOG_PLACE)
    if named is None:
        return {}
    if not Path(named).is_dir() or not server.LOG:
        raise UsageError(
            f"--wal {named}",
            found="no folder" if server.LOG else f"a throw-away server of {engine}",
            expected="a folder, for a server of PostgreSQL's",
            advice="Make it first, or leave --wal out.",
        )
    require_usable(named)
    return {LOG_PLACE: Place(str(Path(named).resolve() / server.LOG), 0, is_made=True)}


def _server(name: str, engine: str) -> str:
    """A connection string that names a database of the engine."""
    parameters = dsn.parts(name)
    example = "mysql://bench@db1/bench" if engine == dsn.MYSQL else "'host=db1 dbname=bench'"
    if not parameters:
        raise UsageError(
            "--on",
            found="neither `new`, nor a folder that is there, nor a DSN",
            expected="one of them",
            advice=f"For example --on new, or --on {example}.",
        )
    if dsn.engine_of(name) != engine:
        raise UsageError(
            dsn.masked(name),
            found=f"a DSN of {dsn.engine_of(name)}, and a workload of {engine}",
            expected="the same engine",
            advice=f"Set database.engine in the workload, or name a DSN as {example}.",
        )
    if not parameters.get("dbname"):
        raise UsageError(
            dsn.masked(name), found="no database named", expected="dbname=NAME", advice="Name the database to load."
        )
    return dsn.together(parameters)


def _has_tables(plain: str, secret: Secret | None, names: Sequence[str]) -> bool:
    if dsn.engine_of(plain) == dsn.MYSQL:
        listed = ", ".join(f"'{name}'" for name in names)
        there = f"table_schema = database() and table_name in ({listed})"
        rows = ask(plain, secret, f"select count(*) from information_schema.tables where {there}")
        return rows == [[str(len(names))]]
    rows = ask(plain, secret, "select count(*) from unnest(%s::text[]) n where to_regclass(n) is not null", list(names))
    return bool(rows and rows[0][0] == len(names))


def ask(plain: str, secret: Secret | None, statement: str, *values: object) -> list[Any]:
    """What one statement answers; nothing when it has no rows. MySQL answers text and takes no values.

    Raises:
        ToolError: the server cannot be reached or refuses.
    """
    if dsn.engine_of(plain) == dsn.MYSQL:
        return mysql_client.ask(plain, secret or None, statement)
    import psycopg  # noqa: PLC0415 - 0.2 s that only databases need

    try:
        password = (secret or of_environment(PASSWORD)).reveal() or None
        with psycopg.connect(plain, password=password, connect_timeout=CONNECT_TIMEOUT_S) as connection:
            cursor = connection.execute(statement.encode(), values or None)
            return [] if cursor.description is None else cursor.fetchall()
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or ["no reason"])[0][:240]
        raise ToolError(
            dsn.masked(plain),
            found=reason,
            expected="a PostgreSQL server that lets this user in",
            advice="Try the same words with psql.",
        ) from None


def reached(plan: LoadPlan) -> dict[str, str]:
    """The parameters of the server a plan loads, without the password."""
    place = plan.places[PLACE]
    parameters = _server_of(plan).dsn_of(Path(place.path)) if place.is_made else dsn.parts(place.path)
    left_out = "passfile" if plan.secret else ""  # it would be read instead of ours
    return {key: str(value) for key, value in parameters.items() if key != left_out}


def _server_of(plan: LoadPlan) -> ServerModule:
    return _SERVERS[settings_of(plan.workload).engine]


def sources_of(plan: LoadPlan) -> dict[str, Address]:
    """The server, to be recorded while it is loaded, where there is a collector for it."""
    if settings_of(plan.workload).engine != "postgresql":
        return {}
    return {"postgresql": Address(dsn.together(reached(plan)), plan.secret)}


def start(plan: LoadPlan, folder: Path) -> None:
    """Start the throw-away server, where the plan has one.

    Raises:
        ToolError: the engine is not installed, or does not start.
    """
    place, settings = plan.places[PLACE], settings_of(plan.workload)
    if place.is_made:
        log = plan.places.get(LOG_PLACE)
        apart = None if log is None else Path(log.path)
        output = folder / f"{settings.engine}.txt"
        _server_of(plan).start(Path(place.path), output, settings.clients, apart, plan.enclosure)


def stop(plan: LoadPlan) -> bool:
    """End and remove the throw-away server; False when the plan has none."""
    place = plan.places[PLACE]
    if place.is_made:
        _server_of(plan).stop(Path(place.path))
    return place.is_made


def finish(plan: LoadPlan, load: ToolCommand) -> None:
    """Run a command to its end.

    Raises:
        ToolError: it fails.
    """
    with (
        _let_in(plan, load) as client_load,
        running(
            client_load.words,
            output=client_load.output,
            folder=client_load.output.parent,
            variables=client_load.variables,
            descriptors=client_load.descriptors,
        ) as process,
    ):
        if not wait(process, FILL_S) or process.returncode:
            raise failed(plan, load)


def follow(
    plan: LoadPlan, load: ToolCommand, step: Step, tick_of: Callable[[str], Tick | None], watch: Watch
) -> tuple[list[Tick], bool]:
    """Run a load to its end, or until ``watch`` has seen enough; its seconds, and whether it was ended early.

    Raises:
        ToolError: it fails or does not end.
    """
    with _let_in(plan, load) as client_load:
        return following.follow(client_load, step.duration_s, tick_of, watch, lambda: failed(plan, load))


@contextmanager
def _let_in(plan: LoadPlan, load: ToolCommand) -> Iterator[ToolCommand]:
    """Yield the load with its password in a client file without a name, and with decimal points in numbers.

    Source: libpq documentation, "The Password File"; sysbench(1), ``--config-file``.
    """
    plain = {"LC_ALL": "C"}
    if not plan.secret:
        yield replace(load, variables=plain)
    elif settings_of(plan.workload).engine == dsn.MYSQL:
        with in_memory(f"mysql-password={plan.secret.reveal()}\n") as (descriptor, path):
            words = [load.words[0], f"--config-file={path}", *load.words[1:]]
            yield replace(load, words=words, variables=plain, descriptors=(descriptor,))
    else:
        value = plan.secret.reveal().replace("\\", "\\\\").replace(":", "\\:")
        with in_memory(f"*:*:*:*:{value}\n") as (descriptor, path):
            yield replace(load, variables=plain | {"PGPASSFILE": path}, descriptors=(descriptor,))


def failed(plan: LoadPlan, load: ToolCommand) -> ToolError:
    """Return the error of a load tool that failed, with its message."""
    lines = [line for line in load.output.read_text(errors="replace").splitlines() if line.strip()]
    marks = ("error", "fatal", "aborted", "could not")
    last = (lines or ["nothing"])[-1]
    complaint = next((line for line in lines if any(mark in line.lower() for mark in marks)), last)
    return ToolError(
        dsn.masked(dsn.together(reached(plan))),
        found=f"{load.words[0]} failed: {complaint[:200]}",
        expected="a whole run",
        advice="Look at the server's log, its limit of connections and free space.",
    )
