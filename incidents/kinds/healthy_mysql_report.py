"""MySQL: a report scans a table all the time; nobody is harmed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="Nothing is wrong; a report scans {table} of MySQL all the time.",
    truth=None,
    database="mysql",
    load=Load(clients=4, rate=20, script="oltp_read_write"),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "data_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Which table."""
    return {"table": f"sbtest{generator.randrange(1, 5)}"}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """One session with a scan after the other."""
    with ExitStack() as stack:
        stage.mysql.session(stack, f"SELECT COUNT(DISTINCT c) FROM {parameters['table']}; SELECT SLEEP(0.2);")
        yield f"started a session that scans {parameters['table']}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """One processor is busy with it."""
    return [rises(numbers, "cpu_busy_pct", 1.3, 15.0, " %")]
