"""A disk is 100 % utilised at low latency: one request after the other, and room for many more."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, above
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="Nothing is wrong; a copy of {block} blocks keeps the data disk 100 % utilised.",
    truth=None,
    is_uncached=True,
    programs=("fio",),
    usual=("latency_ms", "data_util_pct", "data_read_ms", "data_reads_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """The size of its blocks."""
    return {"block": generator.choice(["4k", "16k", "64k"])}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """fio, one read at a time."""
    with ExitStack() as stack:
        command = ["fio", "--name=copy", f"--directory={stage.rig.disks['data'].mount}", "--rw=read", "--size=128m"]
        command += [f"--bs={parameters['block']}", "--direct=1", "--iodepth=1", "--time_based", "--runtime=600"]
        stack.callback(stop, start(command), signal.SIGTERM, 5.0)
        yield f"started fio --rw=read --bs={parameters['block']} --iodepth=1 on {stage.rig.device('data')}"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk is utilised nearly all the time."""
    return [above(numbers, "data_util_pct", 80.0)]
