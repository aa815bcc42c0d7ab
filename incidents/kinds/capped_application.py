"""The application's own machine has too little CPU: the database waits for it, idle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth
from incidents.numbers import Numbers

KIND = Kind(
    summary="The application gets {cpu_pct} % of one CPU.",
    truth=Truth(
        cause="partner-capped",
        layers=("host", "vm", "guest"),
        disk="no",
        visible_in=("active-sessions",),
        others=("more-work", "client-slow", "cpu-capped"),
        innocent_layers=("storage-path", "datastore"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=400, arguments=("--select-only",)),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "data_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Less than it needs."""
    return {"cpu_pct": generator.choice([1.0, 1.3, 1.6, 2.0])}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The CPU limit of the application's control group."""
    with stage.clients.cpus(parameters["cpu_pct"] / 100):
        yield f"limited the application's control group to {parameters['cpu_pct']} % of one CPU"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The server idles meanwhile."""
    return [
        Shown(
            f"CPU {numbers.inside.get('cpu_busy_pct', 0.0):.3g} % busy",
            numbers.inside.get("cpu_busy_pct", 100.0) < 40.0,
        )
    ]
