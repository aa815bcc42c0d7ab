"""MySQL: a session holds the rows every transaction needs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, mean_rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="A batch locks every row of a table for {hold_s} s at a time.",
    truth=Truth(
        cause="lock-waits",
        layers=("database",),
        disk="no",
        visible_in=("active-sessions", "mysql-status"),
        innocent_layers=("network", "storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    database="mysql",
    load=Load(clients=4, rate=60, script="oltp_update_index"),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Which table, and for how long."""
    return {"hold_s": generator.randrange(2, 5), "table": generator.randrange(1, 5)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A batch that locks rows and does not commit at once."""
    table, hold_s = f"sbtest{parameters['table']}", parameters["hold_s"]
    with ExitStack() as stack:
        stage.mysql.session(stack, f"BEGIN; SELECT COUNT(*) FROM {table} FOR UPDATE; SELECT SLEEP({hold_s}); COMMIT;")
        yield f"started a session that locks {table} for {hold_s} s, again and again"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Most transactions do not come through."""
    return [mean_rises(numbers, "latency_ms", 5.0, " ms")]
