"""Another virtual machine works on the datastore of the data disk: the guest sees slow answers to a load as before."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

BASE_IOPS = 600  # what the datastore can do at all times

KIND = Kind(
    summary="A neighbour keeps {depth} requests outstanding at the datastore of the data disk, which does {base} IOPS.",
    truth=Truth(
        cause="disk-busy-with-others",
        layers=("vm", "storage-path", "datastore", "guest"),
        disk="yes",
        roles=("data",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        others=("disk-slow", "disk-capped"),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    is_uncached=True,
    programs=("fio",),
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """How much the neighbour asks for at once."""
    return {"depth": generator.choice([8, 16, 32]), "base": BASE_IOPS}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """A datastore with an end to what it can do."""
    with stage.rig.capped("data", iops_total=BASE_IOPS):
        yield


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """fio, outside the guest, on a disk under the same throttle group."""
    command = [
        "fio",
        "--name=neighbour",
        "--ioengine=nbd",
        f"--uri={stage.rig.neighbour('data')}",
        "--rw=randread",
        "--bs=4k",
    ]
    command += ["--size=200m", "--time_based", "--runtime=600", f"--iodepth={parameters['depth']}"]
    with ExitStack() as stack:
        stack.callback(stop, start(command), signal.SIGTERM, 5.0)
        yield f"started a neighbour of {stage.rig.device('data')} with {parameters['depth']} requests at a time"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Reads wait for the neighbour's."""
    return [rises(numbers, "data_read_ms", 3.0, unit=" ms")]
