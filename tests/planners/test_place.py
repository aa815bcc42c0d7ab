"""Placement against the published example, against every plan and every placement tried, and its rules."""

from __future__ import annotations

import numpy as np
import pytest

from benches.bench_plan import estate
from leadline.app.planning import make_plan
from leadline.core.contracts.planner import Plan
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.estate.knowledge.prerequisite_moves import every_plan
from leadline.experiments import sdrs_example
from leadline.planners._place.optimum import by_ortools, exhaustive
from leadline.planners.place import META, MODEL, cluster_of, units_of


def planned(**keys: object) -> Plan:
    return make_plan("place", None, keys).plan


def places(plan: Plan) -> dict[str, object]:
    return {str(row[2]).partition(":")[0]: row[4] for row in plan.sheets[0].rows}


def test_the_published_example() -> None:
    plan = planned(**META.example)
    assert plan.headline == "new goes to datastore1 after 1 move of 100 GiB."
    needed = plan.sheets[-1]
    assert needed.title == "What each would need"
    assert [row[:3] for row in needed.rows] == [
        ("datastore1", 1, 100.0),
        ("datastore2", 2, 150.0),
        ("datastore3", 3, 200.0),
    ]
    first, second = plan.snippets[0].text.splitlines()
    assert first.startswith("Move-VM -VM (Get-VM -Name 'vm11')")
    assert second.startswith("New-VM -Name 'new' -DiskGB 350 -Datastore (Get-Datastore -Name 'datastore1')")


@pytest.mark.parametrize("seed", range(25))
def test_moves_first_copy_as_little_as_any_plan(seed: int) -> None:
    draw = np.random.default_rng(seed)
    held = {f"d{store}": {f"v{store}{row}": float(draw.integers(20, 300)) for row in range(4)} for store in range(3)}
    free = sdrs_example.free_gb(held)
    new = float(round(max(free.values()) + draw.integers(1, 150)))
    best = min(every_plan(held, free, new, 3), default=None)
    plan = planned(
        datastores=[{"name": name, "size_gib": 1000.0} for name in held],
        disks=[
            {"vm": vm, "datastore": name, "size_gib": size} for name, vms in held.items() for vm, size in vms.items()
        ],
        requests=[{"vm": "new", "disks_gib": [new]}],
    )
    assert (plan.infeasible is None) == (best is not None)
    if best is not None:
        assert plan.figure("copied before").value == pytest.approx(best.copied)
        assert plan.figure("moves before").value == best.move_count


def test_close_to_the_optimum_on_small_cases() -> None:
    gaps = []
    for seed in range(12):
        plan = planned(**estate(4, 24, 5, seed, (0.3, 0.6)), is_compared=True)
        gap = plan.figure("above the optimum")
        assert "every placement tried" in gap.arithmetic
        gaps.append(gap.value)
    assert max(gaps) < 15  # type: ignore[operator]
    assert np.mean(gaps) < 3  # type: ignore[arg-type]


@pytest.mark.parametrize("apart", [(), (("new0", "new1", "new2"), ("new3", "vm00000"))])
def test_ortools_finds_what_the_search_of_every_placement_finds(apart: tuple[tuple[str, ...], ...]) -> None:
    pytest.importorskip("ortools", reason="OR-tools is not installed")
    for seed in range(4):
        own = MODEL.model_validate({**estate(4, 24, 5, seed, (0.3, 0.6)), "anti_affinity": apart})
        state = cluster_of(own)
        units = units_of(own, state)
        assert by_ortools(state, units) == pytest.approx(exhaustive(state, units), abs=1e-4)


def test_rules_are_kept_close_to_the_optimum() -> None:
    gaps = []
    for seed in range(12):
        plain = {**estate(4, 24, 5, seed, (0.3, 0.6)), "anti_affinity": [("new0", "new1", "new2")]}
        plan = planned(**plain, is_compared=True)
        where = places(plan)
        assert len({where[name] for name in ("new0", "new1", "new2")}) == 3
        gaps.append(plan.figure("above the optimum").value)
    assert max(gaps) < 15  # type: ignore[operator]
    assert np.mean(gaps) < 3  # type: ignore[arg-type]


def test_no_datastore_goes_beyond_its_threshold() -> None:
    plan = planned(**estate(60, 900, 16, 3, (0.7, 0.79)))
    assert plan.figure("placed").value > 0  # type: ignore[operator]
    assert all(float(row[2]) <= 80.0 for row in plan.sheets[1].rows)


