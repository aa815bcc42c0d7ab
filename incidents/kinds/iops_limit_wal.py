"""The WAL's disk is capped in IOPS, as a virtual disk with a limit is; the data disk and the processors are fine."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="The WAL's disk is capped at {iops} IOPS.",
    truth=Truth(
        cause="disk-capped",
        layers=("vm", "storage-path", "datastore"),
        disk="yes",
        roles=("wal",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        innocent_layers=("network",),
        innocent_roles=("data",),
    ),
    usual=("latency_ms", "wal_util_pct", "wal_write_ms", "wal_writes_per_s", "cpu_iowait_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Far below what the load asks for."""
    return {"iops": generator.randrange(25, 70)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The throttle group of the WAL's disk, set."""
    with stage.rig.capped("wal", iops_total=parameters["iops"]):
        yield f"set iops-total={parameters['iops']} on the throttle group of {stage.rig.device('wal')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk works at its cap, and requests wait for it."""
    written = numbers.mean_inside.get("wal_writes_per_s", 0.0) - numbers.mean_inside.get("wal_flushes_per_s", 0.0)
    return [
        rises(numbers, "wal_write_ms", 3.0, unit=" ms"),
        Shown(
            f"{written:.4g} writes/s at the WAL's disk, its cap is {parameters['iops']}",
            abs(written - parameters["iops"]) <= 0.25 * parameters["iops"],
        ),
    ]
