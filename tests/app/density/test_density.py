"""How many fit on a disk with a real limit, on machines, and what a cut leaves to do."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import leadline.app.density.density as use_case
from benches.throttled import missing, throttled_disk
from leadline.app.density.comparing import compare_density
from leadline.app.density.density import DensityPlan, DensityRequest, make_plan, resume_plan, run_density
from leadline.app.density.model import CountState, parse_service_level
from leadline.app.density.requests import bytes_of, changed
from leadline.app.density.results import SUMMARY, stored
from leadline.app.density.steps import StepRule
from leadline.app.measure.hosts import Host
from leadline.app.measure.rounds import Talk
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import InputError, ToolError, UsageError
from leadline.core.model.workload import Workload, find_workload, parse_workload, profiles
from leadline.core.system.cgroups import PREFIX, Hierarchies, InstanceLimits, find
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore
from tests.app.measure.test_hosts import servers
from tests.fio_servers import end

__all__ = ["end", "servers"]
LEVEL = "p95<=100ms, per_s>=0.95 of offered"
needs_fio = pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")


def fifty(seconds: float = 11.0, rounds: int = 1) -> Workload:
    """An instance of 50 requests a second, evenly spaced."""
    text = f"name: fifty\ntiming: {{warm_up_s: 1, measure_s: {seconds}, rounds: {rounds}}}\n"
    text += "io_settings: {working_set: 1m}\n"
    return parse_workload(text + "io: [{block: 4k, read_pct: 70, oio: 8, rate_iops: 50, arrivals: even}]\n", "t")


def planned(on: str, rule: StepRule, *, level: str = LEVEL, limits: InstanceLimits | None = None) -> DensityPlan:
    request = DensityRequest(fifty(), Target(on, on), parse_service_level(level), rule, limits or InstanceLimits())
    return make_plan(request)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[str]:
    """A disk that lets 400 requests a second pass, in QEMU's block layer."""
    reason = missing()
    if reason is not None:
        pytest.skip(reason)
    with throttled_disk(tmp_path, 400, 32 * 2**20) as address:
        yield address


@pytest.mark.real
@pytest.mark.slow
@needs_fio
def test_eight_of_fifty_fit_on_four_hundred_and_nine_do_not(disk: str, tmp_path: Path) -> None:
    """Nine ask for 450 and can never have it. Eight ask for exactly 400: on a busy machine a pause of their own
    processes may be what breaks one of eight, so seven are let pass as the last that surely held.
    """
    store = RunStore(tmp_path / "home")
    done = run_density(planned(disk, StepRule(start=8, most=9)), store, seed=1)
    by_count = {level.count: level for level in done.levels}
    nine = by_count[9]
    assert nine.state is CountState.BROKE
    assert nine.per_s.mean == pytest.approx(400.0, rel=0.05)
    assert nine.worst_per_s < 47.5
    assert nine.clauses[0].broke_count == 9
    low, high = done.answer.bounds
    assert low in (7, 8)
    assert low <= 8 <= high or by_count[8].state is CountState.BROKE
    if by_count[8].state is CountState.HELD:
        assert by_count[8].fairness == pytest.approx(1.0, abs=0.01)
        assert by_count[8].worst_ms < 100.0 < nine.worst_ms
        assert done.answer.sentence.startswith("8 instances fit")
    run = store.get(nine.run)
    assert (run.state, run.tool, len(run.commands)) == ("done", "fio", 9)
    assert {result.job[:5] for result in run.rounds[0].results} == {f"i{n:04}" for n in range(1, 10)}
    assert repr(stored(store, "last").levels) == repr(done.levels)


