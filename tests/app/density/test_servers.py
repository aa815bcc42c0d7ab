"""Density of servers: a PostgreSQL or MariaDB for each instance, in namespaces and with limits of its own."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.density.density import DensityRequest, make_plan, run_density
from leadline.app.density.model import CountState, parse_service_level
from leadline.app.density.steps import StepRule
from leadline.app.measure.rounds import Talk
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import UsageError
from leadline.core.model.workload import Workload, parse_workload
from leadline.core.system.cgroups import InstanceLimits, find
from leadline.core.system.enclosures import Enclosure, why_not_apart
from leadline.core.system.tools import find_program
from leadline.stores.runs import RunStore

needs_postgresql = pytest.mark.skipif(find_program("initdb") is None, reason="PostgreSQL's server is not installed")
needs_mariadb = pytest.mark.skipif(
    find_program("mariadbd") is None or find_program("sysbench") is None, reason="MariaDB or sysbench is not installed"
)

needs_nginx = pytest.mark.skipif(
    find_program("nginx") is None or find_program("wrk") is None, reason="nginx or wrk is not installed"
)


@pytest.fixture
def on() -> Iterator[Path]:
    """A folder with a short name, which servers run by another user may enter."""
    with tempfile.TemporaryDirectory(prefix="d") as name:
        Path(name).chmod(0o711)
        yield Path(name)


def transactions(rate: float = 20.0, rounds: int = 3, *, tool: str = "pgbench", **database: object) -> Workload:
    """A small database with so many transactions a second."""
    given = {"tool": tool, "scale": 1, "clients": 2, "rate_per_s": rate, **database}
    settings = ", ".join(f"{key}: {value}" for key, value in given.items())
    timing = f"{{warm_up_s: 1, measure_s: 4, rounds: {rounds}}}"
    return parse_workload(f"name: small\ntiming: {timing}\ndatabase: {{{settings}}}\n", "t")


def request_of(
    workload: Workload, on: Path, *, most: int = 2, level: str = "p50<=5s", limits: InstanceLimits | None = None
) -> DensityRequest:
    rule = StepRule(start=1, most=most)
    return DensityRequest(workload, Target(str(on)), parse_service_level(level), rule, limits or InstanceLimits())


@pytest.mark.real
@pytest.mark.slow
@needs_postgresql
def test_every_instance_is_a_server_of_its_own(on: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "home")
    limits = InstanceLimits(cpus=0.5, memory_bytes=512 * 2**20)
    limits = InstanceLimits() if isinstance(find(limits), str) else limits
    seen: list[set[str]] = []

    def look(text: str) -> None:
        if text.startswith("making server"):
            return
        networks = {path.resolve().name for path in Path("/proc").glob("[0-9]*/ns/net") if _is_postgres(path)}
        seen.append(networks - {Path("/proc/self/ns/net").resolve().name})

    level = "p50<=5s, per_s>=0.5 of offered"
    done = run_density(
        make_plan(request_of(transactions(), on, level=level, limits=limits)),
        store,
        seed=1,
        talk=Talk(lambda *_: None, lambda _: None, look),
    )
    assert [(level.count, level.state) for level in done.by_count] == [(1, CountState.HELD), (2, CountState.HELD)]
    two = done.by_count[1]
    assert two.instance_per_s == pytest.approx((20.0, 20.0), rel=0.4)
    assert two.per_s.mean == pytest.approx(sum(two.instance_per_s), rel=0.01)
    run = store.get(two.run)
    # By the tool's own mean: a histogram in other units would be a thousand times off.
    means = [result.operations[0].mean_ms for part in run.rounds for result in part.results]
    assert 0.2 * max(means) < two.median_ms < 20.0 * max(means)
    assert run.tool == "pgbench"
    assert {result.job[:5] for result in run.rounds[0].results} == {"i0001", "i0002"}
    if not why_not_apart():
        assert len(max(seen, key=len)) == 2, "each server has a network of its own"
    assert list(on.iterdir()) == []


def _is_postgres(path: Path) -> bool:
    try:
        words = (path.parents[1] / "cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return words[0].endswith(b"/postgres")


@pytest.mark.real
@pytest.mark.slow
@needs_postgresql
def test_a_server_with_a_tenth_of_a_processor_breaks(on: Path, tmp_path: Path) -> None:
    """Its limit holds the server, not the client: a CPU share far below what the rate needs."""
    limits = InstanceLimits(cpus=0.02)
    if isinstance(find(limits), str):
        pytest.skip("control groups cannot be made here")
    store = RunStore(tmp_path / "home")
    plan = make_plan(
        request_of(transactions(200.0), on, most=1, level="p50<=20ms, per_s>=0.9 of offered", limits=limits)
    )
    done = run_density(plan, store, seed=1)
    assert done.are_limited
    assert done.levels[0].state is CountState.BROKE
    assert done.answer.sentence.startswith("Not even one instance fits")
    assert list(on.iterdir()) == []


@pytest.mark.real
@pytest.mark.slow
@needs_mariadb
def test_sysbench_on_a_mariadb_of_each(on: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "home")
    workload = transactions(10.0, tool="sysbench", engine="mysql", script="oltp_read_write")
    done = run_density(make_plan(request_of(workload, on)), store, seed=1)
    assert [level.state for level in done.by_count] == [CountState.HELD, CountState.HELD]
    assert store.get(done.by_count[1].run).tool == "sysbench"
    assert list(on.iterdir()) == []


@pytest.mark.real
@pytest.mark.slow
@needs_nginx
def test_web_servers_each_in_a_network_of_its_own(on: Path, tmp_path: Path) -> None:
    store = RunStore(tmp_path / "home")
    text = "name: pages\ntiming: {warm_up_s: 1, measure_s: 2, rounds: 3}\nweb: {connections: 2, threads: 1, page: 4k}\n"
    done = run_density(make_plan(request_of(parse_workload(text, "t"), on, level="p50<=2s")), store, seed=1)
    assert [level.state for level in done.by_count] == [CountState.HELD, CountState.HELD]
    run = store.get(done.by_count[1].run)
    assert run.tool == "wrk"
    assert ("nsenter" in run.commands[0][0]) is not bool(why_not_apart())
    assert all(rate > 10.0 for rate in done.by_count[1].instance_per_s)
    assert list(on.iterdir()) == []


def test_two_rounds_are_too_few_to_know_the_spread(on: Path) -> None:
    with pytest.raises(UsageError, match="at least 3: only whole rounds"):
        make_plan(request_of(transactions(rounds=2), on))


def test_servers_are_made_in_folders_alone(on: Path) -> None:
    with pytest.raises(UsageError, match="gets a server of its own"):
        make_plan(request_of(transactions(), on / "none"))


def test_a_path_without_room_for_sockets_is_refused_before_anything_is_made(on: Path) -> None:
    deep = on / ("x" * 60)
    deep.mkdir()
    with pytest.raises(UsageError, match="a long path"):
        make_plan(request_of(transactions(), deep))


def test_a_network_has_no_density(on: Path) -> None:
    network = parse_workload("name: wire\nnetwork: {streams: 1}\n", "t")
    with pytest.raises(UsageError, match="kind network"):
        make_plan(request_of(network, on))


def test_a_server_that_is_not_apart_is_started_as_it_is() -> None:
    assert Enclosure().around(["postgres"]) == ["postgres"]
    assert Enclosure().beside(1, ["wrk"]) == ["wrk"]
    apart = Enclosure(is_apart=True)
    assert apart.around(["postgres", "-D", "x"])[-3:] == ["postgres", "-D", "x"]
    assert "--net" in apart.around(["postgres"])
    assert apart.beside(7, ["wrk"])[:2] == ["nsenter", "--net=/proc/7/ns/net"]
