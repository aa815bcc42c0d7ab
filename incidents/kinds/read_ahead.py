"""Somebody switched the data disk's read-ahead off: a scan asks for each page by itself, and waits for each."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, falls, rises
from incidents.numbers import Numbers
from incidents.postgresql import query
from incidents.processes import run

SECTOR_BYTES = 512
TABLES = 32  # of 5 MB: together far more than the server's buffers
FILL = """
CREATE TABLE orders_{number} AS SELECT * FROM orders WHERE id <= 32000;
"""
SCRIPT = f"""
SET max_parallel_workers_per_gather = 0;
\\set part random(1, {TABLES})
SELECT sum(length(note)) FROM orders_:part;
"""

KIND = Kind(
    summary="The data disk's read-ahead is set to {kib} KiB, while the application scans tables.",
    truth=Truth(
        cause="read-ahead",
        layers=("guest",),
        # Each request is answered as fast as ever; the guest asks for thirty times as many.
        disk="no",
        roles=("data",),
        visible_in=("iostat", "sar"),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("wal",),
    ),
    # A file keeps the read-ahead it was opened with: an application without a pool opens them anew each time.
    load=Load(clients=6, rate=12, script=SCRIPT, arguments=("--connect",)),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s", "data_read_kb_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """None at all, or a page or two."""
    return {"kib": generator.choice([0, 4, 8])}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """The tables that are scanned, as an application keeps its orders by month."""
    try:
        for number in range(1, TABLES + 1):
            query(FILL.format(number=number))
            query(f"VACUUM ANALYZE orders_{number}")  # else the first scan would write
        query("CHECKPOINT")
        yield
    finally:
        for number in range(1, TABLES + 1):
            query(f"DROP TABLE IF EXISTS orders_{number}")


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Blockdev, and back."""
    device = f"/dev/{stage.rig.device('data')}"
    before = run("blockdev", "--getra", device).strip()
    run("blockdev", "--setra", str(parameters["kib"] * 1024 // SECTOR_BYTES), device)
    try:
        yield f"set the read-ahead of {stage.rig.device('data')} to {parameters['kib']} KiB with blockdev --setra"
    finally:
        run("blockdev", "--setra", before, device)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Reads are small, as fast as before, and far more of them make a scan."""
    size, before = (
        one["data_read_kb_per_s"] / max(one["data_reads_per_s"], 1.0)
        for one in (numbers.mean_inside, numbers.mean_outside)
    )
    return [
        Shown(f"{before:.4g} -> {size:.4g} KiB a read", size <= 0.25 * before),
        falls(numbers, "data_read_ms", 1.2),
        rises(numbers, "latency_ms", 3.0, unit=" ms"),
    ]
