"""Memory against arithmetic by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.app.planning import make_plan
from leadline.app.read.importing import import_paths
from leadline.core.contracts.planner import Plan, PlanContext
from leadline.core.model.capture import Capture, SeriesGroup
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.planners._memory.far import PAGES, VISITS, scenario, tolerable
from leadline.planners._memory.inputs import Memory
from leadline.planners._memory.overcommit import MemoryEstate, infeasible, taken
from leadline.planners.memory import buffers_gib, machine_gib, system_gib
from tests.importers import rvtools_workbook as workbook

CONTEXT = PlanContext(None, outcome_of)
INVENTORY = """\
leadline_inventory: 1
hosts:
  - name: esx01
    cluster: prod
    memory_mib: 262144
    core_count: 24
    numa_node_count: 2
    vms:
      - {name: db01, memory_mib: 65536, memory_reservation_mib: 65536, disks: [{name: "scsi1:0", role: data}]}
      - {name: db02, memory_mib: 65536, disks: [{name: "scsi1:0", role: data}]}
      - {name: app01, memory_mib: 131072}
  - name: esx02
    cluster: prod
    memory_mib: 393216
    core_count: 48
    numa_node_count: 4
    vms:
      - {name: app02, memory_mib: 131072, memory_reservation_mib: 32768}
      - {name: sleeper, memory_mib: 131072, power_state: "off"}
  - {name: esx03, cluster: prod, memory_mib: 393216, maintenance_mode: true}
