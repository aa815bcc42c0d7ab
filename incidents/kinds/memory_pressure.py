"""The database's container gets too little memory: what it reads is thrown out before it is read again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

READ_US = 5000  # a disk on which reading again is felt

KIND = Kind(
    summary="The database's control group gets {mib} MiB of memory.",
    truth=Truth(
        cause="memory-short",
        layers=("guest", "hypervisor-memory"),
        disk="either",
        visible_in=("vmstat", "sar"),
        others=("cold-cache",),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    usual=("latency_ms", "memory_pressure_pct", "data_reads_per_s", "data_read_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """Less than buffers, sessions and page cache use."""
    return {"mib": generator.randrange(115, 150)}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk on which reading again is felt."""
    stage.rig.slow("data", read_us=READ_US)
    try:
        yield
    finally:
        stage.rig.slow("data")


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The memory limit of the control group."""
    try:
        with stage.server.group.memory(parameters["mib"] << 20):
            yield f"limited the memory of the database's control group to {parameters['mib']} MiB"
    finally:
        stage.rig.slow("data")
        stage.warm()
        stage.rig.slow("data", read_us=READ_US)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Pages that memory held are read again."""
    return [rises(numbers, "data_reads_per_s", 3.0, 50.0)]
