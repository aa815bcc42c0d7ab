"""Database load by go-tpc: the transactions of TPC-C or the queries of TPC-H on PostgreSQL or MySQL.

Measures:
    TPC-C (``script: tpcc``): transactions per second and the latency of every type (NEW_ORDER, PAYMENT, ORDER_STATUS,
    DELIVERY, STOCK_LEVEL), in the mix 45, 43, 4, 4, 4. ``scale`` is the number of warehouses. go-tpc prints no
    histogram; from intervals of 10 ms most latencies are known to its bucket (a sixteenth of their value or 0.52 ms).
    TPC-H (``script: tpch``): the seconds of each of the 22 queries. ``scale`` is the scale factor, about 1 GB of text.

Does not:
    Make audited TPC results: there are no keying and thinking times, no terminals, no price. tpmC of go-tpc cannot be
    compared with published ones. Tell the server's work from the client's: go-tpc runs on this machine. Have a seed, an
    offered rate, or a socket of MySQL.

Warm-up and stopping:
    ``go-tpc prepare`` makes and fills the tables. TPC-C: the warm-up is a separate run, ended when the transactions
    per second are steady; after the last round its consistency conditions are checked (``go-tpc check``). TPC-H: a
    round, and a warm-up, is every query once by every client, however long that takes.

Misleads when:
    Clients are many for the warehouses: NEW_ORDER and PAYMENT then wait for the same rows. A warehouse (125 MB on
    PostgreSQL) or a unit of TPC-H fits the server's memory and production's tables do not. Queries of TPC-H take less
    than 100 ms: they count as 100 ms. With several clients only the mean of a query is known.

Sources:
    go-tpc 1.0.12: README, cmd/go-tpc, tpcc/workload.go, tpch/workload.go; lib/pq 1.10.6, url.go. TPC Benchmark C,
    Standard Specification 5.11, 3.3.2 (consistency) and 5.2.5 (keying and thinking times).
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

from leadline.benchmarks._database.load import (
    FILL_S,
    PLACE,
    Tables,
    ask,
    failed,
    finish,
    follow,
    plan_of,
    reached,
    settings_of,
    sources_of,
    start,
    stop,
)
from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Say, Step
from leadline.core.contracts.honoured import DatabaseLoad
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Workload
from leadline.core.system import dsn
from leadline.core.system.addresses import Address
from leadline.core.system.following import ToolCommand
from leadline.core.system.tools import TOOLS, examine, find_program

META = BenchmarkMeta(program="go-tpc", kind="database")

NOTE = "no audited TPC results: no keying and thinking times; tpmC of go-tpc cannot be compared with published ones"
TABLES = {
    "tpcc": (*("item", "customer", "district", "history", "new_order", "order_line", "orders", "stock", "warehouse"),),
    "tpch": ("lineitem", "partsupp", "supplier", "part", "orders", "customer", "region", "nation"),
}
SCALE_BYTES = {"tpcc": 125 * 1024**2, "tpch": 2 * 1024**3}  # tpcc measured; tpch: Judgement, 1 GB of text with its keys
QUERY_COUNT = 22
INTERVAL = "10ms"  # Judgement: up to 1,800 transactions a second, of which a type has few in each
PORTS = {"postgresql": "5432", "mysql": "3306"}
_NO_HOST = "."  # before the folder of a socket, which is a parameter: of two hosts lib/pq takes the one that sorts last
_CURRENT = re.compile(r"\[Current\] [A-Z_]+[A-DF-Z]R? *- Takes\(s\): [\d.]+, Count: (\d+)")
_SUMMARY = re.compile(r"\[Summary\] ([A-Z_]+) *- Takes\(s\): ([\d.]+), Count: (\d+), TPM: [\d.]+, Sum\(ms\): ([\d.]+)")
_MODULE = re.compile(rb"mod\tgithub\.com/pingcap/go-tpc\tv([\d.]+)")
_VIEW = "drop view if exists revenue0"  # which `go-tpc tpch run` makes of lineitem
# `go-tpc tpch run` calls it on every engine. Source: PostgreSQL 16 release notes, date_add().
_DATE_ADD = (
    "create or replace function date_add(timestamp, interval) returns timestamp language sql immutable "
    "as 'select $1 + $2'"
)
_DATE_ADD_SINCE = 160_000


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A server of its own for ``new`` or a folder, else the database a DSN names.

    Raises:
        UsageError: the target or the script cannot be, or go-tpc would show the password.
        ToolError: there is not enough space, or the server cannot be reached.
    """
    settings = settings_of(workload)
    if settings.script not in TABLES:
        raise UsageError(
            f"script {settings.script}",
            found="no benchmark of go-tpc",
            expected=" or ".join(TABLES),
            advice="Set database.script in the workload.",
        )
    if settings.rate_per_s is not None:
        raise UsageError(
            "database.rate_per_s",
            found=f"{settings.rate_per_s:g}",
            expected="no rate: go-tpc runs as fast as it goes",
            advice="Leave it out, or take pgbench.",
        )
    size_bytes = settings.scale * SCALE_BYTES[settings.script]
    load_plan = plan_of(workload, target, Tables(TABLES[settings.script], size_bytes, settings.script == "tpch"))
    if settings.engine == "mysql":
        _require_port(load_plan)
    return replace(load_plan, notes=(*load_plan.notes, NOTE))


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Start the server, where it is ours, and fill the tables.

    Raises:
        ToolError: the server's programs or go-tpc are missing or fail.
    """
    start(plan, folder)
    if plan.read_only:
        return
    settings = settings_of(plan.workload)
    if not plan.places[PLACE].is_made:
        _drop(plan)
    unit = "warehouses of TPC-C" if settings.script == "tpcc" else "gigabytes of TPC-H"
    say(f"filling {settings.scale} {unit}")
    clients = min(settings.clients, settings.scale)
    words = ["--threads", str(clients), *(["--no-check"] if settings.script == "tpcc" else ["--analyze"])]
    finish(plan, ToolCommand([*command(plan, "prepare"), *words], folder / "fill.txt"))
    if settings.script == "tpch" and settings.engine == "postgresql":
        plain = dsn.together(reached(plan))
        if int(ask(plain, plan.secret, "show server_version_num")[0][0]) < _DATE_ADD_SINCE:
            ask(plain, plan.secret, _DATE_ADD)


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of go-tpc.

    Raises:
        ToolError: go-tpc is missing or fails, a query fails, or the tables are not consistent afterwards.
    """
    step_folder = folder / step.label
    step_folder.mkdir(exist_ok=True)
    settings = settings_of(plan.workload)
    is_tpcc = settings.script == "tpcc"
    words = [*command(plan, "run"), "--threads", str(settings.clients)]
    if is_tpcc:
        words += ["--time", f"{max(round(step.duration_s), 1)}s", "--interval", INTERVAL, "--ignore-error"]
    else:
        words += ["--count", str(settings.clients * QUERY_COUNT)]
    load = ToolCommand(words, step_folder / f"{settings.script}.txt")
    # The importer reads from it how often each query ran.
    shown = [
        "go-tpc",
        settings.script,
        "run",
        f"--{_scale(plan)[0]}",
        _scale(plan)[1],
        *words[words.index("--threads") :],
    ]
    load.output.write_text(" ".join(shown) + "\n", encoding="utf-8")
    lasting = step if is_tpcc else replace(step, duration_s=FILL_S)
    began = time.monotonic()
    ticks, ended_early = follow(plan, load, lasting, _ticks(), watch)
    text = load.output.read_text(encoding="utf-8", errors="replace")
    if not ended_early and ("[Summary]" not in text or (not is_tpcc and "execute run failed" in text)):
        raise failed(plan, load)
    if not is_tpcc and not ended_early:  # go-tpc prints no counts of queries: the whole round is one sample
        elapsed_s = time.monotonic() - began
        ticks = [Tick(elapsed_s, settings.clients * QUERY_COUNT / elapsed_s)]
    loads = load_of(text) if is_tpcc and not ended_early else ()
    if is_tpcc and step.label == f"round-{plan.workload.timing.rounds}":
        _check(plan, step_folder)
    return Measured((load.output,), tuple(ticks), (tuple(words),), _version(), ended_early, loads)


