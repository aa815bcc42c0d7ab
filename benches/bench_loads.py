"""Every key of a workload on every engine that is usable here: is the load that was there the load that was asked for?

``python -m benches.bench_loads [--on FOLDER] [--seconds S] [--engines E ...] [--keys K ...]`` makes a file in a folder,
runs fio once for each key and engine, and prints what `honoured.compare` says: asked beside measured. The order of
requests, which no report of fio holds, is taken from its log of offsets. It exits with 1 when a key was not honoured.
"""

from __future__ import annotations

import argparse
import os
import re
import sys
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path

from leadline.benchmarks import fio
from leadline.benchmarks._fio.kernel import io_uring_usable
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.honoured import LoadCheck, LoadState, StreamLoad, compare
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.following import ToolCommand, started

SIZE = "16m"
SIZE_BYTES = 16 * 1024**2
KEYS = {
    "block": "{block: 16k, read_pct: 100}",
    "block mix": "{block: {4k: 60, 16k: 30, 64k: 10}, read_pct: 50}",
    "read_pct": "{read_pct: 70}",
    "read_pct 0": "{read_pct: 0}",
    "random_pct": "{random_pct: 40, read_pct: 100}",
    "sequential": "{random_pct: 0, read_pct: 100}",
    "oio": "{oio: 8}",
    "jobs": "{oio: 2, jobs: 3}",
    "rate poisson": "{rate_iops: 301, read_pct: 70, oio: 4, jobs: 2}",
    "rate even": "{rate_iops: 250.5, arrivals: even, block: {4k: 50, 16k: 50}, oio: 4, jobs: 2}",
    "think_time_s": "{think_time_s: 10ms, oio: 4}",
    "burst": "{burst: {on_s: 300ms, off_s: 400ms}, oio: 2, jobs: 2}",
    "burst, rate": "{burst: {on_s: 300ms, off_s: 400ms}, rate_iops: 300}",
    "sync_every": "{read_pct: 0, random_pct: 0, sync_every: 3}",
    "sync_every, oio": "{read_pct: 0, random_pct: 0, sync_every: 4, oio: 4}",
    "verify": "{read_pct: 0}",
    "compress, dedupe": "{read_pct: 50}",
}
SETTINGS = {"verify": ", verify: true", "compress, dedupe": ", compress_pct: 50, dedupe_pct: 30"}
BURST_S = 2.1  # three cycles
OFFSETS = "write_lat_log=offsets\nlog_offset=1\ndisable_slat=1\ndisable_clat=1\n"


@dataclass(frozen=True, slots=True)
class Cell:
    """A key on an engine: what became of each part, or why there is none."""

    key: str
    engine: str
    checks: tuple[LoadCheck, ...]
    refused: str = ""

    @property
    def honoured(self) -> bool:
        """Whether nothing was broken."""
        return all(check.state is not LoadState.BROKEN for check in self.checks)


def usable(folder: Path) -> dict[str, str]:
    """Engines by name with their settings: those that work on files in a folder."""
    found = {"io_uring": "", "libaio": "", "psync": "", "io_uring, buffered": ", buffered: true"}
    found |= {"psync, buffered": ", buffered: true", "mmap": ", buffered: true"}
    if not io_uring_usable():
        found = {name: own for name, own in found.items() if not name.startswith("io_uring")}
    return found if _direct(folder) else {name: own for name, own in found.items() if own}


def _direct(folder: Path) -> bool:
    path = folder / "direct"
    try:
        os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_DIRECT))
    except OSError:
        return False
    path.unlink()
    return True


def workload_of(key: str, engine: str, more: str) -> Workload:
    """The workload that asks for a key on an engine."""
    settings = f"{{working_set: {SIZE}, engine: {engine.partition(',')[0]}{more}{SETTINGS.get(key, '')}}}"
    return parse_workload(f"name: t\nio_settings: {settings}\nio: [{KEYS[key]}]\n", key)


