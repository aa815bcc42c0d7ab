"""The way between application and database is long: every answer takes longer, the server is idle."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents import network
from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="Each answer takes {ms} ms longer on its way to the application.",
    truth=Truth(
        cause="network-latency",
        layers=("network",),
        disk="no",
        visible_in=("active-sessions", "ss"),
        others=("client-slow",),
        innocent_layers=("storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=120, through_link=True),
    needs=("network",),
    usual=("latency_ms", "transactions_per_s", "cpu_busy_pct", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Another data centre, another country."""
    ms = generator.randrange(6, 25)
    return {"ms": ms, "jitter_ms": ms // 4}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Toxiproxy between client and server."""
    with network.latency(parameters["ms"], parameters["jitter_ms"]):
        yield f"let toxiproxy delay each answer by {parameters['ms']} ms"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """A transaction of seven statements takes seven times the way."""
    return [rises(numbers, "latency_ms", 3.0, 5 * parameters["ms"], " ms")]
