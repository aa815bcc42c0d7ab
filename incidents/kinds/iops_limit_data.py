"""The data disk is capped in IOPS, reads and writes together, and the data does not fit into memory."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="The data disk is capped at {iops} IOPS.",
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
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s", "cpu_iowait_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Below what the load reads."""
    return {"iops": generator.randrange(40, 90)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The throttle group of the data disk, set."""
    with stage.rig.capped("data", iops_total=parameters["iops"]):
        yield f"set iops-total={parameters['iops']} on the throttle group of {stage.rig.device('data')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk works at its cap, and reads wait for it."""
    total = sum(numbers.mean_inside.get(f"data_{way}_per_s", 0.0) for way in ("reads", "writes"))
    cap = parameters["iops"]
    return [
        rises(numbers, "data_read_ms", 3.0, unit=" ms"),
        Shown(f"{total:.4g} requests/s at the data disk, its cap is {cap}", abs(total - cap) <= 0.25 * cap),
    ]
