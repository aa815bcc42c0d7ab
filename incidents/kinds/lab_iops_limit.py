"""The hypervisor caps the disk of a virtual machine's write-ahead log in IOPS."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents import holding
from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="The hypervisor caps the VM's log disk at {iops} IOPS.",
    truth=Truth(
        cause="disk-capped",
        layers=("vm", "storage-path", "datastore"),
        disk="yes",
        roles=("wal",),
        visible_in=("qemu", "iostat", "active-sessions", "pg-stat"),
        innocent_layers=("network",),
        innocent_roles=("data",),
    ),
    database="lab",
    usual=("transactions_per_s", "latency_ms", "wal_write_ms", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Below what the log of an emulated guest writes: it commits some ten times a second."""
    return {"iops": generator.randrange(4, 9)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The throttle group of the log's disk, set in QEMU."""
    with holding.disk_limit(stage.guest, "wal", parameters["iops"]) as did:
        yield did


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Writes to the log wait."""
    del parameters
    return [rises(numbers, "wal_write_ms", 3.0, unit=" ms")]
