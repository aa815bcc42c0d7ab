"""More work comes in: a second application starts to work on the same database."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="{clients} more clients run as fast as they can.",
    truth=Truth(
        cause="more-work",
        layers=("database", "guest"),
        disk="no",
        visible_in=("active-sessions", "pg-stat", "vmstat", "mpstat", "pidstat", "sar", "psi", "iostat"),
        others=("cpu-busy",),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("data",),
    ),
    takes_cpu=True,
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Several times what there was."""
    return {"clients": generator.randrange(24, 64)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A second pgbench without a rate."""
    command = ["pgbench", "--no-vacuum", "--time=600", f"--client={parameters['clients']}", "--builtin=simple-update"]
    with ExitStack() as stack:
        stack.callback(stop, start(command), signal.SIGINT, 5.0)
        yield f"started {parameters['clients']} more clients"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The server works far more."""
    return [rises(numbers, "cpu_busy_pct", 2.0, 60.0)]
