"""MySQL: flushes of the redo log's disk are slow."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, near
from incidents.numbers import Numbers

KIND = Kind(
    summary="Each flush of the redo log's disk takes {ms} ms.",
    truth=Truth(
        cause="flush-slow",
        layers=("vm", "storage-path", "datastore", "guest"),
        disk="yes",
        roles=("wal",),
        visible_in=("iostat", "sar", "active-sessions"),
        others=("disk-slow",),
        innocent_layers=("network",),
        innocent_roles=("data",),
    ),
    database="mysql",
    load=Load(clients=4, rate=60, script="oltp_update_index"),
    usual=("latency_ms", "transactions_per_s", "wal_util_pct", "wal_write_ms", "wal_flush_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """What a flush without a cache takes."""
    return {"ms": generator.randrange(25, 90)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The time nbdkit gives each flush."""
    stage.rig.slow("wal", flush_us=parameters["ms"] * 1000)
    try:
        yield f"let each flush of {stage.rig.device('wal')} take {parameters['ms']} ms"
    finally:
        stage.rig.slow("wal")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Each flush takes what was set."""
    return [near(numbers, "wal_flush_ms", parameters["ms"], 0.3)]