"""


@pytest.fixture
def estate(tmp_path: Path) -> Capture:
    path = tmp_path / "estate.yaml"
    path.write_text(INVENTORY)
    return import_paths([path]).capture


def planned(capture: Capture | None = None, /, **given: object) -> Plan:
    return make_plan("memory", None, given, capture).plan


def value(plan: Plan, name: str) -> float:
    found = plan.figure(name).value
    assert isinstance(found, int | float)
    return float(found)


def test_the_system_s_part() -> None:
    assert [system_gib(total) for total in (32, 64, 128)] == [8.0, 12.0, 16.0]


@pytest.mark.parametrize("engine", ["postgresql", "sqlserver", "oracle", "intersystems"])
def test_parts_fill_the_machine_and_no_less_would_do(engine: str) -> None:
    own = Memory(engine=engine, working_set_gib=100, sessions=512, session_mib=20, other_gib=2)
    total = machine_gib(own)
    needed = 100 + 10 + 2
    assert total - system_gib(total) >= needed
    assert total - 1 - system_gib(total - 1) < needed
    assert buffers_gib(own, total) == (total / 4 if engine == "postgresql" else 100)


def test_huge_pages_of_48_gib_are_the_catalogues() -> None:
    """48 GiB of 2 MiB are 24,576 pages, and the margin."""
    plan = make_plan("memory", None, {"engine": "oracle", "working_set_gib": 48.0}).plan
    assert plan.figure("huge pages").value == 25_805
    assert "vm.nr_hugepages = 25805" in plan.snippets[1].text


def test_wide_machines_and_full_hosts_are_told() -> None:
    wide = make_plan("memory", None, {"working_set_gib": 300.0, "machines": 1}).plan
    assert wide.figure("NUMA nodes").value == 2
    assert [bend.rule for bend in wide.bends] == ["a machine fits a NUMA node"]
    full = make_plan("memory", None, {"working_set_gib": 300.0, "machines": 4}).plan
    assert full.infeasible is not None
    assert full.infeasible.nearest.startswith("1 machines, or hosts of ")


def test_what_hosts_take_back_by_hand() -> None:
    """100 for VMs on each of two hosts, 40 reserved, 200 of others of which half is active."""
    own = MemoryEstate((100.0, 100.0), 40.0, 200.0, 100.0)
    both = taken(own, 0)
    assert (both.room, both.reclaimed, both.ballooned, both.at_risk) == (160.0, 40.0, 40.0, 0.0)
    one = taken(own, 1)
    assert (one.reclaimed, one.ballooned, one.swapped) == (140.0, 130.0, 10.0)
    assert one.at_risk == 140.0 - 0.75 * 100.0
    assert own.overcommit == pytest.approx(1.2)
    assert taken(MemoryEstate((100.0,), 0.0, 100.0, 100.0), 0).reclaimed == 0.0


@pytest.mark.parametrize("others", [10.0, 96.0, 150.0, 400.0])
def test_active_memory_at_risk_never_exceeds_what_is_active_and_grows_with_failures(others: float) -> None:
    own = MemoryEstate((100.0, 60.0, 80.0), 50.0, others, 0.3 * others)
    risks = [taken(own, failed).at_risk for failed in range(4)]
    assert risks == sorted(risks)
    assert all(risk <= 0.3 * others for risk in risks)
    assert own.up(1) == (60.0, 80.0)


def test_what_would_fit_fits_and_more_does_not() -> None:
    full = planned(others_gib=600.0)
    assert full.infeasible is not None
    assert full.infeasible.nearest == "other VMs of 358 GiB (overcommit 0.64), or 1 host more of 496 GiB"
    assert planned(others_gib=358.0).infeasible is None
    assert planned(others_gib=359.0).infeasible is not None
    assert planned(others_gib=600.0, hosts=3).infeasible is None
    assert [bend.rule for bend in planned(others_gib=358.0).bends] == ["hosts of databases are not overcommitted"]


def test_an_overcommit_given_is_what_comes_out() -> None:
    plan = planned(overcommit=1.3, hosts=4, others_active_pct=10.0)
    assert value(plan, "overcommit") == 1.3
    assert value(plan, "reclaimed") == pytest.approx(0.3 * 4 * 496, abs=0.1)
    assert plan.sheets[0].rows[1][3] == pytest.approx(1.3 * 4 * 496 - 3 * 496, abs=0.1)


def test_reserved_memory_alone_can_be_too_much() -> None:
    found = infeasible(MemoryEstate((100.0, 100.0), 150.0, 0.0, 0.0), 1)
    assert found is not None
    assert found.constraint == "150 GiB reserved on 100 GiB of 2 hosts of which 1 may fail"
    assert found.nearest == "1 host more"
    small = planned(host_gib=10.0)
    assert small.infeasible is not None
    assert small.infeasible.nearest == "hosts of 84 GiB"


def test_hosts_and_vms_of_an_inventory(estate: Capture) -> None:
    plan = planned(estate)
    assert plan.evidence[0].startswith(
        "host_gib 256.0, hosts 2, cores 24, numa_nodes 2: esx01, the smallest of 2 hosts"
    )
    assert "estate.yaml" in plan.evidence[0]
    assert plan.evidence[1].startswith("2 VMs with databases and 2 others that run")
    assert plan.evidence[2] == "what 2 other VMs touch was not recorded: 50 % of their memory"
    usable, reserved, others = 240.0 + 368.0, 2 * 64.0 * 1.01 + 32.0, 128.0 + 96.0
    assert value(plan, "overcommit") == pytest.approx((reserved + others) / usable, abs=1e-3)
    assert value(plan, "reclaimed after a failure") == pytest.approx(others - (240.0 - reserved), abs=0.1)
    assert plan.infeasible is not None
    bend = next(bend for bend in plan.bends if bend.rule == "a database's memory is reserved whole")
    assert bend.cost.startswith("db02: ")


def test_an_rvtools_workbook_is_an_inventory(tmp_path: Path) -> None:
    path = workbook.write(tmp_path / "estate.xlsx", workbook.estate(60))
    plan = planned(import_paths([path]).capture)
    assert plan.evidence[0].startswith("host_gib 766.6, hosts 3, cores 48: ")
    assert plan.evidence[1].startswith("0 VMs with databases and 60 others that run")


def test_inputs_go_over_an_inventory(estate: Capture) -> None:
    more = planned(estate, hosts=3, machines=1)
    assert value(more, "overcommit") == pytest.approx((68 + 2 * 64.64 + 32 + 224) / (3 * 240), abs=1e-3)
    assert value(planned(estate, others_gib=100.0), "overcommit") == pytest.approx((4 * 68 + 100) / 608, abs=1e-3)
    assert value(planned(estate, cores=6, numa_nodes=1), "NUMA nodes") == 2
    with pytest.raises(UsageError, match="cluster test"):
        planned(estate, cluster="test")


def test_several_clusters_need_a_name(estate: Capture) -> None:
    estate.inventory.add(Entity(EntityKind.HOST, "esx09"), "by hand", memory_mib=65536.0, cluster="test")
    with pytest.raises(UsageError, match="several clusters: prod, test"):
        planned(estate)
    assert "hosts 2" in planned(estate, cluster="prod").evidence[0]


def test_what_vms_touch_comes_from_a_recording(estate: Capture) -> None:
    app = next(vm for vm in estate.inventory.of_kind(EntityKind.VM) if vm.name == "app01")
    times = np.arange(20, dtype=np.int64) * 20_000_000_000
    touched = np.full((1, 20), 16384.0)
    touched[0, :2] = np.nan
    estate.groups.append(SeriesGroup("memory_touched_mib", [app], times, touched, 20.0))
    plan = planned(estate)
    assert (
        "p95 of memory_touched_mib of 1 other VMs, 1970-01-01 00:00:00 to 1970-01-01 00:06:20 UTC" in plan.evidence[2]
    )
    active = 16.0 + 64.0 - 32.0
    idle = 224.0 - active
    expected = max(0.0, value(plan, "reclaimed after a failure") - 0.75 * idle)
    assert value(plan, "active at risk after a failure") == pytest.approx(expected, abs=0.1)
    assert plan.infeasible is None or expected > 0


@pytest.mark.parametrize("pattern", ["sequential", "uniform", "zipf", "quicksort", "growing"])
@pytest.mark.parametrize("far", ["rdma", "ssd"])
def test_the_remote_share_is_tolerable_and_one_step_further_is_not(pattern: str, far: str) -> None:
    own = Memory(far=far, pattern=pattern)
    found = tolerable(own, CONTEXT)

    def run(share: int) -> float:
        return outcome_of(scenario(own, share)).measure("program", "slowdown").value

    assert run(found.share_pct) == found.slowdowns[found.share_pct] <= 1.1
    assert run(found.share_pct + 1) == found.beyond
    assert found.beyond is not None
    assert found.beyond > 1.1


@pytest.mark.slow
@pytest.mark.parametrize("pattern", ["uniform", "zipf", "quicksort", "growing"])
def test_more_latency_never_allows_a_larger_share(pattern: str) -> None:
    shares = [
        tolerable(Memory(far="ssd", far_us=far_us, pattern=pattern, tolerable_slowdown=1.2), CONTEXT).share_pct
        for far_us in (0.5, 2.0, 8.0, 30.0, 200.0)
    ]
    assert shares == sorted(shares, reverse=True)
    assert shares[0] > shares[-1]


def test_pages_touched_alike_are_missed_by_the_share_that_is_remote() -> None:
    """Closed form: of all touches but the first of a page, the remote share waits for a read."""
    found = tolerable(Memory(far="ssd", far_us=20.0, pattern="uniform", touch_us=10.0), CONTEXT)
    for share in (10, 50, 90):
        expected = 1.0 + share / 100.0 * 20.0 / 10.0 * VISITS / (1 + VISITS)
        assert found.slowdowns[share] == pytest.approx(expected, rel=0.02)
    assert VISITS * PAGES > 100_000  # touches enough for that


def test_a_loop_tolerates_nothing_remote_and_the_answer_says_why() -> None:
    plan = planned(far="rdma", pattern="sequential")
    assert value(plan, "remote share") == 0
    assert plan.figure("remote share").arithmetic == "1 % takes 1.28572 times as long already, tolerable are 1.1 times"
    assert value(plan, "local memory") == value(plan, "machine")
    assert all(snippet.tool != "cgroup" for snippet in plan.snippets)


def test_all_but_a_window_of_pages_may_be_remote_when_anything_is_tolerable() -> None:
    plan = planned(far="rdma", far_us=0.1, tolerable_slowdown=10.0)
    assert value(plan, "remote share") == 99
    assert "slowdown one step further" not in [figure.name for figure in plan.figures]


def test_a_share_that_is_tolerable_is_shown_with_its_curve_and_costs() -> None:
    plan = planned(far="ssd", tolerable_slowdown=1.5)
    assert plan.headline.endswith(f" {value(plan, 'remote share'):.0f} % of a machine may be remote.")
    assert value(plan, "remote memory") + value(plan, "local memory") == value(plan, "machine")
    curve, limit = plan.pictures[0].curves
    assert list(curve.y) == sorted(curve.y)
    assert curve.x[0] == 0.0
    assert curve.y[0] == pytest.approx(1.0)
    assert limit.y == (1.5, 1.5)
    assert "a database's memory is reserved whole" in [bend.rule for bend in plan.bends]
    assert {"cgroup", "powercli"} <= {snippet.tool for snippet in plan.snippets}
    assert planned().pictures == ()  # only when asked for


def test_persistent_memory_is_counted_in_modules_of_a_host() -> None:
    """Four machines of 300 GiB on two hosts, one may fail: 1,200 GiB on one, 10 modules of 128."""
    plan = planned(persistent="optane", persistent_gib=300.0, machines=4, hosts=2, spare_hosts=1)
    assert value(plan, "persistent memory of a host") == 1200
    assert value(plan, "persistent modules of a host") == 10
    larger = planned(persistent="optane", persistent_gib=600.0, machines=4, hosts=2, spare_hosts=1)
    assert value(larger, "persistent modules of a host") == 10  # of 256 GiB, as 19 of 128 have no slots
    assert "a host holds the persistent memory" not in [bend.rule for bend in larger.bends]
    assert {row[0]: row[1] for row in plan.sheets[1].rows}["transactions per minute, Oracle"] == "1.28 times"


def test_persistent_memory_beyond_a_host_is_a_bend() -> None:
    plan = planned(persistent="optane", persistent_gib=1600.0, machines=4, hosts=2, spare_hosts=1)
    cost = next(bend.cost for bend in plan.bends if bend.rule == "a host holds the persistent memory")
    assert cost == "6,400 GiB, 6,144 at most: more hosts, or less of each machine"
    small = planned(persistent="nvdimm-n", persistent_gib=64.0, machines=4, hosts=2, spare_hosts=1)
    cost = next(bend.cost for bend in small.bends if bend.rule == "a host holds the persistent memory")
    assert cost == "16 modules, 12 slots beside DRAM"


def test_limits_of_persistent_memory_say_when_each_holds() -> None:
    bends = {bend.rule: bend.cost for bend in planned(persistent="optane").bends}
    assert "2022" in bends["hardware can be bought"]
    assert "9.0" in bends["the hypervisor goes on supporting it"]
    assert "7.0 U3" in bends["a VM has snapshots"]
    assert "hosts with free PMem" in bends["a VM moves to every host"]
    assert "empty NVDIMM" in bends["HA restarts a VM with its data"]


def test_without_persistent_memory_nothing_is_said_of_it() -> None:
    plan = planned()
    assert not [figure for figure in plan.figures if "persistent" in figure.name]
    assert not [bend for bend in plan.bends if bend.rule == "hardware can be bought"]
    assert len(plan.sheets) == 1
