"""Easy fleets on paper: sizes, load and paths of the plan, services of a datastore, and workers beside each other."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from leadline.app.fleet.easy_order import (
    PROFILES,
    EasyOrder,
    EasyWish,
    device_paths,
    planned_easy,
    profile_load,
)
from leadline.app.fleet.easy_run import KIND, earlier_easy, easy_report, run_conditions, worker_parts
from leadline.app.fleet.model import FleetPlan, FleetSpec
from leadline.app.fleet.services import NO_ANSWER, NOT_VSAN, service_states
from leadline.app.measure.easy import GIB, Storage
from leadline.app.measure.hosts import Host, HostResult
from leadline.app.measure.kept_runs import begun_run
from leadline.app.measure.workloads import workload_of
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.formats.inventory_file import parse_inventory
from leadline.stores.runs import RunStore
from tests.app.fleet.test_model import OFFER, TEMPLATE

WISH = EasyWish("prod", "ds0", "t")
VSAN = Storage("ds0", "vsan-osa", 3, 3, 1800.0, 1800.0, 1000.0, 800.0, "flash", 2.0, "two copies")
PLAIN = Storage("ds0", "datastore", 3, capacity_gib=1000.0, free_gib=800.0)


def ordered(storage: Storage, **changes: object) -> EasyOrder:
    wish = replace(WISH, **changes)  # type: ignore[arg-type]
    spec = FleetSpec("t", 1, 0, 0, cluster="prod", datastores=("ds0",))
    order = EasyOrder(wish, "ds0 of prod at vc", FleetPlan(spec))
    order.plan = planned_easy(order, storage, OFFER)
    return order


def test_workers_disks_and_paths_are_those_of_the_easy_plan() -> None:
    order = ordered(VSAN)
    assert order.problems == []
    assert order.easy is not None
    assert (len(order.plan.placements), order.plan.spec.disk_count) == (6, 8)
    assert {placed.host.cluster for placed in order.plan.placements} == {"prod"}
    # 800 of 1,000 GiB are free and 120 set apart: up to 80 % that leaves 480 for 48 disks of two copies.
    assert order.plan.spec.disk_bytes == 5 * GIB
    values = {choice.what: choice.value for choice in order.easy.choices}
    assert values["space set apart for the workers"] == "120 GiB"
    assert values["outstanding I/O of each worker"] == "32"
    assert order.paths == tuple(f"/dev/sd{letter}" for letter in "bcdefghi")


@given(st.floats(50, 1e5), st.floats(0, 1), st.floats(1, 4), st.integers(1, 12))
def test_the_whole_fleet_leaves_a_fifth_of_the_capacity(
    capacity: float, free_share: float, overhead: float, workers: int
) -> None:
    storage = replace(PLAIN, capacity_gib=capacity, free_gib=capacity * free_share, overhead=overhead)
    order = ordered(storage, worker_count=workers)
    if order.easy is None:
        assert any("may be used" in problem.found for problem in order.problems)
        return
    each = order.plan.worker_bytes / GIB
    assert capacity * (1 - free_share) + workers * each * overhead <= 0.8 * capacity + 1e-6


def test_a_folder_needs_a_size_and_no_disks() -> None:
    order = ordered(PLAIN, paths=("/srv",))
    assert [problem.found for problem in order.problems] == ["a folder, whose free space is not known"]
    order = ordered(PLAIN, paths=("/srv",), set_bytes=GIB)
    assert (order.problems, order.plan.spec.disk_count) == ([], 0)


@pytest.mark.parametrize(
    ("paths", "set_bytes", "part"),
    [
        (("srv",), GIB, "srv"),
        (("/dev/sdb", "/dev/sdb"), None, "the same path twice"),
        (tuple(f"/dev/sd{letter}" for letter in "bcdefghij"), None, "9 devices, 8 disks are added"),
        (("/dev/sdb",), 100 * GIB, "100.0 GiB on disks of"),
    ],
)
def test_paths_that_cannot_be(paths: tuple[str, ...], set_bytes: int | None, part: str) -> None:
    problems = ordered(PLAIN, paths=paths, set_bytes=set_bytes).problems
    assert any(part in problem.found for problem in problems)


def test_devices_come_after_those_of_the_template() -> None:
    assert device_paths(replace(TEMPLATE, disk_count=2), 2) == ("/dev/sdc", "/dev/sdd")
    assert device_paths(None, 1) == ("/dev/sdb",)


def test_the_outstanding_io_of_a_worker_is_the_same_for_every_profile() -> None:
    order = ordered(VSAN)
    assert order.easy is not None
    for name in PROFILES:
        for path_count in (8, 2, 1):
            load = profile_load(workload_of(name), order.easy, WISH, path_count)
            assert sum(stream.oio * stream.jobs for stream in load.io) * path_count == 32
            assert load.working_set_bytes(load.io[0]) * path_count == order.easy.set_bytes
    other = workload_of("postgresql-io")
    kept = profile_load(other, order.easy, WISH, 8)
    assert [stream.oio for stream in kept.io] == [stream.oio for stream in other.io]


CLUSTER = "leadline_inventory: 1\nclusters: [{name: prod%s}]\ndatastores: [{name: ds0, type: %s}]\n"


def states(vcenter: str, kind: str, own_file: str | None = None) -> list[str]:
    inventory = parse_inventory(CLUSTER % (vcenter, kind), "vcenter")
    fallback = None if own_file is None else parse_inventory(CLUSTER % (own_file, "vsan"), "file")
    return [state.sentence for state in service_states(inventory, "prod", "ds0", fallback)]


def test_services_are_never_off_without_having_been_read() -> None:
    silent = [f"{name}: not known: {NO_ANSWER}" for name in ("deduplication", "compression", "encryption")]
    assert states("", "vsan") == silent
    assert all(sentence.endswith(NOT_VSAN) for sentence in states(", vsan_dedup: false", "nfs"))
    read = states(", vsan_dedup: false, vsan_compression: true", "vsan", ", vsan_dedup: true, vsan_encryption: false")
    assert read == [
        "deduplication: off, as vCenter says",
        "compression: on, as vCenter says",
        "encryption: off, as the inventory says",
    ]


def test_disks_of_a_worker_count_together() -> None:
    def result(name: str, per_s: float, upper_ms: float, error: str | None = None) -> HostResult:
        histogram = Histogram.of([upper_ms - 1], [upper_ms], [100], "ms")
        return HostResult(Host("a", "/dev/sdb", label=name), per_s, histogram, error, per_s * 4096)

    parts = worker_parts(
        [result("w1 /dev/sdb", 100, 2), result("w1 /dev/sdc", 50, 9), result("w2 /dev/sdb", 7, 1, "x")]
    )
    assert [(part.name, part.per_s, part.p95_ms, part.error) for part in parts] == [
        ("w1", 150.0, 8.5, None),
        ("w2", 7.0, 0.5, "x"),
    ]


def test_only_whole_runs_on_the_same_datastore_are_compared_with(tmp_path_factory: pytest.TempPathFactory) -> None:
    store, order = RunStore(tmp_path_factory.mktemp("runs")), ordered(PLAIN)
    days = {"20260101-000000": "done", "20260102-000000": "done", "20260103-000000": "failed"}
    for day, state in days.items():
        for number, end in ((1, "done"), (2, state)):
            run = begun_run("hci-4k-read", {}, seed=1, tool="fio", target=order.target)
            started = f"2026-01-0{day[7]}T00:00:0{number}+00:00"
            store.save(replace(run, id=f"{day}{KIND}ab.{number}-hci-4k-read", state=end, started=started))
    elsewhere = begun_run("hci-4k-read", {}, seed=1, tool="fio", target="other")
    store.save(replace(elsewhere, id=f"20260104-000000{KIND}cd.1-hci-4k-read", state="done"))
    whole = [f"20260101-000000{KIND}ab", f"20260102-000000{KIND}ab"]
    assert earlier_easy(store, order.target) == whole
    assert easy_report(order, store, None).against == whole[-1]
    assert easy_report(order, store, "20260101").against == whole[0]
    assert easy_report(order, store, f"{whole[0]}.1-hci-4k-read").against == whole[0]
    assert easy_report(order, RunStore(tmp_path_factory.mktemp("none")), None).against == ""
    with pytest.raises(UsageError, match="3 easy runs begin so"):
        easy_report(order, store, "2026")
    with pytest.raises(UsageError, match="no such easy run"):
        easy_report(order, store, "nothing")


def test_services_are_conditions_of_a_run() -> None:
    """So that a comparison says when deduplication was switched on in between."""
    order = ordered(PLAIN)
    inventory = parse_inventory(CLUSTER % (", vsan_dedup: true", "vsan"), "vcenter")
    order.services = service_states(inventory, "prod", "ds0")
    assert run_conditions(order)["deduplication"] == "on"
    assert run_conditions(order)["encryption"] == "not known"
