"""An index is gone: each lookup reads the whole table where it read ten rows."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import DoneBy, Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import query

RATE = 100
SCRIPT = r"""
\set customer random(0, 19999)
SELECT sum(length(note)) FROM orders WHERE customer = :customer;
"""

KIND = Kind(
    summary="The index of orders by customer is dropped, under {rate} lookups/s.",
    truth=Truth(
        cause="statement",
        layers=("database", "guest"),
        disk="no",
        visible_in=("active-sessions", "pg-stat"),
        others=("cpu-busy",),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=RATE, script=SCRIPT),
    takes_cpu=True,
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "data_util_pct"),
    done_by=(DoneBy("statement", "SELECT ... FROM orders"),),
)


def draw(generator: random.Random) -> Parameters:
    """How the server plans its scans."""
    return {"rate": RATE, "parallel": generator.choice([0, 1, 2])}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """DROP INDEX, and CREATE INDEX afterwards."""
    query(f"ALTER DATABASE bench SET max_parallel_workers_per_gather = {parameters['parallel']}")
    query("DROP INDEX orders_customer")
    try:
        yield "dropped the index orders_customer"
    finally:
        query("CREATE INDEX orders_customer ON orders (customer)")
        query("ALTER DATABASE bench RESET max_parallel_workers_per_gather")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Each lookup takes far longer, on the processors."""
    return [rises(numbers, "latency_ms", 4.0, unit=" ms"), rises(numbers, "cpu_busy_pct", 1.5, 60.0)]
