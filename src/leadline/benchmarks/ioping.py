"""Latency by ioping: one request at a time, the time of every one kept.

Measures:
    How long a single read or write takes when nothing else is asked of the disk by this load, in nanoseconds, each
    request by itself. Direct I/O; with ``sync: true`` a write is over when the medium holds it (O_SYNC), which is what
    a commit waits for.

Does not:
    Load the disk: one outstanding request tells nothing about how it behaves under more (use ``io``). With
    ``interval_s`` the requests per second are those that were asked for, not what the disk could do.

Warm-up and stopping:
    In a folder ioping makes a file of the working set, filled with random data, and all steps use it. The warm-up is a
    run of its own, ended when the requests per second are steady, which without an interval is the inverse of their
    latency; every round is a run with its own seed. ioping leaves the first request of each out.

Misleads when:
    The working set fits a cache that production's does not. An interval lets the CPU fall asleep between requests: it
    is then the wake-up that is measured as well. Without ``sync`` a write is over when the device's cache has it.

Sources:
    ioping(1): -i, -D, -C, -WWW, -Y, -L, -k, -e, "RAW STATISTICS"; ioping.c.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np

from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.units import factor
from leadline.core.model.workload import Latency, Workload
from leadline.core.system.following import ToolCommand, follow, started
from leadline.core.system.opened import Identity, printable, require_free
from leadline.core.system.processes import wait
from leadline.core.system.safety import require_space, require_usable, usable
from leadline.core.system.tools import TOOLS, examine

META = BenchmarkMeta(program="ioping", kind="latency")

PLACE = "latency"
FOLDER = "leadline-bench-latency"
LINK = "t0"  # the target, or the folder of its file, as ioping knows it
FILE = "ioping.tmp"  # the name ioping gives the file it keeps
FILL_S = 86_400.0
TICK_S = 1.0


def plan(workload: Workload, target: Target) -> LoadPlan:
    """A file that ioping makes in a folder, else the file or device that is there.

    Raises:
        UsageError: the target would be overwritten but is not named, is in use, too small, or does not exist.
        ToolError: there is not enough space.
    """
    settings = settings_of(workload)
    size = settings.working_set // settings.block * settings.block
    path = require_usable(target.name)
    if path.is_dir():
        require_free(str(path), FOLDER)
        require_space(str(path), size)
        place = Place(str(path / FOLDER / FILE), size, is_made=True, link=LINK, identity=Identity.of(path.stat()))
        return LoadPlan(workload, target, {PLACE: place})
    existing = usable(path, target.destroy, writes=settings.write)
    there = existing.size_bytes
    if there < settings.block:
        raise UsageError(
            printable(target.name),
            found=f"{there} bytes",
            expected=f"at least {settings.block}",
            advice="Name a larger target.",
        )
    size = min(size, there // settings.block * settings.block)
    place = Place(str(path), size, is_made=False, is_device=existing.is_device, link=LINK, identity=existing.identity)
    return LoadPlan(workload, target, {PLACE: place}, read_only=not settings.write)


def settings_of(workload: Workload) -> Latency:
    """The latency section, which this driver needs.

    Raises:
        UsageError: there is none.
    """
    if workload.latency is None:
        raise UsageError(
            f"workload {workload.name}", found="no latency", expected="a latency section", advice="See the guide."
        )
    return workload.latency


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Have ioping make its file of random data, where the target is a folder.

    Raises:
        ToolError: ioping is missing or fails.
    """
    place = plan.places[PLACE]
    _reach(plan)
    if not place.is_made:
        return
    say(f"filling {printable(place.path)} with {place.size_bytes / 2**30:.2f} GiB of random data")
    output = folder / "fill.txt"
    words = ["ioping", "-q", "-k", "-c", "1", "-s", "1m", "-S", str(place.size_bytes), LINK]
    with started(ToolCommand(words, output, targets=plan.targets)) as (process, look):
        if not wait(process, FILL_S, look) or process.returncode:
            raise _failed(output, place.path)


def _reach(plan: LoadPlan) -> None:
    """Open and lock the target, or make the folder that ioping makes its file in; a second time is nothing."""
    place = plan.places[PLACE]
    if place.is_made:
        plan.targets.make_folder(str(Path(place.path).parent), LINK, place.identity)
    else:
        plan.targets.open(place.path, LINK, place.identity, writes=not plan.read_only)


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of ioping.

    Raises:
        ToolError: ioping is missing or fails.
    """
    step_folder = folder / step.label
    step_folder.mkdir(exist_ok=True)
    _reach(plan)
    words = [*command(plan, step), "-w", f"{max(step.duration_s, 0.1):g}s", LINK]
    load = ToolCommand(words, step_folder / "ioping.txt", targets=plan.targets)
    # Raw lines do not say what was asked: the command stands before them, as in a terminal.
    load.output.write_text(f"$ {shlex.join(words)}\n", encoding="utf-8")
    where = plan.places[PLACE].path
    ticks, ended_early = follow(load, step.duration_s, _ticks(), watch, lambda: _failed(load.output, where))
    version = examine(next(tool for tool in TOOLS if tool.name == "ioping")).version
    return Measured((load.output,), tuple(ticks), (tuple(words),), version, ended_early)


def clean(plan: LoadPlan) -> None:
    """Let go of the target, and remove the file that was made, with its folder."""
    plan.targets.close()


def command(plan: LoadPlan, step: Step) -> list[str]:
    """Return the command of one run, without its duration and target."""
    settings = settings_of(plan.workload)
    interval_us = round(settings.interval_s * factor("s", "us"))
    words = ["ioping", "-q", "-p", "1", "-i", f"{interval_us}us", "-s", str(settings.block)]
    words += ["-S", str(plan.places[PLACE].size_bytes), "-e", str(step.seed), "-C" if settings.buffered else "-D"]
    words += ["-WWW"] * settings.write + ["-Y"] * settings.sync + ["-L"] * (not settings.random)
    return words + ["-k"] * plan.places[PLACE].is_made


def _ticks() -> Callable[[str], Tick | None]:
    """Lines of single requests as about a second each."""
    elapsed_ns, taken_ns, size_bytes = 0.0, 0.0, 0.0
    latencies: list[float] = []

    def tick_of(line: str) -> Tick | None:
        nonlocal elapsed_ns, taken_ns, size_bytes
        fields = line.split()
        if len(fields) != 10 or not all(part.isdigit() for part in fields):
            return None
        _, _, iops, bytes_per_s, _, mean_ns, _, _, request_count, ran_ns = map(float, fields)
        taken_ns += ran_ns
        if iops > 0:
            latencies.extend([mean_ns] * int(request_count))
            size_bytes += request_count * bytes_per_s / iops
        if taken_ns < TICK_S * factor("s", "ns"):
            return None
        elapsed_ns += taken_ns
        passed_s = taken_ns * factor("ns", "s")
        p99_ms = float(np.quantile(latencies, 0.99)) * factor("ns", "ms") if latencies else float("nan")
        tick = Tick(elapsed_ns * factor("ns", "s"), len(latencies) / passed_s, size_bytes / passed_s, p99_ms)
        taken_ns, size_bytes = 0.0, 0.0
        latencies.clear()
        return tick

    return tick_of


def _failed(output: Path, where: str) -> ToolError:
    lines = [line for line in output.read_text(errors="replace").splitlines() if line.startswith("ioping:")]
    complaint = (lines or ["it did not end in time"])[-1]
    return ToolError(
        printable(where),
        found=f"ioping failed: {complaint[:200]}",
        expected="a whole run",
        advice="Look at the target and at free space; not every file system takes direct I/O (buffered: true).",
    )
