"""The data disk is capped in reads only, as some clouds and hypervisors cap; writes pass."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, near, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="The data disk is capped at {iops} reads/s; writes are not.",
    truth=Truth(
        cause="disk-capped",
        layers=("vm", "storage-path", "datastore"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s", "data_write_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """Below what the load reads."""
    return {"iops": generator.randrange(35, 75)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The throttle group's limit of reads."""
    with stage.rig.capped("data", iops_read=parameters["iops"]):
        yield f"set iops-read={parameters['iops']} on the throttle group of {stage.rig.device('data')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Reads run at their cap and wait."""
    return [
        rises(numbers, "data_read_ms", 3.0, unit=" ms"),
        near(numbers, "data_reads_per_s", parameters["iops"], 0.25),
    ]
