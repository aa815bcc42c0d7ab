"""The contract of load drivers: a file in ``benchmarks/`` with ``META``, ``plan``, ``prepare``, ``measure``, ``clean``.

A driver's docstring carries the headings *Measures, Does not, Warm-up and stopping, Misleads when, Sources*. It turns a
workload into runs of one real tool and does nothing of its own to the target:

``plan(workload, target) -> Plan``
    What will be written where, how large it is. Refuses what the tool cannot do with a UsageError; touches nothing.
``prepare(plan, folder, progress)``
    Makes what the plan names: files filled with random data, a database with its tables.
``measure(plan, step, folder, watch) -> Measured``
    One step, a warm-up or a round. ``watch`` is called about once a second with what came out of that second; when it
    returns False the tool is ended gracefully and what it measured is kept. What the tool counted of the load itself
    goes into ``loads``: `honoured.compare` sets it beside the workload, and a key that is not honoured fails the run.
``clean(plan)``
    Removes what prepare made, and nothing else; safe to call twice.
``sources(plan) -> dict[str, Address]`` (optional)
    What to record while it is loaded besides the machine: collectors with their targets, as a server's DSN.
``joined(results) -> tuple[Result, ...]`` (optional)
    The results of a step's files as the run keeps them, where the tool spreads one result over several files.
``recording(plan, folder)`` and ``drop_caches(plan)`` (optional)
    Instead of the machine's own where the load runs on another: a context that records into the folder and yields the
    notes; what empties a page cache there, and returns notes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from leadline.core.contracts.honoured import Load
from leadline.core.contracts.load_target import Target
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Workload
from leadline.core.system.enclosures import OPEN, Enclosure
from leadline.core.system.opened import Identity, Targets
from leadline.core.system.secret import Secret


@dataclass(frozen=True, slots=True)
class BenchmarkMeta:
    """What is known about a driver: its program, and the kind of workload it takes (`workload.KINDS`)."""

    program: str
    kind: str


@dataclass(frozen=True, slots=True)
class Place:
    """One file, device or export a stream works on.

    Attributes:
        path: where it is, for people: no load tool is given a path that a user named.
        is_made: made by prepare and removed by clean; False: it was there and is named to be overwritten.
        link: the plain name a load tool knows it by, in the folder it works in; empty for exports.
        further: other ways to the same, which jobs are dealt out to as well; sessions of a LUN.
        identity: which file or device it is; of the folder it will be in when it is made. None on other machines.
        engine: what alone reaches it, whatever the plan's engine is; empty where the plan's does.
    """

    path: str
    size_bytes: int
    is_made: bool
    is_device: bool = False
    link: str = ""
    identity: Identity | None = None
    further: tuple[str, ...] = ()
    engine: str = ""


@dataclass(frozen=True, slots=True)
class LoadPlan:
    """What a run will do, before anything is touched; ``places`` by the name of the stream that works there.

    ``facts`` are conditions of the target, kept with the run: runs whose facts differ are not alike.
    ``secret`` is the password of the target: it is nowhere else, and is neither shown nor stored.
    ``driver`` carries the plan out where the workload alone does not say who does: in a guest of a lab.
    ``targets`` are the places of this machine, open and locked from prepare to clean.
    ``enclosure`` is what a server that prepare makes runs in.
    """

    workload: Workload
    target: Target
    places: dict[str, Place]
    notes: tuple[str, ...] = ()
    engine: str = ""
    read_only: bool = False
    facts: dict[str, str] = field(default_factory=dict)
    secret: Secret = field(default_factory=Secret, repr=False, compare=False)
    driver: Benchmark | None = field(default=None, repr=False, compare=False)
    targets: Targets = field(default_factory=Targets, repr=False, compare=False)
    enclosure: Enclosure = field(default=OPEN, repr=False, compare=False)

    @property
    def written_bytes(self) -> int:
        """What preparing writes."""
        return 0 if self.read_only else sum({p.path: p.size_bytes for p in self.places.values()}.values())


@dataclass(frozen=True, slots=True)
class Step:
    """One execution of the tool: a warm-up or a measured round."""

    label: str
    duration_s: float
    seed: int


@dataclass(frozen=True, slots=True)
class Measured:
    """What one step measured: files an importer reads, seconds, commands, whether it was ended before its time.

    ``loads`` is the load that was there, as the tool counted it; empty where a tool says nothing of it.
    """

    files: tuple[Path, ...]
    ticks: tuple[Tick, ...]
    commands: tuple[tuple[str, ...], ...]
    tool_version: str | None
    ended_early: bool = False
    loads: tuple[Load, ...] = ()


Say = Callable[[str], None]


class Benchmark(Protocol):
    """The type of a driver module."""

    META: BenchmarkMeta

    def plan(self, workload: Workload, target: Target) -> LoadPlan:
        """What a run will do."""

    def prepare(self, plan: LoadPlan, folder: Path, say: Say) -> None:
        """Make what the plan names."""

    def measure(self, plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
        """One step."""

    def clean(self, plan: LoadPlan) -> None:
        """Remove what prepare made."""
