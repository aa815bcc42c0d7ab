"""MySQL: the data disk is capped in IOPS, and the data does not fit into the buffer pool."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="MySQL's data disk is capped at {iops} IOPS.",
    truth=Truth(
        cause="disk-capped",
        layers=("vm", "storage-path", "datastore"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "active-sessions"),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    database="mysql",
    load=Load(clients=4, rate=20, script="oltp_read_write"),
    usual=("latency_ms", "transactions_per_s", "data_util_pct", "data_read_ms", "data_reads_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """Below what the load reads."""
    return {"iops": generator.randrange(40, 110)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The throttle group of the data disk, set."""
    with stage.rig.capped("data", iops_total=parameters["iops"]):
        yield f"set iops-total={parameters['iops']} on the throttle group of {stage.rig.device('data')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Reads wait at the cap."""
    return [rises(numbers, "data_read_ms", 3.0, unit=" ms")]
