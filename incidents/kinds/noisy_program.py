"""Another program in the guest works on the data disk, which can do so many IOPS and no more."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

BASE_IOPS = 900  # what the disk can do at all times

KIND = Kind(
    summary="fio reads and writes at random on the data disk, {depth} at a time; the disk does {base} IOPS.",
    truth=Truth(
        cause="disk-busy-with-others",
        layers=("guest", "vm", "storage-path", "datastore"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "pidstat", "active-sessions", "pg-stat"),
        others=("disk-capped",),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    programs=("fio",),
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s", "data_queue_depth"),
    done_by=(DoneBy("program", "fio"),),
)


def draw(generator: random.Random) -> Parameters:
    """How much it asks for at once."""
    return {"depth": generator.choice([16, 32, 64]), "base": BASE_IOPS}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A disk with an end to what it can do."""
    with stage.rig.capped("data", iops_total=BASE_IOPS):
        yield


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Fio on the same file system."""
    with ExitStack() as stack:
        command = ["fio", "--name=other", f"--directory={stage.rig.disks['data'].mount}", "--rw=randrw", "--bs=8k"]
        command += ["--size=128m", "--direct=1", "--ioengine=libaio", "--time_based", "--runtime=600"]
        stack.callback(stop, start([*command, f"--iodepth={parameters['depth']}"]), signal.SIGTERM, 5.0)
        yield f"started fio --rw=randrw --bs=8k --iodepth={parameters['depth']} on {stage.rig.device('data')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk's queue grew, and reads wait."""
    return [rises(numbers, "data_read_ms", 3.0, unit=" ms"), rises(numbers, "data_queue_depth", 3.0, 4.0)]
