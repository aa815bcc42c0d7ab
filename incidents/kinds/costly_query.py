"""The database itself needs the processors: reports with a correlated subquery for every row."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Load, Parameters, Shown, Stage, Truth, above
from incidents.numbers import Numbers
from incidents.postgresql import looped

REPORT = """
SET max_parallel_workers_per_gather = 0;
SELECT sum(length(a.note)) FROM orders a WHERE (SELECT count(*) FROM orders b WHERE b.customer = a.customer) > 5;
"""

KIND = Kind(
    summary="{clients} sessions run reports with a correlated subquery.",
    truth=Truth(
        cause="cpu-busy",
        layers=("database", "guest"),
        disk="no",
        visible_in=("vmstat", "mpstat", "pidstat", "sar", "psi", "active-sessions", "iostat"),
        others=("statement", "more-work"),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=250),
    takes_cpu=True,
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "cpu_pressure_pct"),
    done_by=(DoneBy("statement", "SELECT ... FROM orders"),),
)


def draw(generator: random.Random) -> Parameters:
    """More than the machine has processors."""
    return {"clients": generator.randrange(6, 16)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Sessions that run the report again and again."""
    with ExitStack() as stack:
        looped(stack, REPORT, stage.file("report"), [f"--client={parameters['clients']}"])
        yield f"started {parameters['clients']} sessions with a report each"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The processors are full."""
    return [above(numbers, "cpu_busy_pct", 95.0), above(numbers, "run_queue", parameters["clients"] * 0.6)]
