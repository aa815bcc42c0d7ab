"""Database load by pgbench: transactions on PostgreSQL, the latency of each one kept.

Measures:
    Transactions per second and the latency of every transaction as the client sees it, by pgbench's own log
    (``--log``, one line per transaction, of all threads together). With ``rate_per_s`` arrivals are Poisson, and
    waiting for a late client counts as latency.

Does not:
    Tell the server's work from the client's: pgbench runs on this machine. Aborted transactions are counted as errors,
    and have no latency. Vacuum, checkpoints and what else the server does later are only in it when they fall into a
    round.

Warm-up and stopping:
    ``pgbench -i`` fills the tables at the workload's scale. The warm-up is a separate run, ended when the
    transactions per second are steady, the way pgbench ends itself (by its alarm), so that nothing is cut. Every round
    has its own seed; before one that writes, pgbench vacuums the small tables and empties pgbench_history.

Misleads when:
    The scale is below the number of clients: tpcb-like then waits for rows of pgbench_branches, not for the disk. The
    tables (16 MB per scale) fit the server's memory and production's do not. Rounds are shorter than checkpoint_timeout
    (five minutes): they miss the checkpoint.

Sources:
    PostgreSQL documentation, pgbench; pgbench.c ``handle_sig_alarm``, ``doLog``, ``printProgressReport``.
"""

from __future__ import annotations

import heapq
import math
import re
import signal
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