def test_affinity_and_anti_affinity() -> None:
    stores = [{"name": name, "size_gib": 1000.0} for name in "abc"]
    disks = [{"vm": "db01", "datastore": "a", "size_gib": 100.0}]
    together = planned(datastores=stores, disks=disks, requests=[{"kind": "add-disk", "vm": "db01", "disks_gib": [50]}])
    assert places(together) == {"db01": "a"}
    assert "New-HardDisk -VM (Get-VM -Name 'db01') -CapacityGB 50" in together.snippets[0].text
    new = [{"vm": "db02", "disks_gib": [50.0, 60.0]}]
    apart = planned(datastores=stores[:2], disks=disks, requests=new, anti_affinity=[["db01", "db02"]])
    assert places(apart) == {"db02": "b"}
    split = planned(datastores=stores[:2], disks=disks, requests=new, split_vms=["db02"])
    assert {row[4] for row in split.sheets[0].rows} == {"a", "b"}
    none = planned(datastores=stores[:1], disks=disks, requests=new, anti_affinity=[["db01", "db02"]])
    assert none.infeasible is not None
    assert "affinity rules leave no datastore" in none.infeasible.constraint


def test_maintenance_empties_a_datastore_and_a_relocation_leaves_it() -> None:
    stores = [{"name": name, "size_gib": 1000.0} for name in "abc"]
    disks = [{"vm": f"vm{row}", "datastore": "a", "size_gib": 150.0} for row in range(4)]
    disks.append({"vm": "vm0", "name": "Hard disk 2", "datastore": "a", "size_gib": 20.0})
    plan = planned(datastores=stores, disks=disks, requests=[{"kind": "maintenance", "datastore": "a"}])
    assert places(plan).keys() == {f"vm{row}" for row in range(4)}
    assert set(places(plan).values()) == {"b", "c"}
    assert next(row for row in plan.sheets[1].rows if row[0] == "a")[2] == 0.0
    moved = planned(datastores=stores, disks=disks, requests=[{"kind": "relocate", "vm": "vm0"}])
    assert moved.snippets[0].text.startswith("Move-VM -VM (Get-VM -Name 'vm0')")
    clone = planned(datastores=stores, disks=disks, requests=[{"kind": "clone", "vm": "copy", "origin": "vm0"}])
    assert clone.sheets[0].rows[0][5] == 170.0


def test_what_fits_nowhere_says_what_would() -> None:
    plan = planned(
        datastores=[{"name": "a", "size_gib": 1000.0, "used_gib": 700.0}], requests=[{"vm": "n", "disks_gib": [200.0]}]
    )
    assert plan.infeasible is not None
    assert "n: 200 GiB; 100 below 80 % on a" in plan.infeasible.constraint
    assert plan.infeasible.nearest == "100 GiB less of it or more of a, or a threshold of 90.0 %"


def slow_pair(**keys: object) -> Plan:
    stores = [
        {"name": "slow", "size_gib": 1000.0, "samples": [[1.0, 2.0], [5.0, 6.0], [9.0, 10.0]]},
        {"name": "fast", "size_gib": 1000.0, "intercept_ms": 0.5, "slope_ms": 0.1},
    ]
    disks = [{"vm": f"vm{row}", "datastore": "slow", "size_gib": 100.0, "outstanding": 8.0} for row in range(2)]
    return planned(datastores=stores, disks=disks, is_balanced=True, **keys)


def test_balance_follows_the_measured_slope_and_the_cost() -> None:
    plan = slow_pair()
    assert plan.figure("moves for balance").value == 1
    slow = next(row for row in plan.sheets[1].rows if row[0] == "slow")
    assert slow[3:] == (17.0, 9.0)  # 1 + 1 x 16, then 1 + 1 x 8
    # Before 16 x 17; after 8 x 9 + 8 x 1.3; for 16 hours.
    assert plan.sheets[2].rows[0][2] == pytest.approx((16 * 17 - 8 * 9 - 8 * 1.3) * 16 * 3600)
    # 1,024 s of copying with 16 in flight delay 16 operations at 1 ms each for each of them.
    assert plan.sheets[2].rows[0][3] == pytest.approx(1024 * 16 * 16)
    assert slow_pair(horizon_h=0.01).figure("moves for balance").value == 0
    assert slow_pair(latency_threshold_ms=20.0).figure("moves for balance").value == 0


