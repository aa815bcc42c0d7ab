"""A report scans a table again and again; nobody is harmed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, rises
from incidents.numbers import Numbers
from incidents.postgresql import looped

KIND = Kind(
    summary="Nothing is wrong; {clients} report scans a table all the time.",
    truth=None,
    usual=("latency_ms", "cpu_busy_pct", "run_queue"),
)


def draw(generator: random.Random) -> Parameters:
    """Which table."""
    return {"clients": 1, "table": generator.choice(["pgbench_accounts", "orders"])}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """One session with a sequential scan after the other."""
    with ExitStack() as stack:
        script = f"SET max_parallel_workers_per_gather = 0;\nSELECT count(*) FROM {parameters['table']};\n"
        looped(stack, script, stage.file("scan"), ["--client=1"])
        yield f"started a session that scans {parameters['table']}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """One processor is busy with it."""
    return [rises(numbers, "cpu_busy_pct", 1.5, 40.0, " %")]
