"""Large writes in batches to the data disk, which takes them as fast as they come."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="Nothing is wrong; a batch writes {mb} MB/s to the data disk.",
    truth=None,
    is_uncached=True,
    programs=("fio",),
    usual=("latency_ms", "data_util_pct", "data_write_ms", "data_write_kb_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """How much."""
    return {"mb": generator.randrange(20, 60)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Fio at a rate."""
    with ExitStack() as stack:
        command = ["fio", "--name=batch", f"--directory={stage.rig.disks['data'].mount}", "--rw=write", "--size=128m"]
        command += ["--bs=512k", "--direct=1", "--ioengine=libaio", "--iodepth=4", "--time_based", "--runtime=600"]
        stack.callback(stop, start([*command, f"--rate={parameters['mb']}m"]), signal.SIGTERM, 5.0)
        yield f"started fio --rw=write --bs=512k --rate={parameters['mb']}m on {stage.rig.device('data')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk is written far more."""
    return [rises(numbers, "data_write_kb_per_s", 5.0, 15000.0)]
