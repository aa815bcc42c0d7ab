"""What it costs to have data on the medium: pg_test_fsync, every method a database has, one after the other.

Measures:
    Operations per second and the time of one, for a write of 8 kB forced to the medium by open_datasync, fdatasync,
    fsync and open_sync, for two such writes, and for 16 kB in smaller and smaller ones: what a commit waits for. A rate
    far above what the medium can do (120/s for a disk of 7,200 revolutions a minute without a cache that keeps its
    contents) means that a cache answers, which may lose what it said was written.

Does not:
    Time single operations: there is a mean of each method and no percentile (use ``latency`` with ``sync: true``). Load
    the disk with more than one writer. Other files and devices: pg_test_fsync removes the file it wrote.

Warm-up and stopping:
    None: the 16 tests of a round share ``measure_s`` in whole seconds, at least one each; each is of another method.
    Their rates have no mean in common, so a run has no operations per second as a whole.

Misleads when:
    The file is not on the disk that holds the log of the database. The file system is in memory (tmpfs), or its
    mount or the layer below leaves out flushes (nobarrier, a cache mode "unsafe"). Another load is on the disk.

Sources:
    PostgreSQL documentation, pg_test_fsync and "Reliability"; ``pg_test_fsync.c`` (16 MB file, one segment of the log).
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from leadline.core.contracts.benchmark import BenchmarkMeta, LoadPlan, Measured, Place, Say, Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick, Watch
from leadline.core.model.workload import Workload
from leadline.core.system.following import ToolCommand, follow
from leadline.core.system.opened import Identity, printable, require_free
from leadline.core.system.safety import require_space, require_usable
from leadline.core.system.tools import TOOLS, examine

META = BenchmarkMeta(program="pg_test_fsync", kind="flush")

PLACE = "flush"
FILE = "leadline-bench-flush.dat"
LINK = "t0"  # the file, as the tool knows it
FILE_BYTES = 16 * 1024**2  # DEFAULT_XLOG_SEG_SIZE
TEST_COUNT = 16  # 4 methods with one write, 4 with two, 5 sizes, 2 with another descriptor, 1 without sync


def plan(workload: Workload, target: Target) -> LoadPlan:
    """Plan for a new file in a folder.

    Raises:
        UsageError: the target is no folder, or has such a file already.
        ToolError: there is not enough space.
    """
    folder = require_usable(target.name)
    if not folder.is_dir():
        raise UsageError(
            printable(target.name),
            found="no folder; pg_test_fsync makes a file",
            expected="a folder",
            advice="Name a folder on that disk.",
        )
    require_free(str(folder), FILE)
    require_space(str(folder), FILE_BYTES)
    timing, notes = workload.timing, []
    if timing.warm_up_s > 0:
        notes.append("there is no warm-up: each test is of another method")
    whole_s = float(TEST_COUNT * test_s(timing.measure_s))
    if whole_s != timing.measure_s:
        notes.append(f"a round takes {whole_s:g} s: {TEST_COUNT} tests of whole seconds")
    timing = timing.model_copy(update={"warm_up_s": 0.0, "measure_s": whole_s})
    place = Place(str(folder / FILE), FILE_BYTES, is_made=True, link=LINK, identity=Identity.of(folder.stat()))
    return LoadPlan(workload.model_copy(update={"timing": timing}), target, {PLACE: place}, tuple(notes))


def test_s(measure_s: float) -> int:
    """The whole seconds of each test of a round."""
    return max(round(measure_s / TEST_COUNT), 1)


def prepare(plan: LoadPlan, folder: Path, say: Say) -> None:
    """Make the file, empty: the tool writes it."""
    _reach(plan)


def _reach(plan: LoadPlan) -> None:
    """Make the file and name it plainly, again for every round: the tool removes the name at its end."""
    place = plan.places[PLACE]
    plan.targets.make(place.path, LINK, place.identity, 0)
    plan.targets.relink(LINK)


def measure(plan: LoadPlan, step: Step, folder: Path, watch: Watch) -> Measured:
    """One run of pg_test_fsync.

    Raises:
        ToolError: it is missing or fails.
    """
    step_folder = folder / step.label
    step_folder.mkdir(exist_ok=True)
    each_s = test_s(step.duration_s)
    _reach(plan)
    words = ["pg_test_fsync", "-s", str(each_s), "-f", LINK]
    load = ToolCommand(words, step_folder / "pg_test_fsync.txt", variables={"LC_ALL": "C"}, targets=plan.targets)
    _, ended_early = follow(load, float(TEST_COUNT * each_s), _ticks(each_s), watch, lambda: _failed(plan, load.output))
    version = examine(next(tool for tool in TOOLS if tool.name == "pg_test_fsync")).version
    return Measured((load.output,), (), (tuple(words),), version, ended_early)


def clean(plan: LoadPlan) -> None:
    """Remove the file."""
    plan.targets.close()


def _ticks(each_s: int) -> Callable[[str], Tick | None]:
    """A line of a test as what came out of its seconds."""
    done_count = 0

    def tick_of(line: str) -> Tick | None:
        nonlocal done_count
        words = line.split()
        if "ops/sec" not in words:
            return None
        done_count += 1
        return Tick(float(done_count * each_s), float(words[words.index("ops/sec") - 1]))

    return tick_of


def _failed(plan: LoadPlan, output: Path) -> ToolError:
    lines = [line for line in output.read_text(errors="replace").splitlines() if "could not" in line or "error" in line]
    return ToolError(
        printable(plan.places[PLACE].path),
        found=f"pg_test_fsync failed: {(lines or ['it did not end in time'])[-1][:200]}",
        expected="a whole run",
        advice="Look at the folder's rights and at free space.",
    )
