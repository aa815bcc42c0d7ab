"""A disk is capped in bytes per second: the WAL's, under large rows, or the data's, under range reads."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

# A range of 500 kB read, a document of 19 kB stored.
SCRIPT = r"""
\set first random(1, 1990000)
SELECT count(filler) FROM pgbench_accounts WHERE aid BETWEEN :first AND :first + 4000;
INSERT INTO intake (body) SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 600);
"""

KIND = Kind(
    summary="The {disk} disk is capped at {kib_per_s} KiB/s.",
    truth=Truth(
        cause="disk-capped",
        layers=("vm", "storage-path", "datastore"),
        disk="yes",
        roles=("{disk}",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        innocent_layers=("network",),
        innocent_roles=("{other}",),
    ),
    load=Load(rate=30, script=SCRIPT),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_read_kb_per_s", "wal_util_pct", "wal_write_kb_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """A disk, and a rate below what the load moves there."""
    disk, other = generator.choice([("data", "wal"), ("wal", "data")])
    low, high = (2000, 6000) if disk == "data" else (150, 350)
    return {"disk": disk, "other": other, "kib_per_s": generator.randrange(low, high)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The throttle group's limit of bytes."""
    disk, limit = parameters["disk"], parameters["kib_per_s"] * 1024
    with stage.rig.capped(disk, bps_total=limit):
        yield f"set bps-total={limit} on the throttle group of {stage.rig.device(disk)}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk moves what its cap lets through, and requests wait."""
    disk, cap = parameters["disk"], parameters["kib_per_s"]
    moved = sum(numbers.inside.get(f"{disk}_{way}_kb_per_s", 0.0) for way in ("read", "write"))
    way = "read" if disk == "data" else "write"
    return [
        rises(numbers, f"{disk}_{way}_ms", 2.0, unit=" ms"),
        Shown(f"{moved:.4g} KiB/s at the {disk} disk, its cap is {cap}", abs(moved - cap) <= 0.4 * cap),
    ]
