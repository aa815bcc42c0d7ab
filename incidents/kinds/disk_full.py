"""The data disk is full: rows cannot be stored, and the application tries again."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, falls
from incidents.numbers import Numbers
from incidents.postgresql import query
from incidents.processes import run

# An application that tries again a second later.
SCRIPT = """
DO $$
BEGIN
    INSERT INTO intake (body) SELECT string_agg(md5(random()::text), '') FROM generate_series(1, 1200);
EXCEPTION WHEN disk_full THEN
    RAISE WARNING 'not stored: %', SQLERRM;
    PERFORM pg_sleep(1);
END $$;
"""

KIND = Kind(
    summary="Another file fills the data disk but for {kib} KiB.",
    truth=Truth(
        cause="disk-full",
        layers=("database", "guest", "datastore"),
        disk="either",
        visible_in=("postgresql-log",),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    load=Load(rate=60, script=SCRIPT),
    usual=("transactions_per_s", "latency_ms", "data_util_pct", "cpu_busy_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """What is left."""
    return {"kib": generator.randrange(100, 1500)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A large file beside the database."""
    mount = stage.rig.disks["data"].mount
    filler = mount / "export.dump"
    space = os.statvfs(mount)
    try:
        run("fallocate", "-l", str(space.f_bavail * space.f_frsize - parameters["kib"] * 1024), filler)
        yield f"filled the data disk but for {parameters['kib']} KiB"
    finally:
        filler.unlink(missing_ok=True)
        query("TRUNCATE intake")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The application stores far less."""
    return [falls(numbers, "transactions_per_s", 0.7)]
