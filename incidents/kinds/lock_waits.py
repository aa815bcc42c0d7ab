"""A session holds rows that every transaction needs."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, mean_rises
from incidents.numbers import Numbers
from incidents.postgresql import looped

KIND = Kind(
    summary="A batch locks every branch's row for {hold_ms} ms at a time.",
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
    """How long it holds them."""
    return {"hold_ms": generator.randrange(1200, 3500)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A batch that updates the branches and does not commit at once."""
    script = (
        "BEGIN;\nUPDATE pgbench_branches SET filler = 'batch';\n"
        f"SELECT pg_sleep({parameters['hold_ms'] / 1000});\nCOMMIT;\nSELECT pg_sleep(0.2);\n"
    )
    with ExitStack() as stack:
        looped(stack, script, stage.file("batch"), ["--client=1"])
        yield f"started a session that updates every branch and commits {parameters['hold_ms']} ms later"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Most transactions do not come through."""
    return [mean_rises(numbers, "latency_ms", 5.0, " ms")]
