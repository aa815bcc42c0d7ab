"""The clock of the recorded machine steps; nothing else happens."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from incidents.contract import Kind, Parameters, Shown, Stage
from incidents.numbers import Numbers

SHARED = Path("/dev/shm")

KIND = Kind(
    summary="Nothing is wrong; the clock steps by {step_s} s and back.",
    truth=None,
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """Forwards or backwards."""
    return {"step_s": generator.choice([-1, 1]) * generator.randrange(15, 90)}


@contextmanager
def prepare(stage: Stage) -> Iterator[None]:
    """Recorders under libfaketime."""
    stage.clock.write_text("+0")
    before = set(SHARED.glob("*faketime*"))
    library = next(Path("/usr/lib").glob("*/faketime/libfaketime.so.1"))
    stage.recorder_prefix = [
        "env",
        f"LD_PRELOAD={library}",
        f"FAKETIME_TIMESTAMP_FILE={stage.clock}",
        "FAKETIME_NO_CACHE=1",
        "DONT_FAKE_MONOTONIC=1",
    ]
    try:
        yield
    finally:
        stage.recorder_prefix = []
        for left in set(SHARED.glob("*faketime*")) - before:  # of programs that were ended
            left.unlink(missing_ok=True)


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """libfaketime, under which the recorders run, reads the step from a file."""
    stage.clock.write_text(f"{parameters['step_s']:+d}")
    try:
        yield f"stepped the clock that the recorders see by {parameters['step_s']} s"
    finally:
        stage.clock.write_text("+0")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """The recorders' times are elsewhere."""
    del parameters
    samples = numbers.inside.get("cpu_busy_pct")
    return [Shown("iostat's clock stepped: no sample of the fault bears its time", samples is None)]
