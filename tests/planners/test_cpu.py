"""vCPUs against the worked examples of the sources, brute force, and a recording with a VM of known demand."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from leadline.app.measure.simulated import outcome_of
from leadline.app.planning import make_plan
from leadline.app.read.importing import import_paths
from leadline.core.contracts.planner import Plan, PlanContext
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, Inventory
from leadline.core.model.errors import UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.cli.main import build_app
from leadline.generators.esxtop import write
from leadline.generators.host_model import CaptureShape, HostModel
from leadline.planners._cpu.inputs import Cpu
from leadline.planners._cpu.packing import Box, packed, spread, stranded
from leadline.planners._cpu.restart import arranged, clashes
from leadline.planners._cpu.simulated import SimulatedHost, SimulatedVm, expected
from leadline.planners.cpu import vcpus_at
from tests.importers import rvtools_workbook


def answer(**given: object) -> dict[str, object]:
    return {own.name: own.value for own in make_plan("cpu", None, given).plan.figures}


def test_three_times_the_load_on_24_cores_is_24_vcpus() -> None:
    found = answer(used_cores=6.08, load=3.0)
    assert found["vCPUs"] == 24
    assert found["guest use at peak"] == pytest.approx(76.0)
    assert found["threads not counted"] == 24
    assert answer(used_cores=6.08, load=1.0)["vCPUs"] == 8


def test_16_vcpus_are_two_nodes_of_8_and_12_under_128_gib_one() -> None:
    wide = answer(vcpus=16)
    assert (wide["vNUMA nodes"], wide["cores per socket"]) == (2, 8)
    assert answer(vcpus=12, memory_gib=127.0)["vNUMA nodes"] == 1
    assert answer(vcpus=12, memory_gib=129.0)["vNUMA nodes"] == 2
    assert answer(vcpus=12, memory_gib=64.0, socket_nodes=2)["vNUMA nodes"] == 2
    assert answer(vcpus=7)["vCPUs"] == 8


def test_what_fits_no_host_names_what_does() -> None:
    plan = make_plan("cpu", None, {"used_cores": 30.0}).plan
    assert plan.infeasible is not None
    assert plan.infeasible.nearest.startswith("24 vCPUs, which carry 19.2 cores")


def test_growth_beyond_18_months_and_hot_add_are_bent() -> None:
    plan = make_plan("cpu", None, {"load": 3.0, "months": 60, "hot_add": True, "hardware": 19}).plan
    bends = {bend.rule: bend.cost for bend in plan.bends}
    assert f"{vcpus_at(Cpu(load=3.0, months=60), 18)} vCPUs do for 18" in bends["no sizing for year five"]
    assert bends["CPU hot add off"] == "vNUMA is hidden from the guest"


def test_free_cores_in_pieces_restart_no_monster() -> None:
    boxes = [Box("big", 16, 1.0, 2), *(Box(f"small{i}", 8, 1.0, 1) for i in range(4))]
    host = ((12, 64.0), (12, 64.0))
    placed = spread(boxes, (host,) * 3)
    assert placed is not None
    lost = stranded(boxes, placed, placed.hosts[0])
    assert lost == ["big"]  # 2 x 8 cores are free elsewhere, no host has 8 on two nodes
    free = sum(cores for i, own in enumerate(placed.free) if i != placed.hosts[0] for cores, _ in own)
    assert free >= 16


@pytest.mark.parametrize("seed", range(6))
def test_packing_needs_no_more_hosts_than_the_optimum(seed: int) -> None:
    """Against every assignment there is, on hosts of one node."""
    rng = np.random.default_rng(seed)
    boxes = [
        Box(f"vm{i}", int(v), float(m), 1, frozenset({"pair"} if i < 2 else ()))
        for i, (v, m) in enumerate(zip(2 * rng.integers(1, 6, 6), rng.integers(4, 60, 6), strict=True))
    ]
    best = 99
    for hosts in product(range(4), repeat=6):
        if hosts[0] == hosts[1]:
            continue
        held = [[b for b, h in zip(boxes, hosts, strict=True) if h == own] for own in set(hosts)]
        if all(sum(b.cores for b in own) <= 12 and sum(b.gib for b in own) <= 96 for own in held):
            best = min(best, len(held))
    placed = packed(boxes, (((12, 96.0),),) * 4)
    assert (placed.hosts_used if placed else 99) == best


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VM of 24 vCPUs that uses nine cores, ready and co-stop included, for ten minutes."""
    model = HostModel(CaptureShape(vm_count=1, vcpus_per_vm=24, sample_count=120), np.random.default_rng(7))
    model.ready *= 0.1
    model.costop *= 0.1
    model.used *= 100.0 * 9.0 / float(np.quantile(model.used.sum(axis=0), 0.95))
    path = tmp_path_factory.mktemp("capture") / "capture.csv"
    write(model, path)
    return path


