"""An application keeps transactions open while it does something else: what it locked, others wait for."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import looped

KIND = Kind(
    summary="{clients} clients think for {think_ms} ms between their update and their commit.",
    truth=Truth(
        cause="client-slow",
        layers=("database",),
        disk="no",
        visible_in=("active-sessions", "postgresql-log"),
        others=("lock-waits",),
        innocent_layers=("network", "storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    usual=("transactions_per_s", "latency_ms", "cpu_busy_pct", "wal_util_pct"),
)


def draw(generator: random.Random) -> Parameters:
    """How many, and how long they think."""
    return {"clients": generator.choice([4, 6, 8]), "think_ms": generator.randrange(700, 1800)}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Clients that sleep inside a transaction."""
    script = (
        "\\set branch random(1, 20)\nBEGIN;\nUPDATE pgbench_branches SET filler = 'x' WHERE bid = :branch;\n"
        f"\\sleep {parameters['think_ms']} ms\nCOMMIT;\n"
    )
    with ExitStack() as stack:
        looped(stack, script, stage.file("thinker"), [f"--client={parameters['clients']}"])
        yield f"started {parameters['clients']} clients that think before they commit"


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Transactions wait."""
    return [rises(numbers, "latency_ms", 3.0, unit=" ms")]
