"""Another service stores small pieces beside the log, and flushes each: commits wait behind its flushes."""

from __future__ import annotations

import random
import shutil
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

BASE_IOPS = 700  # what the disk can do at all times
FLUSH_MS = 3  # what a flush of it takes at all times

KIND = Kind(
    summary="fio: {writers} writers flush each 4 KiB on the WAL's disk ({flush_ms} ms each, {base} IOPS).",
    truth=Truth(
        cause="disk-busy-with-others",
        layers=("guest", "vm", "storage-path", "datastore"),
        disk="yes",
        roles=("wal",),
        visible_in=("iostat", "sar", "pidstat", "active-sessions", "pg-stat"),
        others=("flush-slow", "disk-capped"),
        innocent_layers=("network",),
        innocent_roles=("data",),
    ),
    programs=("fio",),
    usual=("latency_ms", "wal_util_pct", "wal_write_ms", "wal_flush_ms", "wal_flushes_per_s"),
    done_by=(DoneBy("program", "fio"),),
)


def draw(generator: random.Random) -> Parameters:
    """How many write at once."""
    return {"writers": generator.choice([6, 8, 12, 16]), "flush_ms": FLUSH_MS, "base": BASE_IOPS}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk with an end to what it can do, whose flushes take their time."""
    stage.rig.slow("wal", flush_us=FLUSH_MS * 1000)
    try:
        with stage.rig.capped("wal", iops_total=BASE_IOPS):
            yield
    finally:
        stage.rig.slow("wal")


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Fio in a folder of its own on the same file system."""
    folder = stage.rig.disks["wal"].mount / "queue"
    folder.mkdir()
    command = ["fio", "--name=queue", f"--directory={folder}", "--rw=write", "--bs=4k", "--size=8m", "--fsync=1"]
    command += ["--ioengine=psync", "--thread", "--fallocate=none", "--time_based", "--runtime=600"]
    with ExitStack() as stack:
        stack.callback(shutil.rmtree, folder, ignore_errors=True)
        stack.callback(stop, start([*command, f"--numjobs={parameters['writers']}"]), signal.SIGTERM, 5.0)
        yield f"started fio --bs=4k --fsync=1 --numjobs={parameters['writers']} on {stage.rig.device('wal')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk is flushed far more often, and what commits write to it waits."""
    return [
        rises(numbers, "wal_write_ms", 2.0, unit=" ms"),
        rises(numbers, "wal_queue_depth", 2.0, 1.0),
        rises(numbers, "latency_ms", 1.5, unit=" ms"),
    ]
