"""Database load by sysbench: its OLTP transactions on PostgreSQL or MySQL, latencies in its own logarithmic buckets.

Measures:
    Transactions and queries per second, and the latency of whole transactions as the client sees it, in 1024 buckets
    1.8 % wide. ``script`` names one of sysbench's own (oltp_read_write, oltp_point_select, …) or a Lua file.

Does not:
    Tell the server's work from the client's: sysbench runs on this machine, one thread for each client. Queries inside
    a transaction are counted, not timed. MySQL's own counters are not recorded, and it is not reached by TLS.

Warm-up and stopping:
    ``prepare`` makes as many tables of 100,000 rows as the workload's scale. The warm-up is a separate run, ended
    when the transactions per second are steady; sysbench then ends without a summary, and its seconds are kept. Every
    round is a separate run with its own seed.

Misleads when:
    The tables (25 MB each; 36 MB in InnoDB) fit the server's memory and production's do not. With ``rate_per_s`` what
    waits longer than sysbench's queue is refused. Rows are chosen by the special distribution: most of the load is on a
    few rows.

Sources:
    sysbench 1.0 README; ``sysbench --help``; ``oltp_common.lua``; ``sb_histogram.c``; ``drv_mysql.c``.
"""

from __future__ import annotations

import re
from pathlib import Path

from leadline.benchmarks._database.load import (
    PLACE,
    Tables,
    ask,
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
from leadline.core.model.units import factor
from leadline.core.model.workload import Workload
from leadline.core.system import dsn
from leadline.core.system.addresses import Address
from leadline.core.system.following import ToolCommand
from leadline.core.system.tools import TOOLS, examine

META = BenchmarkMeta(program="sysbench", kind="database")

ROWS = 100_000  # of each table; Judgement: a unit of scale as large as pgbench's
TABLE_BYTES = {"postgresql": 25 * 1024**2, "mysql": 36 * 1024**2}  # measured, with both indexes
ONLY_READ = ("oltp_read_only", "oltp_point_select", "select_random_points", "select_random_ranges")
SCRIPTS = (
    "oltp_read_write",
    "oltp_write_only",
    "oltp_update_index",
    "oltp_update_non_index",
    "oltp_insert",
    "oltp_delete",
    *ONLY_READ,
)
_INTERVAL = re.compile(r"\[ (\d+)s \] thds: \d+ tps: (\d+\.\d+) .*?lat \(ms,99%\): (\d+\.\d+)")
_SUMMARY = {
    "time": re.compile(r"total time:\s+(\d+\.\d+)s"),
    "events": re.compile(r"total number of events:\s+(\d+)"),
    "busy": re.compile(r"\n\s+sum:\s+(\d+\.\d+)"),
    "each": re.compile(r"events \(avg/stddev\):\s+(\d+\.\d+)/"),
}
_OPTIONS = {  # what a server is named by, after the driver's name
    "pgsql": {"host": "host", "port": "port", "user": "user", "dbname": "db"},
    "mysql": {"host": "host", "port": "port", "user": "user", "dbname": "db", "socket": "socket"},
}


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A server of its own for ``new`` or a folder, else the database a DSN names.

    Raises:
        UsageError: the target or the script cannot be.
        ToolError: there is not enough space, or the server cannot be reached.
    """
    settings = settings_of(workload)
    if settings.script not in SCRIPTS and not Path(settings.script).is_file():
        raise UsageError(
            f"script {settings.script}",
            found="neither one of sysbench's nor a file",
            expected=f"one of {', '.join(SCRIPTS)}, or a file",
            advice="Set database.script in the workload.",
        )
    rate = settings.rate_per_s
    if rate is not None and abs(max(round(rate), 1) - rate) > 0.025 * rate:
        raise UsageError(
            "database.rate_per_s",
            found=f"{rate:g}, which sysbench rounds to {max(round(rate), 1)}",
            expected="a whole number of transactions per second",
            advice="Set database.rate_per_s to one, or take pgbench.",
        )
    table_bytes = settings.scale * TABLE_BYTES[settings.engine]
    return plan_of(workload, target, Tables(_tables(workload), table_bytes, settings.script in ONLY_READ))


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Start the server, where it is ours, and fill the tables.

    Raises:
        ToolError: the server's programs or sysbench are missing or fail.
    """
    start(plan, folder)
    if plan.read_only:
        return
    if not plan.places[PLACE].is_made:
        _drop(plan)
    say(f"filling {settings_of(plan.workload).scale} x {ROWS:,} rows")
    finish(plan, ToolCommand([*command(plan), "prepare"], folder / "fill.txt"))


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of sysbench.

    Raises:
        ToolError: sysbench is missing or fails.
    """
    step_folder = folder / step.label
    step_folder.mkdir(exist_ok=True)
    words = [*command(plan), f"--time={max(round(step.duration_s), 1)}", "--events=0"]
    words += ["--report-interval=1", "--histogram=on", "--percentile=99", f"--rand-seed={step.seed}"]
    rate = settings_of(plan.workload).rate_per_s
    if rate is not None:
        words.append(f"--rate={max(round(rate), 1)}")
    words.append("run")
    load = ToolCommand(words, step_folder / "sysbench.txt")
    ticks, ended_early = follow(plan, load, step, _tick_of, watch)
    version = examine(next(tool for tool in TOOLS if tool.name == "sysbench")).version
    loads = () if ended_early else load_of(load.output.read_text(encoding="utf-8", errors="replace"))
    return Measured((load.output,), tuple(ticks), (tuple(words),), version, ended_early, loads)


def load_of(text: str) -> tuple[DatabaseLoad, ...]:
    """Return the load that a summary counts, empty where it is not whole; threads are events by events of each."""
    matches = {name: pattern.search(text) for name, pattern in _SUMMARY.items()}
    if not all(matches.values()):
        return ()
    seconds, events, busy_ms, each = (float(match[1]) for match in matches.values() if match is not None)
    clients = round(events / each) if each > 0 else float("nan")
    return (DatabaseLoad(seconds, events, clients, busy_ms * factor("ms", "s")),)


def clean(plan: LoadPlan) -> None:
    """Remove the server that was made, or the tables that were.

    Raises:
        ToolError: the server is not reached any more.
    """
    if not stop(plan) and not plan.read_only:
        _drop(plan)


def _drop(plan: LoadPlan) -> None:
    ask(dsn.together(reached(plan)), plan.secret, f"drop table if exists {', '.join(_tables(plan.workload))}")


def sources(plan: LoadPlan) -> dict[str, Address]:
    """The server, to be recorded while it is loaded."""
    return sources_of(plan)


def command(plan: LoadPlan) -> list[str]:
    """Return the command all runs begin with, without the password."""
    settings, server = settings_of(plan.workload), reached(plan)
    driver = "mysql" if settings.engine == "mysql" else "pgsql"
    script = settings.script if settings.script in SCRIPTS else str(Path(settings.script).resolve())
    words = ["sysbench", script, f"--db-driver={driver}", f"--threads={settings.clients}"]
    words += [f"--{driver}-{option}={server[key]}" for key, option in _OPTIONS[driver].items() if key in server]
    return [*words, f"--tables={settings.scale}", f"--table_size={ROWS}"]


def _tables(workload: Workload) -> tuple[str, ...]:
    return tuple(f"sbtest{number}" for number in range(1, settings_of(workload).scale + 1))


def _tick_of(line: str) -> Tick | None:
    match = _INTERVAL.match(line)
    if match is None:
        return None
    per_s = float(match[2])
    return Tick(float(match[1]), per_s, p99_ms=float(match[3]) if per_s > 0 else float("nan"))