def load_of(text: str) -> tuple[DatabaseLoad, ...]:
    """Return the load that the summary of TPC-C counts, failed transactions included; empty without a summary."""
    rows = [(float(match[2]), int(match[3]), float(match[4])) for match in _SUMMARY.finditer(text)]
    if not rows:
        return ()
    duration_s, count, busy_ms = max(row[0] for row in rows), sum(row[1] for row in rows), sum(row[2] for row in rows)
    return (DatabaseLoad(duration_s, count, float("nan"), busy_ms / 1000.0),)


def clean(plan: LoadPlan) -> None:
    """Remove the server that was made, or the tables that were.

    Raises:
        ToolError: the server is not reached any more.
    """
    if not stop(plan) and not plan.read_only:
        _drop(plan)


def sources(plan: LoadPlan) -> dict[str, Address]:
    """The server, to be recorded while it is loaded."""
    return sources_of(plan)


def command(plan: LoadPlan, action: str) -> list[str]:
    """Return the command of an action (prepare, run, check), without the password."""
    settings, server = settings_of(plan.workload), reached(plan)
    is_postgresql = settings.engine == "postgresql"
    host, port = server.get("host") or "127.0.0.1", server.get("port") or PORTS[settings.engine]
    words = ["go-tpc", settings.script, action, "--driver", "postgres" if is_postgresql else "mysql"]
    parameters = {"sslmode": server.get("sslmode", "disable")} if is_postgresql else {}
    if is_postgresql and host.startswith("/"):
        host, parameters["host"] = _NO_HOST, host
    words += ["--host", host, "--port", port, "--db", server["dbname"]]
    words += ["--user", server["user"]] if server.get("user") else []
    words += ["--conn-params", urlencode(parameters, safe="/")] if parameters else []
    name, scale = _scale(plan)
    return [*words, f"--{name}", scale]


