"""Sorts do not fit into work_mem and spill to temporary files on the data disk."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import looped

BASE_BYTES = 16_000_000  # a second, what the disk can move at all times
SORT = """
SET work_mem = '64kB';
SET max_parallel_workers_per_gather = 0;
SELECT count(*) FROM (SELECT note, id FROM orders ORDER BY note OFFSET 0) AS sorted;
"""

KIND = Kind(
    summary="{clients} sessions sort 40 MB with 64 kB of work_mem.",
    truth=Truth(
        cause="temp-files",
        layers=("database",),
        disk="either",
        visible_in=("postgresql-log", "active-sessions", "pg-stat"),
        others=("disk-capped", "disk-busy-with-others", "statement"),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    slack_s=8.0,
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_write_kb_per_s"),
    done_by=(DoneBy("statement", "SELECT ... FROM orders"),),
)


def draw(generator: random.Random) -> Parameters:
    """A few at a time."""
    return {"clients": generator.choice([2, 3, 4])}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk with an end to what it can move."""
    with stage.rig.capped("data", bps_total=BASE_BYTES):
        yield


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Sorts with little memory, again and again."""
    with ExitStack() as stack:
        stack.enter_context(stage.rig.uncached(flush=True))
        looped(stack, SORT, stage.file("sort"), [f"--client={parameters['clients']}"])
        yield f"started {parameters['clients']} sessions that sort with work_mem = 64kB"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The data disk is written, though nothing is stored."""
    return [rises(numbers, "data_write_kb_per_s", 3.0, 2000.0), rises(numbers, "data_read_ms", 1.5, unit=" ms")]
