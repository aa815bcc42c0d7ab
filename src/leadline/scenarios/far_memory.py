"""A program with part of its memory on a local SSD or in another host's memory.

Model:
    A program touches its pages. A page in local memory costs nothing beyond the program's own time; one that is
    elsewhere stops it until the page is read. A read brings pages beside it, which arrive while the program goes on.
    For each page that comes one goes, the one touched longest ago (lru) or the first not touched since the hand passed
    (clock). A replay of touches on one clock to the program's end, not a queue of events.

Assumptions:
    One thread. The first touch of a page allocates it and reads nothing. Every page that goes is written, beside the
    program but for ``reclaim``. Windows of pages read ahead grow and shrink with their use, as Linux does it. Touches
    are spread evenly over ``run``.

Parameters:
    ``program``: memory_mb, run (with all memory local), pattern (sequential with passes; uniform, growing, zipf with
    visits for each page, and skew; quicksort), page_kb, stands_for (real pages for each simulated one, which makes runs
    shorter). ``local_pct`` of its memory are local. ``backing``: rdma or ssd; of each: read (from the fault to the
    page), transfer (of each page more), minor_fault (on a page read ahead), reclaim (of the program, for each page that
    goes). ``replacement``: lru or clock. ``read_ahead_pages``: the largest window, 1 for none. Of ``timing`` only
    window_s counts: the width of the series.

Limits:
    No other threads that work while one waits, no contention for the link or the SSD, no huge pages, no loss of the
    remote host. A curve of run time over local_pct is the pattern's: measure yours before you believe it.

Sources:
    Amaro et al., "Can far memory improve job throughput?" (EuroSys 2020), Fastswap: 4 KB over RDMA in about 5 us.
    Linux, mm/swap_state.c: windows of up to 8 pages (page-cluster 3).
    Intel, "SSD DC P4510 product brief" (2018): 77 us for 4 KB at random; 85 us with the kernel's way.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import ceil, nan
from typing import Annotated, Any, Literal, cast

from pydantic import BaseModel, Field, model_validator

from leadline.core.contracts.ignored_keys import Ignored, unhonoured
from leadline.core.contracts.scenario import (
    STRICT,
    WINDOWS_MAX,
    Measure,
    Outcome,
    Progress,
    Scenario,
    ScenarioMeta,
    Series,
    whole_windows,
)
from leadline.core.model.result import Tick
from leadline.core.model.workload import Seconds
from leadline.scenarios import _simulator
from leadline.scenarios._draws import NS_PER_S, ns_of
from leadline.scenarios._simulator import Column, Figures, run_system

META = ScenarioMeta(
    policy_key="backing",
    policies=("rdma", "ssd"),
    columns=(
        ("run_s", "run s"),
        ("slowdown", "times"),
        ("stalled_pct", "stalled %"),
        ("iops", "reads/s"),
        ("latency_ms_mean", "stall ms"),
        ("read_ahead_pct", "ahead %"),
        ("hit_pct", "hits %"),
    ),
)
PROGRAM = "program"
# Keys that not every backing, and keys of ``program`` that not every pattern honours.
HONOURED = {"rdma": ("rdma",), "ssd": ("ssd",)}
PATTERNS = {
    "sequential": ("passes",),
    "uniform": ("visits",),
    "zipf": ("visits", "skew"),
    "quicksort": (),
    "growing": ("visits",),
}
NS_PER_MS = 1e6


class Program(BaseModel):
    """What a program does with its memory."""

    model_config = STRICT

    memory_mb: Annotated[float, Field(gt=0, le=4e6)]
    run: Annotated[Seconds, Field(gt=0, le=1e7)]
    pattern: Literal["sequential", "uniform", "zipf", "quicksort", "growing"] = "uniform"
    passes: Annotated[int, Field(ge=1, le=10**6)] = 10
    visits: Annotated[float, Field(ge=1, le=1e6)] = 10.0
    skew: Annotated[float, Field(ge=0, le=10)] = 0.99
    page_kb: Annotated[int, Field(ge=4, le=2048)] = 4
    stands_for: Annotated[int, Field(ge=1, le=4096)] = 1

    @property
    def pages(self) -> int:
        """Simulated pages."""
        return max(int(self.memory_mb * 1024 / self.page_kb / self.stands_for), 1)


class Rdma(BaseModel):
    """What a page from another host's memory costs."""

    model_config = STRICT

    read: Annotated[Seconds, Field(gt=0)] = 5e-6  # Source: Amaro et al. as above
    transfer: Annotated[Seconds, Field(ge=0)] = 0.7e-6  # Source: 4 KB by 56 Gbit/s of InfiniBand FDR, and its headers
    minor_fault: Annotated[Seconds, Field(ge=0)] = 1e-6  # Judgement: a fault without I/O, 0.5 to 1.5 us on servers
    reclaim: Annotated[Seconds, Field(ge=0)] = 0.0  # Fastswap's aim: another core does it


class Ssd(Rdma):
    """What a page from a local SSD costs."""

    read: Annotated[Seconds, Field(gt=0)] = 85e-6  # Source: Intel as above
    transfer: Annotated[Seconds, Field(ge=0)] = 1.3e-6  # Source: the same, 3,200 MB/s


