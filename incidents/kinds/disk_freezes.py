"""A disk answers nothing for seconds, again and again: a path that fails over, a firmware that hangs."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, peaks
from incidents.numbers import Numbers

KIND = Kind(
    summary="The {disk} disk stands still for {still_s} s, again and again, {works_s} s apart.",
    truth=Truth(
        cause="disk-stalled",
        layers=("vm", "storage-path", "datastore", "guest"),
        disk="yes",
        roles=("{disk}",),
        visible_in=("iostat", "sar", "active-sessions", "pg-stat"),
        innocent_layers=("network",),
        innocent_roles=("{other}",),
    ),
    is_uncached=True,
    usual=("transactions_per_s", "latency_ms", "data_util_pct", "data_read_ms", "wal_util_pct", "wal_write_ms"),
)


def draw(generator: random.Random) -> Parameters:
    """Which disk, and for how long."""
    disk, other = generator.choice([("data", "wal"), ("wal", "data")])
    return {"disk": disk, "other": other, "still_s": generator.randrange(2, 6), "works_s": generator.randrange(2, 5)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Nbdkit keeps every answer back for a while."""
    done = threading.Event()

    def freeze() -> None:
        while not done.is_set():
            stage.rig.freeze(parameters["disk"], frozen=True)
            done.wait(parameters["still_s"])
            stage.rig.freeze(parameters["disk"], frozen=False)
            done.wait(parameters["works_s"])

    worker = threading.Thread(target=freeze, daemon=True)
    worker.start()
    try:
        yield f"let {stage.rig.device(parameters['disk'])} stand still for {parameters['still_s']} s at a time"
    finally:
        done.set()
        worker.join()
        stage.rig.freeze(parameters["disk"], frozen=False)


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """No transaction ended for seconds."""
    return [peaks(numbers, "standstill_s", min(parameters["still_s"], 3) - 1.0)]
