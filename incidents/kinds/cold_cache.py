"""The working set leaves memory, as after a failover or a restart: reads that memory answered go to the disk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

READ_US = 9000  # a disk that turns

KIND = Kind(
    summary="The page cache is emptied again and again; a read of the data disk takes {ms} ms at all times.",
    truth=Truth(
        cause="cold-cache",
        layers=("database", "guest"),
        disk="either",
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        others=("disk-slow", "memory-short"),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    usual=("latency_ms", "data_util_pct", "data_reads_per_s", "data_read_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """How fast it is emptied."""
    return {"ms": READ_US // 1000, "every_s": generator.choice([0.25, 0.5, 1.0])}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk on which reading is felt."""
    stage.rig.slow("data", read_us=READ_US)
    try:
        yield
    finally:
        stage.rig.slow("data")


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Files of the database leave the page cache."""
    try:
        with stage.rig.uncached(every_s=parameters["every_s"]):
            yield f"dropped the database's files from the page cache every {parameters['every_s']} s"
    finally:
        stage.rig.slow("data")
        stage.warm()
        stage.rig.slow("data", read_us=READ_US)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk is read where memory answered before."""
    return [rises(numbers, "data_reads_per_s", 3.0, 40.0)]