def capture_of(path: Path) -> Capture:
    return import_paths([path]).capture


def test_a_vm_of_24_that_uses_nine_gets_12(recording: Path) -> None:
    plan = make_plan("cpu", None, {}, capture_of(recording)).plan
    assert plan.figure("vm001 vCPUs").value == 12
    row = dict(zip(plan.sheets[0].columns, plan.sheets[0].rows[0], strict=True))
    assert row["cores"] == pytest.approx(9.0, rel=0.02)
    assert row["guest % then"] == pytest.approx(75.0, rel=0.02)
    assert row["guest % simulated"] == pytest.approx(row["guest % then"], rel=0.10)
    arithmetic, simulated = (
        own.value for own in plan.figures if own.name.split(" use, ")[-1] in ("by arithmetic", "simulated")
    )
    assert simulated == pytest.approx(arithmetic, rel=0.10)
    assert "p95 of cpu_used_pct" in plan.evidence[0]
    assert "capture.csv" in plan.evidence[0]
    assert "-NumCpu 12 -CoresPerSocket 12" in plan.snippets[0].text


def test_cores_of_storage_are_not_the_vms(recording: Path) -> None:
    free, kept = (make_plan("cpu", None, {"storage_cores": count}, capture_of(recording)).plan for count in (0, 4))
    name = next(own.name for own in free.figures if own.name.endswith("by arithmetic"))
    assert kept.figure(name).arithmetic.endswith("beside 4 of storage")
    assert kept.figure(name).value > free.figure(name).value  # type: ignore[operator]
    simulated = name.replace("by arithmetic", "simulated")
    assert kept.figure(simulated).value == pytest.approx(kept.figure(name).value, rel=0.10)


def test_small_machines_over_nodes_are_not_shown_vnuma() -> None:
    plan = make_plan("cpu", None, {"vcpus": 8, "memory_gib": 200.0}).plan
    assert plan.figure("vNUMA nodes").value == 2
    assert "vNUMA is shown from 9 vCPUs on" in {bend.rule for bend in plan.bends}
    assert "numa.vcpu.min -Value 8" in plan.snippets[0].text
    wide = make_plan("cpu", None, {"vcpus": 16}).plan
    assert "numa.vcpu.min" not in wide.snippets[0].text


def test_a_host_with_too_few_cores_shows_in_guest_and_ready() -> None:
    """The agreement above can fail: neighbours that ask for the other cores make vCPUs wait."""
    alone = expected(PlanContext(None, outcome_of), [SimulatedVm(12, 9.0)], SimulatedHost(1, 24, threads=False))
    shared = expected(PlanContext(None, outcome_of), [SimulatedVm(12, 9.0)] * 2, SimulatedHost(1, 20, threads=False))
    assert alone is not None
    assert shared is not None
    assert alone[0][0].guest_pct == pytest.approx(75.0, rel=0.05)
    assert shared[0][0].guest_pct > 1.1 * 75.0
    assert shared[0][0].ready_pct > alone[0][0].ready_pct


def test_the_command_takes_a_capture(recording: Path) -> None:
    done = CliRunner().invoke(build_app(), ["plan", "cpu", str(recording)])
    assert done.exit_code == 0, done.output
    assert "needs 12 vCPUs, not 24" in " ".join(done.stdout.split())


