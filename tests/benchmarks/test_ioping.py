"""The ioping driver: its words, what it refuses, and real runs in folders and on files."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from leadline.app.measure.benching import driver_of, plan, run
from leadline.app.measure.rounds import Talk
from leadline.app.read.importing import import_paths
from leadline.benchmarks import ioping
from leadline.core.contracts.benchmark import Step
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.result import Tick
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore

needs_ioping = pytest.mark.skipif(find_program("ioping") is None, reason="ioping is not installed")
# Not every file system that tests run on takes direct I/O.
SMALL = "block: 4k, working_set: 2m, buffered: true"


def workload(settings: str = SMALL, timing: str = "warm_up_s: 0, measure_s: 1, rounds: 1") -> Workload:
    return parse_workload(f"name: t\nlatency: {{{settings}}}\ntiming: {{{timing}}}\n", "t.yaml")


def test_a_workload_becomes_words(tmp_path: Path) -> None:
    assert driver_of(workload())[0] == "ioping"
    made = plan(workload("working_set: 8m, interval_s: 5ms"), Target(str(tmp_path)))
    words = ioping.command(made, Step("round-1", 5.0, 7))
    assert words[:6] == ["ioping", "-q", "-p", "1", "-i", "5000us"]
    assert words[6:] == ["-s", "8192", "-S", str(8 * 2**20), "-e", "7", "-D", "-k"]
    held = tmp_path / "held.dat"
    held.write_bytes(bytes(2**20))
    target = Target(str(held), str(held))
    made = plan(workload("write: true, sync: true, random: false, buffered: true"), target)
    words = ioping.command(made, Step("round-1", 5.0, 7))
    assert words[6:] == ["-s", "8192", "-S", str(2**20), "-e", "7", "-C", "-WWW", "-Y", "-L"]
    assert not made.places[ioping.PLACE].is_made


def test_data_is_not_overwritten_unless_the_very_same_target_is_named(tmp_path: Path) -> None:
    held, other = tmp_path / "held.dat", tmp_path / "other.dat"
    for path in (held, other):
        path.write_bytes(bytes(2**20))
    assert plan(workload(), Target(str(held))).read_only
    for named in (None, str(other)):
        with pytest.raises(UsageError, match="would be overwritten"):
            plan(workload("write: true"), Target(str(held), named))
    assert held.read_bytes() == bytes(2**20)


def test_targets_that_cannot_be(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Make the folder first"):
        plan(workload(), Target(str(tmp_path / "none")))
    (tmp_path / "tiny").write_bytes(b"x")
    with pytest.raises(UsageError, match="at least 4096"):
        plan(workload(), Target(str(tmp_path / "tiny")))
    (tmp_path / ioping.FOLDER).mkdir()
    with pytest.raises(UsageError, match="there already"):
        plan(workload(), Target(str(tmp_path)))
    (tmp_path / ioping.FOLDER).rmdir()
    with pytest.raises(ToolError, match="GiB that may be used"):
        plan(workload("working_set: 900000t"), Target(str(tmp_path)))


@pytest.mark.real
@needs_ioping
@pytest.mark.parametrize("way", ["read", "write"])
def test_a_run_has_every_request_and_leaves_nothing(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    settings = f"{SMALL}, interval_s: 2ms" + (", write: true, sync: true" if way == "write" else "")
    done = run(plan(workload(settings, "warm_up_s: 2, measure_s: 2, rounds: 2"), Target(str(folder))), store, seed=7)
    assert list(folder.iterdir()) == []
    (pooled,) = done.pooled()
    assert pooled.name == f"ioping {way}"
    lines = [
        line.split()
        for label in ("round-1", "round-2")
        for line in (store.files_of(done.id) / label / "ioping.txt").read_text().splitlines()[1:]
    ]
    assert pooled.histogram is not None
    assert pooled.histogram.total == pooled.count == sum(int(fields[0]) for fields in lines)
    exact_ms = sorted(int(fields[5]) / 1e6 for fields in lines)
    assert pooled.mean_ms == pytest.approx(sum(exact_ms) / len(exact_ms), rel=1e-3)
    assert pooled.percentiles_ms["p50"][0] == pytest.approx(exact_ms[(len(exact_ms) + 1) // 2 - 1], rel=2e-3)
    assert pooled.per_s <= 500.5 * 1.05  # an interval of 2 ms
    assert pooled.bytes_per_s == pytest.approx(pooled.per_s * 4096, rel=0.01)
    assert len(done.rounds[0].ticks) >= 1


@pytest.mark.real
@needs_ioping
def test_a_known_number_of_requests_is_counted(tmp_path: Path) -> None:
    """Measure the measurer: 9,973 requests and one to warm up are made, and 9,973 are in the histogram."""
    held = tmp_path / "held.dat"
    held.write_bytes(os.urandom(2**20))
    words = [*ioping.command(plan(workload(), Target(str(held))), Step("x", 1.0, 7)), "-c", "9974", str(held)]
    said = subprocess.run(words, check=True, capture_output=True, timeout=60, text=True).stdout
    (tmp_path / "ioping.txt").write_text(f"$ {' '.join(words)}\n{said}")
    (result,) = import_paths([tmp_path / "ioping.txt"]).capture.results
    (operation,) = result.operations
    assert operation.histogram is not None
    assert (operation.name, operation.count, operation.histogram.total) == ("read", 9973, 9973)
    assert result.workload["target"] == str(held)


@pytest.mark.real
@needs_ioping
def test_a_warm_up_ends_when_it_is_told_to(tmp_path: Path) -> None:
    made = plan(workload(), Target(str(tmp_path)))
    seen: list[Tick] = []

    def watch(tick: Tick) -> bool:
        seen.append(tick)
        return len(seen) < 2

    out = tmp_path / "out"
    out.mkdir()
    try:
        ioping.prepare(made, out, lambda _: None)
        found = ioping.measure(made, Step("warm-up", 60.0, 1), out, watch)
    finally:
        ioping.clean(made)
    assert found.ended_early
    assert 2 <= len(found.ticks) <= 5
    assert all(tick.per_s > 0 and tick.p99_ms > 0 for tick in found.ticks)
    assert not Path(made.places[ioping.PLACE].path).parent.exists()


@pytest.mark.real
@needs_ioping
def test_ctrl_c_leaves_nothing_and_a_failure_is_one_error(tmp_path: Path) -> None:
    def tick(_: Tick) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    with pytest.raises(KeyboardInterrupt):
        run(
            plan(workload(timing="warm_up_s: 0, measure_s: 30, rounds: 1"), Target(str(folder))),
            store,
            talk=Talk(lambda _, __: None, tick, lambda _: None),
        )
    assert list(folder.iterdir()) == []
    assert [own.state for own in store.list()] == ["interrupted"]
    held = tmp_path / "held.dat"
    held.write_bytes(bytes(2**20))
    made = plan(workload(), Target(str(held)))
    held.write_bytes(b"")
    with pytest.raises(ToolError, match="ioping failed: ioping: "):
        run(made, store)
