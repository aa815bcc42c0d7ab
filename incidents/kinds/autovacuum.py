"""An autovacuum worker without a brake reads and rewrites a table full of dead rows, on the disk that serves all."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, mean_rises, rises
from incidents.numbers import Numbers
from incidents.postgresql import query
from incidents.processes import RigError, run

BASE_BYTES = 18_000_000  # a second, what the disk can move at all times
TABLES = 6  # of three variants under one load, each of one worker or two
ROWS = 150_000  # of 700 bytes
FILL = f"""
CREATE TABLE events_{{number}} (id int PRIMARY KEY, body text NOT NULL) WITH (autovacuum_enabled = off);
ALTER TABLE events_{{number}} ALTER COLUMN body SET STORAGE PLAIN;
INSERT INTO events_{{number}} SELECT n, repeat(md5(n::text), 21) FROM generate_series(1, {ROWS}) AS n;
DELETE FROM events_{{number}} WHERE id % 3 <> 0;
"""
SETTINGS = {"autovacuum": "on", "autovacuum_naptime": "1s", "autovacuum_vacuum_cost_delay": "0"}
OTHERS = """
SELECT format('ALTER TABLE %I {change}', relname) FROM pg_class
    WHERE relkind = 'r' AND relnamespace = 'public'::regnamespace AND relname NOT LIKE 'events%'
"""

KIND = Kind(
    summary="{workers} autovacuum workers clean tables of 110 MB full of dead rows; the disk moves {base} MB/s.",
    truth=Truth(
        cause="disk-busy-with-others",
        layers=("guest", "vm", "storage-path", "datastore", "database"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        others=("disk-capped",),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    slack_s=8.0,
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_read_kb_per_s", "data_write_kb_per_s"),
    done_by=tuple(DoneBy("worker", f"autovacuum worker on events_{number}") for number in range(TABLES)),
)
_full: list[str] = []  # tables full of dead rows that no worker has seen


def draw(generator: random.Random) -> Parameters:
    """One worker, or two."""
    return {"workers": generator.choice([1, 2]), "base": BASE_BYTES // 1_000_000}


def _every_other_table(change: str) -> None:
    for command in query(OTHERS.format(change=change)).splitlines():
        query(command)


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """Tables full of dead rows that autovacuum leaves alone, and a disk with an end to what it can move."""
    _every_other_table("SET (autovacuum_enabled = off)")
    try:
        for number in range(TABLES):
            query(FILL.format(number=number))
            _full.append(f"events_{number}")
        for name, setting in SETTINGS.items():
            query(f"ALTER SYSTEM SET {name} = '{setting}'")
        query("SELECT pg_reload_conf()")
        query("CHECKPOINT")
        run("sync", "--file-system", stage.rig.disks["data"].mount)
        with stage.rig.capped("data", bps_total=BASE_BYTES):
            yield
    finally:
        for name in SETTINGS:
            query(f"ALTER SYSTEM RESET {name}")
        query("SELECT pg_reload_conf()")
        for number in range(TABLES):
            query(f"DROP TABLE IF EXISTS events_{number}")
        _full.clear()
        _every_other_table("RESET (autovacuum_enabled)")


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Let autovacuum have the tables, and take them back: that cancels its worker."""
    if len(_full) < parameters["workers"]:
        raise RigError("no table full of dead rows is left; record fewer variants at once")
    tables = [_full.pop() for _ in range(parameters["workers"])]
    for table in tables:
        query(f"ALTER TABLE {table} SET (autovacuum_enabled = on)")
    try:
        yield f"let autovacuum clean {' and '.join(tables)}, with autovacuum_vacuum_cost_delay = 0"
    finally:
        for table in tables:
            query(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
        # What the workers left to write is no part of the healthy time after them.
        stage.rig.throttle("data")
        run("sync", "--file-system", stage.rig.disks["data"].mount)
        stage.rig.throttle("data", bps_total=BASE_BYTES)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk reads and writes far more, and reads wait."""
    return [
        rises(numbers, "data_read_kb_per_s", 2.0, 3000.0),
        mean_rises(numbers, "data_write_kb_per_s", 2.0, " kB/s"),
        rises(numbers, "data_read_ms", 2.0, unit=" ms"),
    ]
