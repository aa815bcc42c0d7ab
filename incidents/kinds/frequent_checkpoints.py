"""Checkpoints follow each other: each writes every changed page, and lets every page be logged whole again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Load, Parameters, Shown, Stage, Truth
from incidents.numbers import Numbers
from incidents.postgresql import looped, query

BASE_IOPS = 450  # what the disk can do at all times

KIND = Kind(
    summary="A job asks for a checkpoint {pause_ms} ms after the last, and max_wal_size is 32 MB.",
    truth=Truth(
        cause="checkpoints",
        layers=("database",),
        disk="either",
        visible_in=("postgresql-log", "pg-stat"),
        others=("disk-busy-with-others", "disk-capped"),
        innocent_layers=("network",),
    ),
    load=Load(rate=100),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_write_ms", "data_writes_per_s", "wal_write_kb_per_s"),
    done_by=(DoneBy("worker", "checkpointer"), DoneBy("statement", "CHECKPOINT")),
)


def draw(generator: random.Random) -> Parameters:
    """How long after the last one."""
    return {"pause_ms": generator.randrange(100, 1000)}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk on which a checkpoint is felt."""
    with stage.rig.capped("data", iops_total=BASE_IOPS):
        yield


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Settings, and back."""
    query("ALTER SYSTEM SET max_wal_size = '32MB'")
    query("ALTER SYSTEM SET min_wal_size = '32MB'")
    query("SELECT pg_reload_conf()")
    script = f"CHECKPOINT;\n\\sleep {parameters['pause_ms']} ms\n"
    try:
        with ExitStack() as stack:
            looped(stack, script, stage.file("checkpoints"), ["--client=1"])
            yield f"set max_wal_size = 32MB and asked for a checkpoint every {parameters['pause_ms']} ms"
    finally:
        for name in ("max_wal_size", "min_wal_size"):
            query(f"ALTER SYSTEM RESET {name}")
        query("SELECT pg_reload_conf()")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Checkpoints follow each other."""
    count = numbers.count_inside.get("checkpoint", 0)
    return [Shown(f"{count} checkpoints in the fault, by the server's log", count >= 4)]