@pytest.mark.real
@pytest.mark.slow
@needs_fio
def test_a_cut_run_goes_on_where_it_was(tmp_path: Path) -> None:
    store, on = RunStore(tmp_path / "home"), tmp_path / "on"
    on.mkdir()
    made = planned(str(on), StepRule(start=1, most=2), level="p50<=10s")

    def cut(text: str) -> None:
        if text.startswith("1: "):
            raise KeyboardInterrupt

    first = run_density(made, store, seed=5, talk=Talk(lambda *_: None, lambda _: None, cut))
    assert (first.state, [level.count for level in first.levels]) == ("interrupted", [1])
    assert list(on.iterdir()) == []
    again, before = resume_plan(store, first.id, None)
    whole = run_density(again, store, before=before)
    assert (whole.id, whole.state, whole.seed) == (first.id, "done", 5)
    assert [level.count for level in whole.levels] == [1, 2]
    assert repr(whole.levels[0]) == repr(first.levels[0])
    assert any(note.startswith("continued at") for note in whole.notes)
    assert list(on.iterdir()) == []
    with pytest.raises(UsageError, match="it is done"):
        resume_plan(store, "last", None)
    found = compare_density(first, whole)
    assert found.unlike == (f"{first.id}: the search was ended before its time",)


def groups_of_this_process(where: Hierarchies) -> set[Path]:
    """Groups this process made; other tests that run at the same time (a lab's guest, a recording) make their own."""
    pattern = f"{PREFIX}-{os.getpid()}-*"
    return {path for folder in where.folders.values() for path in folder.glob(pattern)}


@pytest.mark.real
@pytest.mark.slow
@needs_fio
def test_limited_instances_leave_no_groups(tmp_path: Path) -> None:
    limits = InstanceLimits(cpus=0.5, memory_bytes=256 * 2**20)
    where = find(limits)
    if isinstance(where, str):
        pytest.skip(where)
    on = tmp_path / "on"
    on.mkdir()
    store = RunStore(tmp_path / "home")
    before = groups_of_this_process(where)
    try:
        done = run_density(planned(str(on), StepRule(most=1), limits=limits), store, seed=1)
    except ToolError as error:
        pytest.skip(f"the kernel refuses control groups here: {error}")
    assert done.are_limited
    assert done.levels[0].state is not CountState.FAILED
    assert groups_of_this_process(where) == before
    assert list(on.iterdir()) == []


def test_without_the_right_to_make_groups_it_goes_on_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(use_case, "find", lambda _: "no right to make control groups in /sys/fs/cgroup/cpu")
    made = planned(str(tmp_path), StepRule(most=1), limits=InstanceLimits(cpus=0.5))
    assert made.groups is None
    assert "without limits: no right to make control groups in /sys/fs/cgroup/cpu" in made.notes