def test_latency_keeps_a_disk_away_and_is_bent_last() -> None:
    stores = [
        {"name": "slow", "size_gib": 9000.0, "intercept_ms": 5.0, "slope_ms": 2.0},
        {"name": "fast", "size_gib": 1000.0, "intercept_ms": 0.5, "slope_ms": 0.1},
    ]
    new = [{"vm": "n", "disks_gib": [300.0], "outstanding": 8.0}]
    assert places(planned(datastores=stores, requests=new)) == {"n": "fast"}
    late = planned(datastores=stores[:1], requests=new)
    assert next(bend.cost for bend in late.bends) == "n on slow: 21.0 ms"


def test_inventory_and_recording_are_read() -> None:
    capture = Capture()
    store = Entity(EntityKind.DATASTORE, "ssd")
    capture.inventory.add(store, "test", capacity_gib=1000.0, free_gib=600.0)
    capture.inventory.add(
        Entity(EntityKind.DATASTORE, "gone"), "test", capacity_gib=9.0, free_gib=9.0, accessible=False
    )
    disk = Entity(EntityKind.VIRTUAL_DISK, "scsi0:0", Entity(EntityKind.VM, "db01"))
    capture.inventory.add(disk, "test", size_gib=400.0, datastore="ssd", label="Hard disk 1")
    times = np.arange(1, 21, dtype=np.int64) * 10**9
    busy = np.linspace(1, 20, 20)
    latency = 1.0 + 0.5 * busy
    capture.groups += [
        SeriesGroup("virtual_disk_outstanding_count", [disk], times, busy[None, :], 1.0),
        SeriesGroup("datastore_latency_ms", [store], times, latency[None, :], 1.0),
        SeriesGroup("datastore_iops", [store], times, (1000 * busy / latency)[None, :], 1.0),
    ]
    plan = make_plan("place", None, {"requests": [{"vm": "n", "disks_gib": [100.0]}]}, capture).plan
    assert plan.sheets[1].rows[0][:3] == ("ssd", 40.0, 50.0)
    level = float(np.quantile(busy, 0.9))
    assert plan.sheets[1].rows[0][3] == pytest.approx(1 + 0.5 * level, abs=0.01)
    assert plan.evidence[0] == "1 datastores and 1 virtual disks of inventory"
    assert "1970-01-01T00:00:01+00:00 to 1970-01-01T00:00:20+00:00" in plan.evidence[1]


def test_local_datastores_take_nothing_and_thresholds_are_the_inventory_s() -> None:
    capture = Capture()
    for name, hosts, free in (("shared", 4, 300.0), ("full", 4, 10.0), ("local", 1, 900.0)):
        store = Entity(EntityKind.DATASTORE, name)
        facts = {"capacity_gib": 1000.0, "free_gib": free, "host_count": hosts, "sdrs_latency_threshold_ms": 10.0}
        capture.inventory.add(store, "test", guessed=False, **facts)
    new = [{"vm": "n", "disks_gib": [50.0]}]
    plan = make_plan("place", None, {"requests": new}, capture).plan
    assert places(plan) == {"n": "shared"}
    assert plan.evidence[1] == "1 datastores are mounted by one host only: nothing is placed on them"
    assert "latency threshold 10 ms" in plan.evidence[-1]
    given = make_plan("place", None, {"requests": new, "latency_threshold_ms": 20.0}, capture).plan
    assert not any("latency threshold" in line for line in given.evidence)
    large = make_plan("place", None, {"requests": [{"vm": "n", "disks_gib": [150.0]}]}, capture).plan
    assert large.infeasible is not None


def test_wrong_inputs_are_one_error() -> None:
    with pytest.raises(UsageError, match="plan: datastores: none"):
        planned()
    with pytest.raises(UsageError, match="x, which is not among datastores"):
        planned(datastores=[{"name": "a", "size_gib": 1.0}], disks=[{"vm": "v", "datastore": "x", "size_gib": 1.0}])
    with pytest.raises(UsageError, match="relocate needs vm"):
        planned(requests=[{"kind": "relocate"}])
    with pytest.raises(UsageError, match="a VM without disks"):
        planned(datastores=[{"name": "a", "size_gib": 1.0}], requests=[{"kind": "relocate", "vm": "q"}])
