"""A server with nothing wrong: the load alone."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Load, Parameters, Shown, Stage
from incidents.numbers import Numbers

KIND = Kind(
    summary="Nothing was done; the application asks for {rate} transactions/s.", truth=None, load=Load(rate=150)
)


def draw(generator: random.Random) -> Parameters:
    """Nothing to draw: the load is that of the other kinds."""
    del generator
    return {"rate": KIND.load.rate}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Nothing."""
    del stage, parameters
    yield "nothing"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """There is nothing more to show than that nobody felt anything."""
    del numbers, parameters
    return []
