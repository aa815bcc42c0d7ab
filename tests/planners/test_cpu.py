"""vCPUs against the worked examples of the sources, brute force, and a recording with a VM of known demand."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from leadline.app.planning import make_plan
from leadline.app.simulating_one import outcome_of
from leadline.core.capture import Capture
from leadline.core.planner import PlanContext
from leadline.faces.cli.main import build_app
from leadline.faces.cli.options import read_paths
from leadline.generators.esxtop import write
from leadline.generators.host_model import HostModel, Shape
from leadline.planners._cpu.packing import Box, packed, spread, stranded
from leadline.planners._cpu.simulated import Loaded, Machine, expected
from leadline.planners.cpu import Cpu, vcpus_at


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
        Box(f"vm{i}", int(v), float(m), 1, "pair" if i < 2 else "")
        for i, (v, m) in enumerate(zip(2 * rng.integers(1, 6, 6), rng.integers(4, 60, 6), strict=True))
    ]
    best = 99
    for hosts in product(range(4), repeat=6):
        if hosts[0] == hosts[1]:
            continue
        held = [[b for b, h in zip(boxes, hosts, strict=True) if h == own] for own in set(hosts)]
        if all(sum(b.vcpus for b in own) <= 12 and sum(b.gib for b in own) <= 96 for own in held):
            best = min(best, len(held))
    placed = packed(boxes, (((12, 96.0),),) * 4)
    assert (placed.hosts_used if placed else 99) == best


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A VM of 24 vCPUs that uses nine cores, ready and co-stop included, for ten minutes."""
    model = HostModel(Shape(vm_count=1, vcpus_per_vm=24, sample_count=120), np.random.default_rng(7))
    model.ready *= 0.1
    model.costop *= 0.1
    model.used *= 100.0 * 9.0 / float(np.quantile(model.used.sum(axis=0), 0.95))
    path = tmp_path_factory.mktemp("capture") / "capture.csv"
    write(model, path)
    return path


def capture_of(path: Path) -> Capture:
    return read_paths([path], quiet=True).capture


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


def test_a_host_with_too_few_cores_shows_in_guest_and_ready() -> None:
    """The agreement above can fail: neighbours that ask for the other cores make vCPUs wait."""
    alone = expected(PlanContext(None, outcome_of), [Loaded(12, 9.0)], Machine(1, 24, threads=False))
    shared = expected(PlanContext(None, outcome_of), [Loaded(12, 9.0)] * 2, Machine(1, 20, threads=False))
    assert alone is not None
    assert shared is not None
    assert alone[0][0].guest_pct == pytest.approx(75.0, rel=0.05)
    assert shared[0][0].guest_pct > 1.1 * 75.0
    assert shared[0][0].ready_pct > alone[0][0].ready_pct


def test_the_command_takes_a_capture(recording: Path) -> None:
    done = CliRunner().invoke(build_app(), ["plan", "cpu", str(recording)])
    assert done.exit_code == 0, done.output
    assert "needs 12 vCPUs, not 24" in " ".join(done.stdout.split())