def _scale(plan: LoadPlan) -> tuple[str, str]:
    settings = settings_of(plan.workload)
    return "warehouses" if settings.script == "tpcc" else "sf", str(settings.scale)


def _require_port(plan: LoadPlan) -> None:
    """Refuse what go-tpc cannot reach, or only with a password that everybody on this machine can read.

    Raises:
        UsageError: the server is reached by a socket, or the user has a password.
    """
    if plan.places[PLACE].is_made or reached(plan).get("socket"):
        raise UsageError(
            "go-tpc on MySQL",
            found="a server that is reached by its socket",
            expected="a server with a port: go-tpc has no sockets of MySQL",
            advice="Name a DSN as mysql://bench@127.0.0.1:3306/bench, or take sysbench.",
        )
    if plan.secret:
        raise UsageError(
            "go-tpc on MySQL",
            found="a user with a password",
            expected="none: go-tpc takes it on its command line, where every user of this machine can read it",
            advice="Name a user who needs no password from this host, or take sysbench.",
        )


def _drop(plan: LoadPlan) -> None:
    settings, plain = settings_of(plan.workload), dsn.together(reached(plan))
    if settings.script == "tpch":
        ask(plain, plan.secret, _VIEW)
        if settings.engine == "postgresql":
            ask(plain, plan.secret, "drop function if exists date_add(timestamp, interval)")
    ask(plain, plan.secret, f"drop table if exists {', '.join(TABLES[settings.script])}")


def _check(plan: LoadPlan, folder: Path) -> None:
    """Check the consistency conditions of TPC-C.

    Raises:
        ToolError: one does not hold.
    """
    check = ToolCommand([*command(plan, "check"), "--threads", "1"], folder / "check.txt")
    finish(plan, check)
    if "check failed" in check.output.read_text(encoding="utf-8", errors="replace").lower():
        raise failed(plan, check)


def _version() -> str | None:
    """The version go-tpc says, else that of the module it was built from, which `go install` keeps in the program."""
    shown = examine(next(tool for tool in TOOLS if tool.name == META.program)).version
    path = find_program(META.program)
    if shown is not None or path is None:
        return shown
    match = _MODULE.search(Path(path).read_bytes())
    return match[1].decode() if match else None


def _ticks() -> Callable[[str], Tick | None]:
    """Lines of intervals as about one tick a second, by the clock at which they are read: they have no date."""
    began = time.monotonic()
    seen = [began, 0.0]

    def tick_of(line: str) -> Tick | None:
        match = _CURRENT.match(line)
        if match is None:
            return None
        now = time.monotonic()
        seen[1] += int(match[1])
        if now - seen[0] < 1.0:
            return None
        tick = Tick(now - began, seen[1] / (now - seen[0]))
        seen[:] = [now, 0.0]
        return tick

    return tick_of
