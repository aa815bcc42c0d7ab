"""The data disk answers slowly, each request alike, however few there are: a slow or far array."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, above
from incidents.numbers import Numbers

KIND = Kind(
    summary="Each read and write of the data disk takes {ms} ms.",
    truth=Truth(
        cause="disk-slow",
        layers=("vm", "storage-path", "datastore", "guest"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        others=("disk-capped",),  # it takes a dozen requests at once, and each takes its time: so many and no more
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s", "cpu_iowait_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """What a bad array takes."""
    return {"ms": generator.randrange(15, 45)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The time nbdkit gives each answer."""
    stage.rig.slow("data", read_us=parameters["ms"] * 1000, write_us=parameters["ms"] * 1000)
    try:
        yield f"let each answer of {stage.rig.device('data')} take {parameters['ms']} ms"
    finally:
        stage.rig.slow("data")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Each read takes what was set, or longer where more are asked for than it takes at once."""
    return [above(numbers, "data_read_ms", 0.75 * parameters["ms"])]
