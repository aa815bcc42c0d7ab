"""The link between application and database is narrow: large results queue."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents import network
from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

# A document of 48 kB is fetched.
SCRIPT = r"""
\set id random(1, 200)
SELECT body FROM wide WHERE id = :id;
"""

KIND = Kind(
    summary="The server's side of the link sends {kbit_per_s} kbit/s.",
    truth=Truth(
        cause="network-narrow",
        layers=("network",),
        disk="no",
        visible_in=("active-sessions", "sar", "ss"),
        others=("network-latency", "client-slow"),
        innocent_layers=("storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=30, script=SCRIPT, through_link=True),
    needs=("network",),
    usual=("latency_ms", "transactions_per_s", "cpu_busy_pct", "data_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """A fraction of what the results need."""
    return {"kbit_per_s": generator.randrange(3000, 9000)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Tc tbf at the server's end."""
    with network.narrow(parameters["kbit_per_s"]):
        yield f"let tc send {parameters['kbit_per_s']} kbit/s"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Results of 48 kB wait to be sent."""
    return [rises(numbers, "latency_ms", 5.0, unit=" ms")]
