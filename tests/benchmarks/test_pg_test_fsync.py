"""The pg_test_fsync driver: what it refuses, and real runs in folders."""

from __future__ import annotations

from pathlib import Path

import pytest

from leadline.app.measure.benching import capture_of, driver_of, plan, run
from leadline.app.measure.comparing_runs import compare_runs
from leadline.app.measure.rounds import Talk
from leadline.benchmarks import pg_test_fsync
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.workload import Workload, find_workload, parse_workload
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore

needs_tool = pytest.mark.skipif(find_program("pg_test_fsync") is None, reason="pg_test_fsync is not installed")


def workload(timing: str = "warm_up_s: 0, measure_s: 16, rounds: 1") -> Workload:
    return parse_workload(f"name: t\nflush: {{}}\ntiming: {{{timing}}}\n", "t.yaml")


def test_a_plan_says_what_is_made_and_how_long_it_takes(tmp_path: Path) -> None:
    assert driver_of(find_workload("pg-test-fsync"))[0] == "pg-test-fsync"
    made = plan(workload("measure_s: 5"), Target(str(tmp_path)))
    place = made.places[pg_test_fsync.PLACE]
    assert (place.path, place.size_bytes, place.is_made) == (str(tmp_path / pg_test_fsync.FILE), 16 * 2**20, True)
    assert (made.workload.timing.warm_up_s, made.workload.timing.measure_s) == (0.0, 16.0)
    assert [note.partition(":")[0] for note in made.notes] == ["there is no warm-up", "a round takes 16 s"]
    assert plan(find_workload("pg-test-fsync"), Target(str(tmp_path))).notes == ()
    assert list(tmp_path.iterdir()) == []
    assert [pg_test_fsync.test_s(seconds) for seconds in (1.0, 16.0, 32.0, 90.0)] == [1, 1, 2, 6]


def test_what_is_there_is_never_given_to_a_tool_that_removes_it(tmp_path: Path) -> None:
    held = tmp_path / "held.dat"
    held.write_bytes(b"x")
    for named in (None, str(held)):
        with pytest.raises(UsageError, match="makes a file; expected a folder"):
            plan(workload(), Target(str(held), named))
    with pytest.raises(UsageError, match="makes a file; expected a folder"):
        plan(workload(), Target("/dev/null", "/dev/null"))
    with pytest.raises(UsageError, match="no such folder"):
        plan(workload(), Target(str(tmp_path / "new")))
    (tmp_path / pg_test_fsync.FILE).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(UsageError, match="there already"):
        plan(workload(), Target(str(tmp_path)))
    assert held.read_bytes() == b"x"


@pytest.mark.real
@needs_tool
@pytest.mark.slow
def test_a_run_keeps_every_method_and_leaves_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    done = run(plan(workload(), Target(str(folder))), store)
    assert list(folder.iterdir()) == []
    assert done.tool_version
    pooled = {part.name: part for part in done.pooled()}
    assert len(pooled) >= 14  # a file system without direct I/O has two methods less
    for name in ("one 8kB write fdatasync", "two 8kB writes fsync", "open_sync 16 x 1kB", "not synced write"):
        part = pooled[name]
        assert part.per_s > 0
        assert part.mean_ms == pytest.approx(1000 / part.per_s)
        assert (part.percentiles_ms, part.histogram) == ({}, None)
    assert done.per_s().sample_count == 0  # rates of different methods have no mean
    groups = capture_of(done.id, store).of("job_iops")
    assert sum(len(group.entities) for group in groups) == len(pooled)
    found = {part.name: part for part in compare_runs([store.get(done.id)], [done]).metrics}
    assert found["one 8kB write fsync"].change == 0.0
    assert found["one 8kB write fsync"].word == "too few samples"


@pytest.mark.real
@needs_tool
def test_ctrl_c_leaves_nothing_and_a_failure_is_one_error(tmp_path: Path) -> None:
    def tick(_: object) -> None:
        raise KeyboardInterrupt

    folder = tmp_path / "scratch"
    folder.mkdir()
    store = RunStore(tmp_path / "home")
    with pytest.raises(KeyboardInterrupt):
        run(plan(workload(), Target(str(folder))), store, talk=Talk(lambda _, __: None, tick, lambda _: None))
    assert list(folder.iterdir()) == []
    assert [own.state for own in store.list()] == ["interrupted"]
    made = plan(workload(), Target(str(folder)))
    folder.rmdir()
    with pytest.raises(ToolError, match=r"it cannot be made \(No such file or directory\)"):
        run(made, store)
