"""What a kind of incident declares: a file in ``kinds/`` with ``KIND``, ``draw``, ``fault`` and ``shows``.

- ``KIND``: the load, the truth and where it is recorded.
- ``draw(random) -> dict``: the parameters of a variant; the same seed draws the same.
- ``fault(stage, parameters)``: a context manager that holds the fault, from outside, and yields what was done.
- ``prepare(stage)``, where there is one: a context manager that holds what is so at all times, healthy or not.
- ``shows(numbers, parameters) -> list[Shown]``: whether the recording shows its fault in its own numbers. A recording
  of which one is not true is thrown away.
"""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from incidents.limits import Group
from incidents.numbers import Numbers
from incidents.postgresql import Server
from incidents.processes import RigError, run
from incidents.rig import Rig

Parameters = dict[str, Any]

# What may be the cause. A diagnosis says it in these words, or in the name of a rule that means the same.
CAUSES = frozenset(
    "disk-capped disk-slow disk-stalled disk-busy-with-others flush-slow cpu-taken cpu-busy cpu-capped memory-short "
    "swapping lock-waits checkpoints wal-volume temp-files cold-cache connections disk-full network-latency "
    "network-loss network-narrow client-slow time-step more-work statement partner-capped standby-late "
    "commit-delayed read-ahead".split()
)
DISKS = ("disk-capped", "disk-slow", "disk-stalled", "disk-busy-with-others", "flush-slow")
FELT_RATE, FELT_LATENCY = 0.85, 1.5  # of the healthy phase's: what a user would call
UNFELT_RATE, UNFELT_LATENCY, UNFELT_MS = 0.93, 2.0, 5.0


@dataclass(frozen=True)
class Load:
    """What the application does. ``rate`` None: as much as its clients can."""

    clients: int = 8
    rate: int | None = 150
    script: str = ""  # of pgbench; empty: its TPC-B
    arguments: tuple[str, ...] = ()
    through_link: bool = False  # from a machine of its own, over a network


@dataclass(frozen=True)
class Truth:
    """What a diagnosis is held against.

    ``roles`` are the disks to blame, with {parameters}; without one it is the machine or the server, whatever its name.
    ``disk``: the right answer to "is it the disk?" (``either``: both can be defended). ``visible_in``: the recorders
    that alone can show the cause.
    """

    cause: str
    layers: tuple[str, ...]
    disk: str
    visible_in: tuple[str, ...]
    roles: tuple[str, ...] = ()
    innocent_layers: tuple[str, ...] = ()
    innocent_roles: tuple[str, ...] = ()
    others: tuple[str, ...] = ()  # further causes that are true: of two faults, or what the first one leads to

    def __post_init__(self) -> None:
        """Refuse words nobody knows."""
        if not {self.cause, *self.others} <= CAUSES or self.disk not in ("yes", "no", "either"):
            raise RigError(f"unknown cause or answer: {self.cause}, {self.others}, {self.disk}")


@dataclass(frozen=True)
class DoneBy:
    """Who does it: of which kind (statement, session, worker, program), and its name, empty where any name is right."""

    kind: str
    name: str = ""


@dataclass(frozen=True)
class Kind:
    """One kind of incident."""

    summary: str  # what was done, in a sentence with {parameters}
    truth: Truth | None  # None: healthy, whatever it looks like
    load: Load = field(default_factory=Load)
    database: str = "postgresql"  # or mysql, or lab: PostgreSQL in a virtual machine
    is_uncached: bool = False  # the data is far larger than memory: reads reach the disk
    takes_cpu: bool = False  # the fault itself takes the processors
    done_by: tuple[DoneBy, ...] = ()  # any of them is right; empty: nobody whom a recorder sees
    programs: tuple[str, ...] = ()  # what the fault itself runs beside the database: no bystander is one of them
    needs: tuple[str, ...] = ()  # `network`, `swap`
    ends_load: bool = False  # the load's clients may give up
    slack_s: float = 0.0  # what setting and lifting the fault takes, beyond three seconds for all of them
    usual: tuple[str, ...] = ("transactions_per_s", "latency_ms", "data_util_pct", "data_write_ms", "wal_write_ms")


