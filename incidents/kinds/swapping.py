"""The database's container gets too little memory and the guest has swap space: its pages are swapped."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.processes import run

READ_US = 5000  # of the swap disk: swapping in is felt

KIND = Kind(
    summary="The database's control group gets {mib} MiB of memory; the rest is swapped.",
    truth=Truth(
        cause="swapping",
        layers=("guest", "hypervisor-memory"),
        disk="either",
        visible_in=("vmstat", "sar", "psi"),
        others=("memory-short",),
        innocent_layers=("network",),
        innocent_roles=("wal",),
    ),
    slack_s=8.0,
    usual=("latency_ms", "swap_in_kb_per_s", "swap_out_kb_per_s", "memory_pressure_pct", "swap_read_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """Less than the shared buffers and the sessions."""
    return {"mib": generator.randrange(38, 60)}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """Swap space on a disk of its own."""
    swap = f"/dev/{stage.rig.device('swap')}"
    run("swapon", swap)
    try:
        yield
    finally:
        run("swapoff", swap)


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """The memory limit of the control group."""
    swap = f"/dev/{stage.rig.device('swap')}"
    with stage.server.group.memory(parameters["mib"] << 20):
        # Only now: the kernel takes the limit when enough has been swapped out, while the load swaps it in again.
        stage.rig.slow("swap", read_us=READ_US)
        try:
            yield f"limited the memory of the database's control group to {parameters['mib']} MiB"
        finally:
            stage.rig.slow("swap")
    run("swapoff", swap)  # brings back what the load has not asked for again
    run("swapon", swap)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Pages come back from swap all the time."""
    return [rises(numbers, "swap_in_kb_per_s", 3.0, 200.0, " KiB/s")]
