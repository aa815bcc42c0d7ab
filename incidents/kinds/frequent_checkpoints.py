"""Checkpoints are forced every few seconds by a WAL that may not grow; each makes every page be logged whole again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import query

BASE_IOPS = 500  # what the disk can do at all times

KIND = Kind(
    summary="max_wal_size is {mib} MB: checkpoints follow each other.",
    truth=Truth(
        cause="checkpoints",
        layers=("database",),
        disk="either",
        visible_in=("postgresql-log", "pg-stat"),
        others=("disk-busy-with-others", "disk-capped"),
        innocent_layers=("network",),
    ),
    load=Load(rate=150),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_write_ms", "data_writes_per_s", "wal_write_kb_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """A few WAL segments."""
    return {"mib": generator.choice([32, 40, 48])}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk on which a checkpoint is felt."""
    with stage.rig.capped("data", iops_total=BASE_IOPS):
        yield


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Settings, and back."""
    query(f"ALTER SYSTEM SET max_wal_size = '{parameters['mib']}MB'")
    query("ALTER SYSTEM SET min_wal_size = '32MB'")
    query("ALTER SYSTEM SET checkpoint_completion_target = 0")
    query("SELECT pg_reload_conf()")
    try:
        yield f"set max_wal_size = {parameters['mib']}MB and checkpoint_completion_target = 0"
    finally:
        for name in ("max_wal_size", "min_wal_size", "checkpoint_completion_target"):
            query(f"ALTER SYSTEM RESET {name}")
        query("SELECT pg_reload_conf()")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The data disk is written again and again."""
    return [rises(numbers, "data_write_kb_per_s", 2.0, 500.0)]
