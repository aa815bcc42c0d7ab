"""Two faults at once: the WAL's disk is capped and other programs take the processors."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, above, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="The WAL's disk is capped at {iops} IOPS, and {hogs} busy loops run.",
    truth=Truth(
        cause="disk-capped",
        layers=("vm", "storage-path", "datastore", "guest"),
        disk="yes",
        roles=("wal",),
        visible_in=("iostat", "sar"),
        others=("cpu-taken", "cpu-busy"),
        innocent_layers=("network",),
        innocent_roles=("data",),
    ),
    takes_cpu=True,
    programs=("stress-ng",),
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "wal_util_pct", "wal_write_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """Both strong enough to be felt alone."""
    return {"iops": generator.randrange(25, 55), "hogs": generator.randrange(8, 20)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A cap and busy loops."""
    with ExitStack() as stack:
        stack.enter_context(stage.rig.capped("wal", iops_total=parameters["iops"]))
        for _ in range(parameters["hogs"]):
            stack.callback(stop, start(["stress-ng", "--cpu", "1", "--cpu-method", "int64"]), signal.SIGTERM, 5.0)
        yield f"capped {stage.rig.device('wal')} at {parameters['iops']} IOPS, started {parameters['hogs']} busy loops"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Writes of the WAL wait, and the processors are full."""
    return [rises(numbers, "wal_write_ms", 3.0, unit=" ms"), above(numbers, "cpu_busy_pct", 95.0)]
