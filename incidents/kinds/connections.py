"""Clients connect anew for every query: the server forks processes instead of working."""

from __future__ import annotations

import random
import signal
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, above
from incidents.numbers import Numbers
from incidents.processes import start, stop

KIND = Kind(
    summary="{clients} clients connect for every single query.",
    truth=Truth(
        cause="connections",
        layers=("database", "guest"),
        disk="no",
        visible_in=("pidstat", "vmstat", "mpstat", "sar", "psi", "active-sessions", "pg-stat", "iostat"),
        others=("cpu-busy", "more-work"),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=250),
    takes_cpu=True,
    usual=("latency_ms", "cpu_busy_pct", "run_queue", "cpu_pressure_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """A pool that is none."""
    return {"clients": generator.randrange(40, 150)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Pgbench --connect."""
    with ExitStack() as stack:
        arguments = [f"--client={parameters['clients']}", "--jobs=4", "--connect", "--select-only"]
        command = ["pgbench", "--no-vacuum", "--time=600", *arguments]
        stack.callback(stop, start(command), signal.SIGINT, 5.0)
        yield f"started {parameters['clients']} clients that connect for every query"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The processors are full."""
    return [above(numbers, "cpu_busy_pct", 90.0)]