@dataclass
class Stage:
    """What a fault has at hand."""

    rig: Rig
    server: Server
    clients: Group
    work: Path
    link: Any = None
    mysql: Any = None
    second: Any = None  # the PostgreSQL server of bystanders
    guest: Any = None
    guests: ExitStack = field(default_factory=ExitStack)  # ends the guest
    recorder_prefix: list[str] = field(default_factory=list)
    with_script: bool = False  # `leadline recorder`'s script records too

    @property
    def clock(self) -> Path:
        """The file from which libfaketime reads how far the recorders' clock is off."""
        return self.work / "clock"

    def warm(self) -> None:
        """Read the database's files into the page cache, on the account of its control group."""
        folder = self.rig.disks["data"].mount
        with self.rig.uncached(every_s=0.05):
            time.sleep(0.2)  # what is there already may be on another group's account
        run(*self.server.group.enter(["sh", "-c", 'find "$0" -type f -exec cat {} + >/dev/null', str(folder)]))

    def file(self, name: str) -> Path:
        """A file of ours for a script or an output."""
        return self.work / name


@dataclass(frozen=True)
class Shown:
    """One comparison of a recording's own numbers."""

    text: str
    is_true: bool


class KindModule(Protocol):
    """The type of a file in ``kinds/``."""

    KIND: Kind
    draw: Callable[[random.Random], Parameters]
    fault: Callable[[Stage, Parameters], AbstractContextManager[str]]
    shows: Callable[[Numbers, Parameters], list[Shown]]


def rises(numbers: Numbers, measure: str, times: float = 1.5, least: float = 0.0, unit: str = "") -> Shown:
    """A measure's median is so many times what it was in the healthy phase, and at least so much."""
    inside, outside = _pair(numbers, measure)
    base = 0.0 if math.isnan(outside) else outside
    return Shown(f"{measure} {outside:.4g} -> {inside:.4g}{unit}", inside >= max(base * times, least, 1e-9))


def mean_rises(numbers: Numbers, measure: str, times: float, unit: str = "") -> Shown:
    """A measure's mean is so many times what it was: for what comes in bursts."""
    inside, outside = (one.get(measure, math.nan) for one in (numbers.mean_inside, numbers.mean_outside))
    return Shown(f"{measure} {outside:.4g} -> {inside:.4g}{unit} on average", inside >= outside * times)


def falls(numbers: Numbers, measure: str, to: float) -> Shown:
    """A measure's median fell to that share of what it was, or less."""
    inside, outside = _pair(numbers, measure)
    return Shown(f"{measure} {outside:.4g} -> {inside:.4g}", inside <= outside * to)


def near(numbers: Numbers, measure: str, target: float, within: float = 0.2) -> Shown:
    """A measure's mean inside is that, within a share of it."""
    inside = numbers.mean_inside.get(measure, math.nan)
    return Shown(f"{measure} {inside:.4g} in the fault, {target:.4g} set", abs(inside - target) <= within * target)


def peaks(numbers: Numbers, measure: str, least: float) -> Shown:
    """A measure reached that at least once."""
    largest = numbers.largest_inside.get(measure, math.nan)
    return Shown(f"{measure} up to {largest:.4g}", largest >= least)


def above(numbers: Numbers, measure: str, least: float) -> Shown:
    """A measure's median inside is at least that, whatever it was before."""
    inside = numbers.inside.get(measure, math.nan)
    return Shown(f"{measure} {inside:.4g} in the fault", inside >= least)


def felt(numbers: Numbers) -> Shown:
    """The user felt it: fewer transactions, or each took longer."""
    rate, latency = (numbers.mean_inside.get(name, 0.0) for name in ("transactions_per_s", "latency_ms"))
    rate_before, latency_before = (numbers.mean_outside.get(name, 0.0) for name in ("transactions_per_s", "latency_ms"))
    is_felt = rate <= FELT_RATE * rate_before or latency >= FELT_LATENCY * latency_before
    return Shown(_felt(rate_before, rate, latency_before, latency), is_felt and rate_before > 0)


def unfelt(numbers: Numbers) -> Shown:
    """The user did not feel it: as many transactions, none of them much slower."""
    rate, latency = (numbers.mean_inside.get(name, 0.0) for name in ("transactions_per_s", "latency_ms"))
    rate_before, latency_before = (numbers.mean_outside.get(name, 0.0) for name in ("transactions_per_s", "latency_ms"))
    is_slower = latency > max(UNFELT_LATENCY * latency_before, latency_before + UNFELT_MS)
    is_fine = rate >= UNFELT_RATE * rate_before and not is_slower
    return Shown(_felt(rate_before, rate, latency_before, latency), is_fine and rate_before > 0)


def _felt(rate_before: float, rate: float, latency_before: float, latency: float) -> str:
    return f"{rate_before:.4g} -> {rate:.4g} transactions/s, {latency_before:.4g} -> {latency:.4g} ms"


def _pair(numbers: Numbers, measure: str) -> tuple[float, float]:
    return numbers.inside.get(measure, math.nan), numbers.outside.get(measure, math.nan)


def described(kind: Kind, parameters: Mapping[str, Any]) -> str:
    """The summary with its parameters."""
    return kind.summary.format(**parameters)
