"""The database's container gets too little CPU: its sessions want to run and may not, on a machine that idles."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth
from incidents.numbers import Numbers

IDLE_MIN_PCT = 50.0

KIND = Kind(
    summary="The database's control group gets {cpu_pct} % of one CPU.",
    truth=Truth(
        cause="cpu-capped",
        layers=("guest", "vm", "hypervisor-cpu", "host"),
        disk="no",
        visible_in=("active-sessions",),
        innocent_layers=("network", "storage-path", "datastore"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=250),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "run_queue", "cpu_pressure_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Less than the load needs."""
    return {"cpu_pct": generator.randrange(5, 11)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The CPU limit of the server's control group."""
    with stage.server.group.cpus(parameters["cpu_pct"] / 100):
        yield f"limited the database's control group to {parameters['cpu_pct']} % of one CPU"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The machine has processors to spare meanwhile."""
    idle = numbers.inside.get("cpu_idle_pct", 0.0)
    return [Shown(f"CPU {idle:.3g} % idle in the fault", idle >= IDLE_MIN_PCT)]
