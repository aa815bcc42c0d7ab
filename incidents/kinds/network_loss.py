"""The network between application and database loses packets: TCP waits and sends again."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents import network
from incidents.contract import Kind, Load, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="{per_mille} of 1,000 packets are lost, both ways.",
    truth=Truth(
        cause="network-loss",
        layers=("network",),
        disk="no",
        visible_in=("sar", "ss"),
        others=("network-latency", "client-slow"),
        innocent_layers=("storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    load=Load(rate=120, through_link=True),
    needs=("network",),
    usual=("latency_ms", "transactions_per_s", "cpu_busy_pct", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """A bad cable, a full switch."""
    return {"per_mille": generator.randrange(15, 60)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Nftables at the client's end."""
    with network.loss(parameters["per_mille"]):
        yield f"let nftables drop {parameters['per_mille']} of 1,000 packets at random"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Transactions wait for packets that are sent again."""
    return [rises(numbers, "latency_ms", 2.0, unit=" ms")]
