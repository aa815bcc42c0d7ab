"""A load driver with exact times: a disk of known latency and ceiling, whose seconds pass at once.

It stands where fio stands (`mock_fio` in tests/conftest.py), so that what is built upon a driver is tested whole and
without waiting: warm-up, steadiness, rounds, interruption, going on, results. What it measured is a report of fio.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Stream, Workload

META = BenchmarkMeta(program="fio", kind="io")
BEGAN_MS = 1_800_000_000_000  # when the first step begins


@dataclass
class Disk:
    """What is loaded: one request takes ``latency_ms``, no more than ``iops_max`` are done in a second.

    ``fresh_s`` seconds from the start of each step it is faster by up to half, as a new SSD is. ``happens`` is called
    before each second with the step's name and the second; what it raises ends the step. ``steps`` are those done.
    """

    latency_ms: float = 1.0
    iops_max: float = 4000.0
    fresh_s: float = 0.0
    happens: Callable[[str, int], None] = lambda _label, _second: None
    steps: list[tuple[str, int]] = field(default_factory=list)

    def per_s(self, stream: Stream) -> float:
        """Operations of a stream in a second."""
        asked = float("inf") if stream.rate_iops is None else stream.rate_iops.read + stream.rate_iops.write
        return min(stream.oio * stream.jobs * 1000.0 / self.latency_ms, self.iops_max, asked)

    def mean_ms(self, stream: Stream) -> float:
        """How long a request of a stream takes, by Little's law."""
        return max(self.latency_ms, 1000.0 * stream.oio * stream.jobs / self.iops_max)


disk = Disk()


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A file in a folder for each stream."""
    if not Path(target.name).is_dir():
        raise UsageError(target.name, found="no folder", expected="a folder", advice="Make it first.")
    places = {
        stream.name: Place(
            str(Path(target.name, f"leadline-{stream.name}.mock")), workload.working_set_bytes(stream), is_made=True
        )
        for stream in workload.io
    }
    return LoadPlan(workload, target, places, engine="mock")


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Make the files, empty."""
    for place in plan.places.values():
        say(f"filling {place.path}")
        Path(place.path).touch(exist_ok=False)


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """Every second of the step at once."""
    ticks: list[Tick] = []
    ended_early = False
    for second in range(1, round(step.duration_s) + 1):
        disk.happens(step.label, second)
        fresh = max(0.0, 1.0 - second / disk.fresh_s) if disk.fresh_s else 0.0
        rates = [disk.per_s(stream) * (1.0 + 0.5 * fresh) for stream in plan.workload.io]
        sizes = [rate * stream.mean_block_bytes for rate, stream in zip(rates, plan.workload.io, strict=True)]
        worst_ms = max(disk.mean_ms(stream) for stream in plan.workload.io)
        ticks.append(Tick(float(second), sum(rates), sum(sizes), worst_ms))
        if not watch(ticks[-1]):
            ended_early = second < round(step.duration_s)
            break
    began_ms = BEGAN_MS + 1000 * sum(seconds for _, seconds in disk.steps)
    disk.steps.append((step.label, len(ticks)))
    path = folder / f"{step.label}.json"
    path.write_text(json.dumps(_report(plan.workload, began_ms, len(ticks))), encoding="utf-8")
    return Measured((path,), tuple(ticks), (("fio", "--mock", step.label),), "fio-3.33", ended_early)


def clean(plan: LoadPlan) -> None:
    """Remove the files."""
    for place in plan.places.values():
        Path(place.path).unlink(missing_ok=True)


@contextmanager
def recording(plan: LoadPlan, folder: Path) -> Iterator[list[str]]:
    """Nothing is recorded: seconds of the mock are none of the machine."""
    yield []


def failed(label: str) -> ToolError:
    """What a driver raises when its tool fails."""
    return ToolError(label, found="fio failed: EIO", expected="a whole run", advice="Look at the target.")


def _report(workload: Workload, began_ms: int, seconds: int) -> dict[str, object]:
    jobs = [_job(stream, began_ms, seconds) for stream in workload.io]
    return {
        "fio version": "fio-3.33",
        "timestamp": (began_ms + 1000 * seconds) // 1000,
        "timestamp_ms": began_ms + 1000 * seconds,
        "jobs": jobs,
    }


def _job(stream: Stream, began_ms: int, seconds: int) -> dict[str, object]:
    shares = {"read": stream.read_pct / 100.0, "write": 1.0 - stream.read_pct / 100.0}
    ways = {way: _way(stream, share, seconds) for way, share in shares.items() if share > 0}
    return {"jobname": stream.name, "groupid": 0, "error": 0, "elapsed": seconds, "job_start": began_ms, **ways}


def _way(stream: Stream, share: float, seconds: int) -> dict[str, object]:
    iops = disk.per_s(stream) * share
    count, latency_ns = round(iops * seconds), round(disk.mean_ms(stream) * 1e6)
    size = round(iops * stream.mean_block_bytes)
    statistics = {"min": latency_ns, "max": latency_ns, "mean": float(latency_ns), "stddev": 0.0, "N": count}
    return {
        "io_bytes": size * seconds,
        "bw_bytes": size,
        "bw": size // 1024,
        "iops": iops,
        "runtime": 1000 * seconds,
        "total_ios": count,
        "lat_ns": statistics,
        "clat_ns": {**statistics, "bins": {str(latency_ns): count}},
    }