def estate(*hosts: dict[str, Any], **cluster: Any) -> Capture:
    """A cluster of hosts of two nodes of 12 cores and 128 GiB each; VMs as name, vCPUs, GiB; db... run databases."""
    inventory = Inventory()
    inventory.add(Entity(EntityKind.CLUSTER, "prod"), "site.yaml", **cluster)
    for number, given in enumerate(hosts, start=1):
        host = Entity(EntityKind.HOST, f"esx{number}")
        facts: dict[str, Any] = {"core_count": 24, "socket_count": 2, "numa_node_count": 2, "memory_mib": 256 * 1024}
        facts |= given.get("facts", {})
        inventory.add(host, "site.yaml", cluster="prod", guessed=False, **facts)
        for name, vcpus, gib in given["vms"]:
            vm = inventory.add(Entity(EntityKind.VM, name, host), "site.yaml", vcpu_count=vcpus, memory_mib=gib * 1024)
            if name.startswith("db"):
                inventory.add(Entity(EntityKind.VIRTUAL_DISK, "0", vm), "site.yaml", role="data")
    return Capture(inventory=inventory)


def planned(capture: Capture, **given: object) -> Plan:
    return make_plan("cpu", None, given, capture).plan


def moved(plan: Plan) -> dict[object, object]:
    return {row[0]: row[2] for row in plan.sheets[-1].rows}


def test_free_cores_of_several_hosts_restart_no_monster() -> None:
    small = [("app1", 4, 16.0), ("app2", 4, 16.0)]
    plan = planned(estate({"vms": [("db01", 20, 64.0)]}, {"vms": small}, {"vms": [("app3", 8, 16.0)]}))
    assert plan.figure("prod: VMs that cannot restart, as they lie").arithmetic == "esx1 fails: db01"
    assert plan.sheets[1].rows == (("db01", "esx1", 20.0, 64.0, 2, "16 cores (12 of one node), 224 GiB"),)
    assert plan.infeasible is None
    assert len({host for vm, host in moved(plan).items() if vm != "db01"}) == 1, "one host has to be empty"
    assert plan.snippets[0].text.count("Move-VM") == plan.figure("prod: moves").value == 1
    assert plan.headline == "prod: 1 of 4 VMs cannot restart if their host fails (db01); after 1 move all restart."


def test_without_room_the_constraint_and_the_hosts_missing_are_told() -> None:
    full = [{"vms": [(f"db{host}{row}", 12, 64.0) for row in range(2)]} for host in range(3)]
    plan = planned(estate(*full))
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "prod: VMs count 72.0 cores; without esx1 there are 48.0"
    assert plan.infeasible.nearest == "1 more host like esx1 (2 x 12 cores, 256 GiB)"
    assert plan.figure("prod: VMs that cannot restart, as they lie").value == 6
    memory = planned(estate(*({"vms": [(f"app{host}", 2, 200.0)]} for host in range(3)), {"vms": [("a", 2, 250.0)]}))
    assert memory.infeasible is not None
    assert memory.infeasible.constraint == "prod: VMs count 850.0 GiB; without esx1 there are 768.0"
    wide = planned(estate({"vms": [("db01", 32, 64.0)]}, {"vms": [("app", 2, 2.0)]}))
    assert wide.infeasible is not None
    assert wide.infeasible.constraint.startswith("prod: no empty host holds db01 (32 cores, 64 GiB, 2 nodes)")


