"""Rare reads of cold data: the hit ratio is low, and the disk is idle."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="Nothing is wrong; {rate} lookups/s of old data are read from the disk.",
    truth=None,
    load=Load(rate=20, clients=4),
    is_uncached=True,
    usual=("latency_ms", "data_util_pct", "data_reads_per_s", "data_read_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """A few a second."""
    return {"rate": generator.randrange(20, 60)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Pgbench --select-only at a low rate."""
    command = ["pgbench", "--no-vacuum", "--time=600", "--client=2", "--select-only", f"--rate={parameters['rate']}"]
    with ExitStack() as stack:
        stack.callback(stop, start(command), signal.SIGINT, 5.0)
        yield f"started {parameters['rate']} lookups/s of rows that memory does not hold"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The disk is read a little more."""
    return [rises(numbers, "data_reads_per_s", 1.5, 15.0)]