@pytest.mark.real
@pytest.mark.slow
@needs_fio
def test_machines_are_instances_and_one_that_is_gone_is_told(servers: list[tuple[str, object]], tmp_path: Path) -> None:
    hosts = tuple(Host(address, str(tmp_path)) for address, _ in servers[:2])
    gone = (hosts[0], Host("127.0.0.1,1", str(tmp_path)))
    workload = fifty(2.0, rounds=3).model_copy(update={"io": (fifty().io[0].model_copy(update={"name": "h"}),)})
    request = DensityRequest(workload, Target("."), parse_service_level("p50<=10s"), StepRule(most=64), hosts=gone)
    made = make_plan(request)
    assert (made.rule.most, made.site) == (2, None)
    assert "the search ends at 2: that many machines in the file" in made.notes
    done = run_density(made, RunStore(tmp_path / "home"), seed=1)
    assert [level.state for level in done.by_count] == [CountState.HELD, CountState.FAILED]
    assert "127.0.0.1,1" in done.by_count[1].reasons[0]
    assert "could not run" in done.answer.sentence
    assert len(RunStore(tmp_path / "home").get(done.by_count[0].run).rounds) == 3


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ({"level": "per_s>=10"}, "a latency, or a workload with rate_iops"),
        ({"level": "p99.9<=1s", "rate": 50.0}, "Measure at least 203 s"),  # three rounds lose a second each
        ({"rounds": 1, "seconds": 5.0, "rate": 50.0}, "at least 11 s in all"),
        ({"rounds": 1, "seconds": 10.0, "rate": 50.0}, "at least 11 s in all"),
        ({"rate": 50.0, "limits": InstanceLimits(memory_bytes=1)}, "32 MiB"),
        ({"rate": 50.0, "rule": StepRule(start=9, most=8)}, "--max"),
        ({"workload": "postgresql-transactions", "hosts": (Host("a", "/"),)}, "with --hosts; expected io"),
        ({"workload": "intersystems-io"}, "bursts beside other streams"),
        ({"rate": 50.0, "hosts": (Host("a", "/"),), "rounds": 1}, "at least 3: only whole rounds"),
        ({"rate": 50.0, "hosts": (Host("a", "/"),), "limits": InstanceLimits(cpus=1.0)}, "machines as they are"),
    ],
)
@needs_fio
def test_what_could_not_be_judged_is_refused_before_anything_is_touched(
    words: dict[str, object], part: str, tmp_path: Path
) -> None:
    given = dict(words)
    name = str(given.pop("workload", "hci-8k-50-50"))
    level = str(given.pop("level", "p50<=1s"))
    rest = {key: given.pop(key) for key in ("rule", "limits", "hosts") if key in given}
    asked = {"size": "1m", "measure_s": given.get("seconds", 10.0), "rounds": given.get("rounds")}
    if name.startswith("postgresql"):
        name, asked = database_workload(), {}
    workload = changed(find_workload(name), rate_per_s=given.get("rate"), **asked)  # type: ignore[arg-type]
    with pytest.raises(UsageError) as caught:
        make_plan(replace(DensityRequest(workload, Target(str(tmp_path)), parse_service_level(level)), **rest))  # type: ignore[arg-type]
    assert part in str(caught.value)
    assert list(tmp_path.iterdir()) == []


def database_workload() -> str:
    found = [name for name in profiles() if find_workload(name).kind != "io"]
    return found[0] if found else pytest.skip("every shipped workload is I/O")


def test_a_rate_is_split_over_streams_as_theirs_are() -> None:
    text = "name: t\nio: [{name: a, rate_iops: 30, read_pct: 50}, {name: b, rate_iops: {write: 10}, read_pct: 0}]\n"
    found = changed(parse_workload(text, "t"), rate_per_s=80.0)
    rates = [stream.rate_iops for stream in found.io]
    assert [(rate.read, rate.write) for rate in rates if rate is not None] == [(30.0, 30.0), (0.0, 20.0)]
    alone = changed(find_workload("hci-8k-50-50"), rate_per_s=40.0).io[0]
    assert alone.arrivals == "even"
    assert alone.rate_iops is not None
    assert math.isclose(alone.rate_iops.read, 20.0)
    with pytest.raises(UsageError, match="--rate"):
        changed(parse_workload("name: t\nio: [{name: a}, {name: b}]\n", "t"), rate_per_s=80.0)
    with pytest.raises(UsageError, match="sizes as 4g"):
        changed(find_workload("hci-8k-50-50"), size="big")
    assert bytes_of("2m", "--memory") == 2**21
    with pytest.raises(UsageError, match="--memory"):
        bytes_of("big", "--memory")


def test_a_damaged_summary_and_an_unknown_name(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    with pytest.raises(UsageError, match="none was kept yet"):
        stored(store, "last")
    (store.files_of("20260101-density-x") / SUMMARY).write_text("{}")
    with pytest.raises(InputError, match="damaged"):
        stored(store, "2026")
    with pytest.raises(UsageError, match="no such run"):
        stored(store, "1999")


@needs_fio
def test_a_target_that_holds_data_must_be_named(tmp_path: Path) -> None:
    held = tmp_path / "held"
    held.write_bytes(bytes(2**21))
    request = DensityRequest(fifty(), Target(str(held)), parse_service_level(LEVEL))
    with pytest.raises(UsageError, match="--destroy-data"):
        make_plan(request)
    made = make_plan(replace(request, target=Target(str(held), str(held))))
    assert made.rule.most == 2
