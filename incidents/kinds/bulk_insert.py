"""A bulk load beside the application fills the WAL: more work came in, and commits wait behind it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import looped, query

BASE_BYTES = 12_000_000  # a second, what the WAL's disk can move at all times
INSERTS = """
INSERT INTO bulk SELECT n, repeat(md5(random()::text), 128) FROM generate_series(1, 4000) AS n;
"""

KIND = Kind(
    summary="{clients} sessions load rows in bulk; the WAL's disk moves {base} MB/s.",
    truth=Truth(
        cause="wal-volume",
        layers=("database",),
        disk="either",
        visible_in=("iostat", "active-sessions", "pg-stat"),
        others=("more-work", "disk-capped"),
        innocent_layers=("network",),
    ),
    usual=("latency_ms", "wal_util_pct", "wal_write_ms", "wal_write_kb_per_s"),
    done_by=(DoneBy("statement", "INSERT INTO bulk"),),
)


def draw(generator: random.Random) -> Parameters:
    """One load, or several."""
    return {"clients": generator.choice([1, 2, 3]), "base": BASE_BYTES // 1_000_000}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk with an end to what it can move."""
    query("CREATE TABLE bulk (id int, body text)")
    query("ALTER TABLE bulk ALTER COLUMN body SET STORAGE EXTERNAL")
    try:
        with stage.rig.capped("wal", bps_total=BASE_BYTES):
            yield
    finally:
        query("DROP TABLE bulk")


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Inserts of many large rows, again and again."""
    with ExitStack() as stack:
        looped(stack, INSERTS, stage.file("bulk"), [f"--client={parameters['clients']}"])
        yield f"started {parameters['clients']} sessions that insert 4,000 rows of 4 kB at a time"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The WAL's disk moves far more, and its writes wait."""
    return [rises(numbers, "wal_write_kb_per_s", 2.0, 5000.0), rises(numbers, "wal_write_ms", 2.0, unit=" ms")]