def random_pct(folder: Path) -> float:
    """The share of requests that did not begin where the one before of their job ended, from fio's offsets."""
    count = breaks = 0
    for path in folder.glob("offsets_lat.*.log"):
        after: int | None = None
        for line in path.read_text().splitlines():
            size, offset = (int(word) for word in line.split(",")[3:5])
            count += 1
            # Sequential requests begin anew at the end of the file.
            breaks += after is not None and offset not in (after, 0)
            after = offset + size
        path.unlink()
    return 100.0 * breaks / count if count else float("nan")


def cell(key: str, engine: str, more: str, file: Path, seconds: float) -> Cell:
    """One key on one engine."""
    try:
        workload = workload_of(key, engine, more)
        plan = fio.plan(workload, Target(str(file), destroy=str(file)))
    except LeadlineError as error:
        return Cell(key, engine, (), error.found)
    length = BURST_S if "burst" in key else seconds
    try:
        done = fio.measure(plan, Step("round-1", length, 1), file.parent, lambda _: True)
        loads = [load for load in done.loads if isinstance(load, StreamLoad)]
        if key in ("random_pct", "sequential"):
            loads = [replace(load, random_pct=_order(plan, file.parent)) for load in loads]
    finally:
        fio.clean(plan)
    return Cell(key, engine, compare(workload, loads, length))


def _order(plan: LoadPlan, folder: Path) -> float:
    """The order of two thousand requests of a plan: a log of all would need memory."""
    text = fio.job_file(plan, Step("order", 2.0, 1)).replace("[global]\n", f"[global]\n{OFFSETS}number_ios=2000\n", 1)
    job, talk = folder / "order.fio", folder / "order.txt"
    job.write_text(re.sub(r"iodepth=\d+", "iodepth=1", text).replace("time_based=1\n", ""))
    with started(ToolCommand(["fio", f"--output={talk}", str(job)], talk, targets=plan.targets)) as (process, _):
        process.wait(30)
    return random_pct(plan.targets.folder)


def matrix(folder: Path, seconds: float, engines: list[str] | None, keys: list[str] | None) -> list[Cell]:
    """All cells, on one file of random data."""
    there = usable(folder)
    file = folder / "loads.dat"
    file.write_bytes(os.urandom(SIZE_BYTES))
    return [
        cell(key, engine, more, file, seconds)
        for key in keys or KEYS
        for engine, more in there.items()
        if engines is None or engine in engines
    ]


def table(cells: list[Cell]) -> str:
    """The cells as lines of text: a row for each key, a column for each engine, then the figures."""
    engines = list(dict.fromkeys(own.engine for own in cells))
    lines = ["| key | " + " | ".join(engines) + " |", "|---" * (len(engines) + 1) + "|"]
    for key in dict.fromkeys(own.key for own in cells):
        words = []
        for engine in engines:
            own = next(c for c in cells if (c.key, c.engine) == (key, engine))
            states = {check.state for check in own.checks}
            worst = next(
                (s for s in (LoadState.BROKEN, LoadState.NOT_REACHED, LoadState.NOT_SEEN) if s in states),
                LoadState.HONOURED,
            )
            words.append("refused" if own.refused else f"{worst} ({len(own.checks)})")
        lines.append(f"| {key} | " + " | ".join(words) + " |")
    lines.append("")
    for own in cells:
        lines += [f"{own.key}, {own.engine}: refused, {own.refused}"] if own.refused else []
        lines += [f"{own.key}, {own.engine}: {check.state}: {check.sentence}" for check in own.checks]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--on", type=Path)
    parser.add_argument("--seconds", type=float, default=0.6)
    parser.add_argument("--engines", nargs="+")
    parser.add_argument("--keys", nargs="+")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=asked.on) as name:
        cells = matrix(Path(name), asked.seconds, asked.engines, asked.keys)
    print(table(cells))
    kept = sum(own.honoured and not own.refused for own in cells)
    print(f"\n{kept} of {len(cells)} cells honoured, {sum(bool(own.refused) for own in cells)} refused before the run")
    return 0 if all(own.honoured for own in cells) else 1


if __name__ == "__main__":
    sys.exit(main())
