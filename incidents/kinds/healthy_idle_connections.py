"""Many connections that do nothing."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage
from incidents.numbers import Numbers
from incidents.postgresql import looped

KIND = Kind(
    summary="Nothing is wrong; {clients} sessions are connected and idle.",
    truth=None,
    usual=("latency_ms", "cpu_busy_pct", "run_queue"),
)


def draw(generator: random.Random) -> Parameters:
    """How many."""
    return {"clients": generator.randrange(80, 180)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Sessions that sleep."""
    with ExitStack() as stack:
        looped(stack, "SELECT 1;\n\\sleep 600 s\n", stage.file("idle"), [f"--client={parameters['clients']}"])
        yield f"connected {parameters['clients']} sessions that do nothing"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Nothing is to be seen but that nobody felt them."""
    del numbers, parameters
    return []