from leadline.benchmarks._database.load import (
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
from leadline.core.model.workload import Database, Workload
from leadline.core.system import dsn
from leadline.core.system.addresses import Address
from leadline.core.system.following import ToolCommand
from leadline.core.system.tools import TOOLS, examine

META = BenchmarkMeta(program="pgbench", kind="database")

SCALE_BYTES = 16 * 1024**2  # 100,000 accounts of 128 bytes and their index, measured
TABLES = ("pgbench_accounts", "pgbench_branches", "pgbench_history", "pgbench_tellers")
SELECT_ONLY = "select-only"
BUILT_IN = ("tpcb-like", "simple-update", SELECT_ONLY)
_PROGRESS = re.compile(r"progress: (\d+\.\d+) s, (\d+\.\d+) tps")


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A server of its own for ``new`` or a folder, else the database a DSN names.

    Raises:
        UsageError: the target or the script cannot be.
        ToolError: there is not enough space, or the server cannot be reached.
    """
    settings = settings_of(workload)
    if settings.script not in BUILT_IN and not Path(settings.script).is_file():
        raise UsageError(
            f"script {settings.script}",
            found="neither built in nor a file",
            expected=f"one of {', '.join(BUILT_IN)}, or a file",
            advice="Name the path of the script.",
        )
    return plan_of(workload, target, Tables(TABLES, settings.scale * SCALE_BYTES, settings.script == SELECT_ONLY))


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Start the server, where it is ours, and fill the tables.

    Raises:
        ToolError: PostgreSQL or pgbench is missing or fails.
    """
    start(plan, folder)
    if plan.read_only:
        return
    scale = settings_of(plan.workload).scale
    say(f"filling pgbench's tables at scale {scale}")
    finish(
        plan, ToolCommand(["pgbench", "-i", "-q", "-s", str(scale), dsn.together(reached(plan))], folder / "fill.txt")
    )


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of pgbench.

    Raises:
        ToolError: pgbench is missing or fails, or completes no transaction.
    """
    step_folder = folder / step.label
    step_folder.mkdir(exist_ok=True)
    duration = ("-T", str(max(round(step.duration_s), 1)))
    words = command(plan, step, step_folder, duration)
    load = ToolCommand(words, step_folder / "pgbench.txt", signal.SIGALRM)
    ticks, ended_early = follow(plan, load, step, _ticks(), watch)
    log = step_folder / _script_name(settings_of(plan.workload))  # the importer takes its name as the job's
    if not merge_logs(step_folder, log) and not ended_early:
        raise failed(plan, load)
    loads = () if ended_early else (load_of(log, ticks),)
    version = examine(next(tool for tool in TOOLS if tool.name == "pgbench")).version
    return Measured((log,), tuple(ticks), (tuple(words),), version, ended_early, loads)


def clean(plan: LoadPlan) -> None:
    """Remove the server that was made, or the tables that were.

    Raises:
        ToolError: the server is not reached any more.
    """
    if not stop(plan) and not plan.read_only:
        ask(dsn.together(reached(plan)), plan.secret, f"drop table if exists {', '.join(TABLES)}")


def sources(plan: LoadPlan) -> dict[str, Address]:
    """The server, to be recorded while it is loaded."""
    return sources_of(plan)


def command(plan: LoadPlan, step: Step, folder: Path, length: tuple[str, str]) -> list[str]:
    """Return the command of one run, without the password; ``length`` is -T SECONDS or -t TRANSACTIONS."""
    settings = settings_of(plan.workload)
    words = ["pgbench", "-c", str(settings.clients), "-j", str(min(settings.threads, settings.clients)), *length]
    words += ["-P", "1", "--progress-timestamp", "--log", f"--log-prefix={folder / 'pgbench_log'}"]
    words.append(f"--random-seed={step.seed}")
    if settings.script in BUILT_IN:
        words.append(f"--builtin={settings.script}")
    else:
        words += [f"--file={Path(settings.script).resolve()}", f"--scale={settings.scale}"]
    if settings.script not in BUILT_IN or settings.script == SELECT_ONLY:
        words.append("--no-vacuum")
    if settings.rate_per_s is not None:
        words.append(f"--rate={settings.rate_per_s:g}")
    return [*words, dsn.together(reached(plan))]


def merge_logs(folder: Path, merged: Path) -> int:
    """The logs of all threads as one, by time of completion; how many lines. The parts are removed."""
    parts = sorted(folder.glob("pgbench_log.*"))
    streams = [part.open("rb") for part in parts]
    count = 0
    try:
        with merged.open("wb") as out:
            for line in heapq.merge(*streams, key=_completed):
                if line.endswith(b"\n"):  # the last of a killed run is cut
                    out.write(line)
                    count += 1
    finally:
        for stream in streams:
            stream.close()
    for part in parts:
        part.unlink()
    return count


def load_of(log: Path, ticks: Sequence[Tick]) -> DatabaseLoad:
    """What a log of transactions says of the load: who was there, how many each did, how long they took together.

    Source: PostgreSQL documentation, pgbench, "Per-Transaction Logging": client_id, transaction_no, time (µs).
    """
    each: Counter[bytes] = Counter()
    busy_us, first, last = 0.0, math.inf, 0.0
    with log.open("rb") as stream:
        for line in stream:
            fields = line.split()
            each[fields[0]] += 1
            ended = int(fields[4]) + int(fields[5]) / 1e6
            took_us = float(fields[2]) if fields[2].isdigit() else 0.0  # skipped and failed have no time
            busy_us += took_us
            first, last = min(first, ended - took_us / 1e6), max(last, ended)
    duration_s = max(last - first, ticks[-1].elapsed_s if ticks else 0.0)
    counts = each.values()
    return DatabaseLoad(duration_s, sum(counts), len(each), busy_us / 1e6, min(counts), max(counts))


def _completed(line: bytes) -> tuple[int, int]:
    fields = line.split()
    return (int(fields[4]), int(fields[5])) if len(fields) > 5 else (0, 0)


def _script_name(settings: Database) -> str:
    return settings.script if settings.script in BUILT_IN else Path(settings.script).stem


def _ticks() -> Callable[[str], Tick | None]:
    """Progress lines as seconds since the first began."""
    began: list[float] = []

    def tick_of(line: str) -> Tick | None:
        match = _PROGRESS.match(line)
        if match is None:
            return None
        now = float(match[1])
        began[:] = began or [now - 1.0]
        return Tick(now - began[0], float(match[2]))

    return tick_of
