"""A virtual machine gets too little CPU from its hypervisor: by a limit, or because neighbours have more shares."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents import holding
from incidents.contract import Kind, Parameters, Shown, Stage, Truth
from incidents.numbers import Numbers

KIND = Kind(
    summary="The hypervisor holds the VM back by {how}: {amount} {unit}.",
    truth=Truth(
        cause="cpu-capped",
        layers=("vm", "hypervisor-cpu", "guest", "host"),
        disk="no",
        visible_in=("qemu",),
        others=("cpu-taken", "cpu-busy"),
        innocent_layers=("storage-path", "datastore"),
    ),
    database="lab",
    takes_cpu=True,
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "cpu_idle_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """A limit, or neighbours."""
    if generator.random() < 0.5:
        return {"how": "limit", "amount": generator.randrange(12, 28), "unit": "% of one CPU"}
    return {"how": "shares", "amount": generator.randrange(8, 20), "unit": "busy neighbours"}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """A control group of QEMU, or of its neighbours."""
    if parameters["how"] == "limit":
        held = holding.cpu_limit(stage.guest, parameters["amount"])
    else:
        held = holding.cpu_neighbours(stage.guest, parameters["amount"])
    with held as did:
        yield did


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """That the user felt it is what shows: inside, the guest cannot see why."""
    del numbers, parameters
    return []
