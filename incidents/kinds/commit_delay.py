"""Somebody told the server to wait before it flushes a commit, so that others may join it."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import contextmanager

from incidents.contract import Kind, Parameters, Shown, Stage, Truth, rises
from incidents.numbers import Numbers
from incidents.postgresql import query

KIND = Kind(
    summary="commit_delay is set to {delay_us} us, with commit_siblings at 1.",
    truth=Truth(
        cause="commit-delayed",
        layers=("database",),
        disk="no",
        visible_in=("postgresql-log",),
        innocent_layers=("network", "storage-path", "datastore", "guest"),
        innocent_roles=("data", "wal"),
    ),
    usual=("transactions_per_s", "latency_ms", "wal_util_pct", "wal_write_ms", "wal_flushes_per_s"),
)


def draw(generator: random.Random) -> Parameters:
    """Far longer than a flush takes."""
    return {"delay_us": generator.randrange(20, 91) * 1000}


@contextmanager
def fault(stage: Stage, parameters: Parameters) -> Iterator[str]:
    """Two settings, and back."""
    query(f"ALTER SYSTEM SET commit_delay = {parameters['delay_us']}")
    query("ALTER SYSTEM SET commit_siblings = 1")
    query("SELECT pg_reload_conf()")
    try:
        yield f"set commit_delay = {parameters['delay_us']} and commit_siblings = 1, and reloaded"
    finally:
        for name in ("commit_delay", "commit_siblings"):
            query(f"ALTER SYSTEM RESET {name}")
        query("SELECT pg_reload_conf()")


def shows(numbers: Numbers, parameters: Parameters) -> list[Shown]:
    """Each transaction takes as much longer at least."""
    return [rises(numbers, "latency_ms", 3.0, parameters["delay_us"] / 2000.0, " ms")]