def test_vms_count_by_database_by_recording_or_by_vcpus() -> None:
    capture = estate({"vms": [("db01", 8, 16.0), ("app1", 16, 16.0)]}, {"vms": [("app2", 16, 16.0)]})
    vm = Entity(EntityKind.VM, "app2", Entity(EntityKind.HOST, "esx2"))
    times = np.arange(1, 101, dtype=np.int64) * 20 * 10**9
    capture.groups.append(SeriesGroup("cpu_used_pct", [vm], times, np.full((1, 100), 25.0), 20.0))
    capture.sources.append(SourceInfo("week.csv", "test", "esxtop"))
    plan = planned(capture, vcpus_per_core=4.0)
    counted = {row[0]: row[5:] for sheet in plan.sheets[1:] if sheet.columns[-1] == "counted by" for row in sheet.rows}
    assert counted == {
        "db01": (8.0, "database: a core per vCPU"),
        "app1": (4.0, "vCPUs / vcpus_per_core"),
        "app2": (5.0, "peak recorded / target"),  # 4 cores of 16 / 80 %
    }
    assert "app2 uses 4.0 cores at peak and needs 6 vCPUs, not 16." in plan.headline


def test_right_sizing_makes_the_room_that_a_restart_needs() -> None:
    capture = estate({"vms": [("db01", 24, 64.0)]}, {"vms": [("app1", 8, 16.0)]}, {"vms": [("app2", 8, 16.0)]})
    vm = Entity(EntityKind.VM, "db01", Entity(EntityKind.HOST, "esx1"))
    times = np.arange(1, 101, dtype=np.int64) * 20 * 10**9
    capture.groups.append(SeriesGroup("cpu_used_pct", [vm], times, np.full((1, 100), 37.5), 20.0))
    capture.sources.append(SourceInfo("week.csv", "test", "esxtop"))
    plan = planned(capture)
    assert plan.figure("prod: VMs that cannot restart, as they lie").value == 1
    assert plan.figure("prod: VMs that cannot restart, right-sized where they lie").value == 0
    assert plan.figure("prod: moves").value == 0
    assert plan.figure("prod: licences, database by machine").value == 12
    assert plan.headline.endswith("(db01); right-sized, all do.")


def test_pairs_against_anti_affinity_are_told_and_mended() -> None:
    rules = {"replicas": "separate: db01, db02, db03", "web": "together: app1, db01"}
    vms = [("db01", 4, 16.0), ("db02", 4, 16.0), ("db03", 4, 16.0)]
    plan = planned(estate({"vms": vms}, {"vms": [("app1", 2, 8.0)]}, {"vms": []}, {"vms": []}, drs_rules=rules))
    pairs = plan.figure("prod: pairs against anti-affinity")
    assert pairs.value == 3
    assert "db01 and db02 on esx1 (replicas)" in pairs.arithmetic
    where = moved(plan)
    assert len({where[name] for name in ("db01", "db02", "db03")}) == 3
    assert any("keep VMs together are not counted" in line for line in plan.assumptions)
    few = planned(estate({"vms": vms}, {"vms": []}, {"vms": []}, drs_rules=rules))
    assert few.infeasible is not None, "after a failure two of three share one of two hosts"
    assert few.infeasible.nearest.startswith("1 more host like")


def test_hosts_may_differ_and_some_are_not_counted() -> None:
    large = {"core_count": 64, "numa_node_count": 4, "memory_mib": 1024 * 1024}
    capture = estate({"vms": [("db01", 24, 64.0)]}, {"vms": [], "facts": large}, {"vms": [], "facts": large})
    plan = planned(capture)
    assert plan.figure("prod: VMs that cannot restart, as they lie").value == 0
    off = {**large, "maintenance_mode": True}
    two = planned(
        estate({"vms": [("db01", 22, 64.0)]}, {"vms": [("a", 1, 2.0), ("b", 1, 2.0)]}, {"vms": [], "facts": off})
    )
    assert two.figure("prod: VMs that cannot restart, as they lie").arithmetic == "esx1 fails: db01"
    with pytest.raises(UsageError, match="nothing that this planner plans from"):
        planned(estate({"vms": [("db01", 24, 64.0)]}, {"vms": []}, host_count=3))  # half known: not judged
    asked = planned(capture, used_cores=10.0)
    assert asked.headline.startswith("14 vCPUs")


