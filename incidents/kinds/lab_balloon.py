"""The hypervisor takes memory back from a virtual machine by its balloon; the guest swaps."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents import holding
from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers

KIND = Kind(
    summary="The balloon takes {mib} of the VM's 448 MiB.",
    truth=Truth(
        cause="memory-short",
        layers=("vm", "hypervisor-memory", "guest"),
        disk="either",
        visible_in=("linux",),
        others=("swapping", "cold-cache"),
        innocent_layers=("network",),
    ),
    database="lab",
    takes_cpu=True,
    usual=("transactions_per_s", "latency_ms", "cpu_iowait_pct", "swap_util_pct", "data_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Most of what it has."""
    return {"mib": generator.randrange(230, 285)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """QEMU's balloon."""
    with holding.balloon(stage.guest, parameters["mib"]) as did:
        yield did


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The guest writes to its swap disk, or reads again what it had."""
    return [rises(numbers, "swap_write_kb_per_s", 1.5, 10.0)]
