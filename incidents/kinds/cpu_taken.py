"""Other programs of the guest take the processors; the disks are fine."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import DoneBy, Kind, Load, Parameters, Shown, Stage, Truth, above
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="{hogs} busy loops run beside the database.",
    truth=Truth(
        cause="cpu-taken",
        layers=("guest",),
        disk="no",
        visible_in=("vmstat", "mpstat", "pidstat", "sar", "psi", "iostat"),
        others=("cpu-busy",),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=250),
    takes_cpu=True,
    programs=("stress-ng",),
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "cpu_pressure_pct", "load_average"),
    done_by=(DoneBy("program", "stress-ng-cpu"),),
)


def draw(generator: random.Random) -> Parameters:
    """Several for each processor."""
    return {"hogs": generator.randrange(10, 32)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """stress-ng, started often."""
    # Each runs in a session of its own: Linux shares the processors between sessions first (autogroup), so that one
    # session of many loops would take no more than one loop does.
    with ExitStack() as stack:
        for _ in range(parameters["hogs"]):
            stack.callback(stop, start(["stress-ng", "--cpu", "1", "--cpu-method", "int64"]), signal.SIGTERM, 5.0)
        yield f"started stress-ng --cpu 1 --cpu-method int64, {parameters['hogs']} times"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The processors are full and many wait for them."""
    return [above(numbers, "cpu_busy_pct", 97.0), above(numbers, "run_queue", parameters["hogs"] * 0.7)]
