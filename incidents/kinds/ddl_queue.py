"""A change of a table waits behind an open transaction, and everybody else behind the change."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, peaks
from incidents.numbers import Numbers
from incidents.postgresql import looped

KIND = Kind(
    summary="ALTER TABLE waits behind transactions that are left open for {idle_s} s, and the application behind it.",
    truth=Truth(
        cause="lock-waits",
        layers=("database",),
        disk="no",
        visible_in=("active-sessions", "postgresql-log"),
        innocent_layers=("network", "storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "wal_util_pct"),
    done_by=(DoneBy("session"),),
)


def draw(generator: random.Random) -> Parameters:
    """How long a transaction is left open."""
    return {"idle_s": generator.randrange(3, 9)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A session that reads one row and goes away, and one that changes the table again and again."""
    opened = f"BEGIN;\nSELECT * FROM pgbench_history LIMIT 1;\n\\sleep {parameters['idle_s']} s\nCOMMIT;\n"
    change = "ALTER TABLE pgbench_history ALTER COLUMN filler SET DEFAULT NULL;\n\\sleep 200 ms\n"
    with ExitStack() as stack:
        looped(stack, f"{opened}\\sleep 200 ms\n", stage.file("opened"), ["--client=1"])
        looped(stack, change, stage.file("change"), ["--client=1"])
        yield f"started a session that leaves transactions open for {parameters['idle_s']} s, and ALTER TABLE behind it"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """No transaction ends for seconds."""
    return [peaks(numbers, "standstill_s", parameters["idle_s"] * 0.5)]