def test_nodes_not_known_are_counted_by_sockets_and_vsan_needs_cores() -> None:
    unknown = {"numa_node_count": None}
    hosts: list[dict[str, Any]] = [{"vms": [(f"app{row}", 2, 8.0)], "facts": unknown} for row in range(2)]
    plan = planned(estate(*hosts, vsan_enabled=True, ha_enabled=False))
    assert any("NUMA nodes of 2 hosts are not known: 1 a socket" in line for line in plan.assumptions)
    assert {bend.rule for bend in plan.bends} == {
        "prod: HA is on",
        "prod: cores of hyperconverged storage are kept free",
    }
    assert "storage_cores: 3" in next(bend.cost for bend in plan.bends if "hyperconverged" in bend.rule)
    kept = planned(estate(*hosts, vsan_enabled=True), storage_cores=4)
    assert not kept.bends
    assert "2 x 10 cores" in str(kept.sheets[0].rows[0][3])


def test_a_workbook_of_rvtools_is_checked(tmp_path: Path) -> None:
    """Two hosts of 48 cores and 767 GiB with 25 VMs of 8 vCPUs and 32 GiB each."""
    capture = capture_of(rvtools_workbook.write(tmp_path / "rvtools.xlsx", rvtools_workbook.estate(50)))
    full = planned(capture)
    assert full.infeasible is not None
    assert full.infeasible.constraint == "prod: VMs count 400.0 cores; without esx000.example.org there are 48.0"
    by_ratio = planned(capture, vcpus_per_core=10.0)
    assert by_ratio.figure("prod: cores counted").arithmetic.startswith("40.0 of VMs by vCPUs / 10 (50); of 96 cores")
    assert by_ratio.infeasible is not None
    assert by_ratio.infeasible.constraint == "prod: VMs count 1,600.0 GiB; without esx000.example.org there are 766.6"
    assert by_ratio.infeasible.nearest == "2 more hosts like esx000.example.org (2 x 24 cores, 767 GiB)"


@pytest.mark.parametrize("seed", range(10))
def test_an_assignment_keeps_rules_and_restarts_whatever_fails(seed: int) -> None:
    rng = np.random.default_rng(seed)
    sizes = rng.choice([1.0, 2.0, 4.0, 12.0, 18.0], 24, p=[0.3, 0.3, 0.2, 0.15, 0.05])
    boxes = [
        Box(f"vm{i}", float(c), 4.0 * float(c), 1 if c <= 16 else 2, frozenset({"rule"} if i < 3 else ()))
        for i, c in enumerate(sizes)
    ]
    empty = tuple(((float(cores), 256.0),) * 2 for cores in (16, 16, 24, 24, 32))
    at = [int(host) for host in rng.integers(0, 5, 24)]
    placed = arranged(boxes, empty, 1, at)
    assert (placed is None) == (sizes.sum() > 160), "without the largest host there are 160 cores"
    if placed is None:
        return
    assert not clashes(boxes, placed.hosts)
    for host, nodes in enumerate(placed.free):
        took = [sum(a - b for (a, _), (b, _) in zip(empty[host], nodes, strict=True))]
        assert took == pytest.approx([sum(b.cores for b, h in zip(boxes, placed.hosts, strict=True) if h == host)])
        assert min(cores for cores, _ in nodes) >= -1e-9
        assert stranded(boxes, placed, host) == []


def test_growth_past_the_cores_of_a_host_is_said() -> None:
    """Times 3 in 12 months is times 5.2 in 18: 40 vCPUs, on hosts of 24 cores."""
    plan = make_plan("cpu", None, {"load": 3.0, "months": 12}).plan
    growth = next(sheet for sheet in plan.sheets if sheet.title.startswith("vCPUs as the load grows"))
    assert growth.rows[-2:] == (("12", 24, "yes"), ("18", 40, "no: 24 cores"))
    costs = {bend.rule: bend.cost for bend in plan.bends}
    said = costs["the machine still fits its host as the load grows"]
    assert said.startswith("from month 13 on; 40 vCPUs in month 18, 24 cores")
    kept = make_plan("cpu", None, {"load": 3.0, "months": 18}).plan
    assert "the machine still fits its host as the load grows" not in {bend.rule for bend in kept.bends}
