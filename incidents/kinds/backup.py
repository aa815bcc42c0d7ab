"""A backup reads every file of the database from the disk that serves it."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

BASE_BYTES = 24_000_000  # a second, what the disk can move at all times

KIND = Kind(
    summary="tar copies the data directory, {copies} at a time; the disk moves {base} MB/s.",
    truth=Truth(
        cause="disk-busy-with-others",
        layers=("guest", "vm", "storage-path", "datastore", "database"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "pidstat", "active-sessions", "pg-stat"),
        others=("disk-capped",),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    programs=("tar",),
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_read_kb_per_s"),
    done_by=(DoneBy("program", "tar"),),
)


def draw(generator: random.Random) -> Parameters:
    """One backup, or several that overlap."""
    return {"copies": generator.choice([1, 2, 3]), "base": BASE_BYTES // 1_000_000}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk with an end to what it can move."""
    with stage.rig.capped("data", bps_total=BASE_BYTES):
        yield


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Tar of the data directory, again and again."""
    folder = stage.rig.disks["data"].mount / "main"
    command = ["sh", "-c", 'while :; do tar -C "$0" -cf - base 2>/dev/null | cat >/dev/null; done', str(folder)]
    with ExitStack() as stack:
        for _ in range(parameters["copies"]):
            stack.callback(stop, start(command), signal.SIGTERM, 5.0)
        yield f"started tar -cf - base, {parameters['copies']} times"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk reads far more, and reads wait."""
    return [rises(numbers, "data_read_kb_per_s", 3.0, 8000.0), rises(numbers, "data_read_ms", 2.0, unit=" ms")]