class FarMemory(Scenario):
    """A scenario file of this system."""

    system: Literal["far-memory"] = "far-memory"
    program: Program
    local_pct: Annotated[float, Field(gt=0, le=100)] = 100.0
    backing: Literal["rdma", "ssd"] = "rdma"
    rdma: Rdma = Rdma()
    ssd: Ssd = Ssd()
    replacement: Literal["lru", "clock"] = "lru"
    read_ahead_pages: Literal[1, 2, 4, 8, 16, 32, 64, 128, 256] = 8

    def ignored(self) -> Iterator[Ignored]:
        """What the backing and the pattern do not honour, and the times of a run that ends with its program."""
        yield from unhonoured(HONOURED, self.backing, "", "backing")
        yield from unhonoured(PATTERNS, self.program.pattern, "program", "pattern")
        for key in ("timing.warm_up_s", "timing.measure_s"):
            yield Ignored(key, "a run that ends with its program ignores it", "nothing; only window_s counts here")

    @property
    def local_pages(self) -> int:
        """Simulated pages that are local."""
        return int(self.program.pages * self.local_pct / 100.0)

    @model_validator(mode="after")
    def _fits(self) -> FarMemory:
        if self.local_pages <= self.read_ahead_pages:
            message = (
                f"{self.local_pages} pages are local; more than the {self.read_ahead_pages} read at once are needed"
            )
            raise ValueError(message)
        return self


MODEL = FarMemory


class Counts(Figures):
    """Pages; those of a page that stands for several count as often."""

    touches: int
    allocated: int
    major: int
    minor: int
    ahead: int
    wasted: int
    evicted: int
    resident: int


class FarFigures(_simulator.Outcome):
    """What the simulator measured, ns; columns are by window."""

    now: float
    stalled: float
    counts: Counts
    major_series: Column
    stalled_series: Column


def simulate(scenario: Scenario, progress: Progress) -> Outcome:
    """One run of the program to its end."""
    scenario = cast("FarMemory", scenario)  # read with MODEL
    figures = run_system("far-memory", _document(scenario), FarFigures, progress)
    window = scenario.timing.window_s
    count = min(ceil(figures.now / NS_PER_S / window), WINDOWS_MAX)
    reads = whole_windows(figures.major_series, count, 0.0) / window
    stalled = whole_windows(figures.stalled_series, count, 0.0) / (window * NS_PER_S) * 100.0
    size = scenario.program.page_kb * 1024.0
    return Outcome(
        results=(),
        warm_up=(),
        ticks=tuple(Tick((n + 1) * window, float(rate), float(rate) * size) for n, rate in enumerate(reads)),
        measures=tuple(_measures(scenario, figures)),
        series=(
            Series(PROGRAM, "iops", "per_s", tuple(reads.tolist())),
            Series(PROGRAM, "stalled_pct", "pct", tuple(stalled.tolist())),
        ),
        trace=figures.trace,
        event_count=figures.counts.touches // scenario.program.stands_for,
    )


def _document(scenario: FarMemory) -> dict[str, Any]:
    program = scenario.program
    costs = scenario.rdma if scenario.backing == "rdma" else scenario.ssd
    return {
        "seed": scenario.seed,
        "pages": program.pages,
        "local_pages": scenario.local_pages,
        "stands_for": program.stands_for,
        "pattern": _pattern(program),
        "alone": ns_of(program.run),
        "replacement": scenario.replacement,
        "read": ns_of(costs.read),
        "transfer": ns_of(costs.transfer),
        "minor": ns_of(costs.minor_fault),
        "reclaim": ns_of(costs.reclaim),
        "window": scenario.read_ahead_pages,
        "width": ns_of(scenario.timing.window_s),
    }


def _pattern(program: Program) -> str | dict[str, Any]:
    keys = {
        "sequential": ("passes",),
        "uniform": ("visits",),
        "zipf": ("visits", "skew"),
        "growing": ("visits",),
    }.get(program.pattern)
    return program.pattern if keys is None else {program.pattern: {key: getattr(program, key) for key in keys}}


def _measures(scenario: FarMemory, figures: FarFigures) -> list[Measure]:
    """Numbers of the program; shares are of touches that did not allocate."""
    run_s, counts = figures.now / NS_PER_S, figures.counts
    faults = counts.major + counts.minor
    again = counts.touches - counts.allocated
    read = counts.major + counts.ahead
    size = scenario.program.page_kb * 1024.0
    rows = {
        "run_s": (run_s, "s"),
        "slowdown": (run_s / scenario.program.run, "ratio"),
        "stalled_pct": (100.0 * figures.stalled / figures.now, "pct"),
        "iops": (counts.major / run_s, "per_s"),
        "latency_ms_mean": (figures.stalled / faults / NS_PER_MS if faults else nan, "ms"),
        "read_ahead_pct": (100.0 * counts.ahead / read if read else nan, "pct"),
        "hit_pct": (100.0 * (1.0 - faults / again) if again else nan, "pct"),
        "wasted_pct": (100.0 * counts.wasted / counts.ahead if counts.ahead else nan, "pct"),
        "read_mb_per_s": (read * size / 1e6 / run_s, "mb_per_s"),
        "written_mb_per_s": (counts.evicted * size / 1e6 / run_s, "mb_per_s"),
        "major_count": (counts.major, "count"),
        "evicted_count": (counts.evicted, "count"),
    }
    return [Measure(PROGRAM, name, value, unit) for name, (value, unit) in rows.items()]
