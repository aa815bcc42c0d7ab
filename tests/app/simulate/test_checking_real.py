"""Scenarios done for real: on the user-space block layer, and in a guest."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.app.lab.lab import run_lab
from leadline.app.measure.guests import LabPlan
from leadline.app.simulate import checking_lab, checking_loads, checking_real
from leadline.app.simulate.checking_block_layer import RealDisk, served
from leadline.app.simulate.checking_lab import _order
from leadline.app.simulate.checking_real import check_block_layer, plan_check
from leadline.app.simulate.checking_results import CheckPlan, CheckRow, RealCheck
from leadline.app.simulate.simulating import PlannedSimulation, plan_simulation, simulate
from leadline.core.contracts.scenario import Axis
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.system import tools
from leadline.faces.checks import check_cells, check_document, show_check, show_check_plan
from leadline.faces.report.simulation import simulation_page
from leadline.lab.accelerator import Accelerator
from leadline.lab.kernel import Kernel
from leadline.lab.specification import Guest, Lab
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "scenarios"
PAIRS = ((10.0, 30.0), (40.0, 20.0), (80.0, float("nan")))
SHORT = (Axis("timing.warm_up_s", (5,)), Axis("timing.measure_s", (20,)))
DEPTHS = (Axis("vms.db01.adapter_depth", (2, 8)), Axis("hosts.esx01.queue_depth", (2, 8)))
needs_tools = pytest.mark.skipif(
    shutil.which("qemu-storage-daemon") is None or shutil.which("fio") is None, reason="needs QEMU's daemon and fio"
)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checking_loads, "CALIBRATION_COUNTS", (1, 8))
    monkeypatch.setattr(checking_real, "CALIBRATION_S", 1.0)
    monkeypatch.setattr(checking_real, "WARM_UP_S", 1.5)


def checked(store: RunStore, name: str, seconds: float, *axes: Axis) -> RealCheck:
    planned = plan_simulation(EXAMPLES / f"{name}.yaml", [*SHORT, *axes])
    made = plan_check(planned, seconds)
    shares: list[float] = []
    found = check_block_layer(
        made, simulate(planned, store), store, say=lambda _: None, report=lambda share, *_: shares.append(share)
    )
    assert shares == sorted(shares)
    assert 0.0 <= shares[0]
    assert shares[-1] <= 1.0
    return found


def checked_in_guests(made: CheckPlan, planned: PlannedSimulation, store: RunStore) -> RealCheck:
    assert made.guests is not None
    result = run_lab(made.guests, store, say=lambda _: None, done=lambda *_: None)
    return checking_lab.check_guests(made, simulate(planned, store), result)


def row(found: RealCheck, measure: str, entity: str = "db01", variant: int = 0) -> CheckRow:
    rows = [own for own in found.rows if (own.entity, own.measure) == (entity, measure)]
    return rows[variant]


@needs_tools
@pytest.mark.real
def test_an_iops_cap_is_met_by_both(store: RunStore, quick: None, capsys: pytest.CaptureFixture[str]) -> None:
    found = checked(store, "iops-cap", 5.0, Axis("vms.db01.iops_limit", (400,)))
    assert row(found, "iops").measured == pytest.approx(400, rel=0.05)
    assert row(found, "latency_ms_mean").measured == pytest.approx(290, rel=0.1)
    assert abs(row(found, "iops").distance_pct) < 5.0
    assert abs(row(found, "latency_ms_mean").distance_pct) < 10.0
    kept = [store.get(run) for run in found.runs]
    assert [run.state for run in kept] == ["done"] * 3
    assert {run.tool for run in kept} == {"fio"}
    assert kept[-1].pooled()[0].histogram is not None
    show_check(found)
    assert "Simulated beside measured" in capsys.readouterr().out
    document = check_document(found)
    assert document["rows"][0]["distance_pct"] == pytest.approx(row(found, "iops").distance_pct)
    json.dumps(document)


@needs_tools
@pytest.mark.real
def test_what_is_asked_for_shows_the_disk_and_a_hammer_shows_the_limit(store: RunStore, quick: None) -> None:
    found = checked(store, "provisioned-limit-pulses", 4.0, Axis("vms.db01.iops_limit", (500,)))
    asked = checked(
        store,
        "provisioned-limit-pulses",
        4.0,
        Axis("vms.db01.workload.io.io.rate_iops", ({"read": 350, "write": 150},)),
        Axis("vms.db01.iops_limit", (500,)),
    )
    hammered = row(found, "latency_ms_mean")
    assert hammered.measured == pytest.approx(512, rel=0.15)
    assert hammered.simulated == pytest.approx(512, rel=0.02)
    true = row(asked, "latency_ms_mean")
    assert true.measured < hammered.measured / 5
    assert true.simulated < hammered.simulated / 5
    for own in (found, asked):
        assert row(own, "iops").measured == pytest.approx(500, rel=0.07)
        assert row(own, "iops").simulated == pytest.approx(500, rel=0.02)


@needs_tools
@pytest.mark.real
def test_a_capped_neighbour_slows_the_other_end_of_a_copy_but_not_its_requests(store: RunStore, quick: None) -> None:
    found = checked(store, "capped-neighbour", 3.0, Axis("vms.capped01.iops_limit", (None, 100)))
    for entity in ("files01", "capped01"):
        free, capped = (row(found, "iops", entity, n) for n in range(2))
        assert free.measured > 2 * capped.measured
        assert capped.measured == pytest.approx(100, rel=0.1)
        assert abs(capped.distance_pct) < 10.0
    free, capped = (row(found, "latency_ms_mean", "files01", n) for n in range(2))
    assert capped.measured < 2 * free.measured
    assert row(found, "latency_ms_mean", "capped01", 1).measured > 3 * capped.measured
    run = store.get(found.runs[-1])
    assert run.tool == "libnbd"
    assert {part.name for part in run.pooled()} == {"files01/copy read", "capped01/copy write"}


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder with a short name: a socket's path has 107 bytes at most."""
    with tempfile.TemporaryDirectory(prefix="ll-") as name:
        yield Path(name)


@needs_tools
@pytest.mark.real
def test_a_long_path_of_temporary_files_is_no_hindrance(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    far = tmp_path / ("x" * 100)
    far.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)  # asked for anew
    monkeypatch.setenv("TMPDIR", str(far))
    with served([RealDisk("d", None, 1_000_000)], far / "disks") as at:
        path = Path(at["d"].partition("socket=")[2])
        assert path.is_socket()
        assert len(str(path)) <= 107
        assert path.parent.stat().st_mode & 0o777 == 0o700
    assert not path.parent.exists()


@needs_tools
@pytest.mark.real
def test_ctrl_c_ends_what_was_started_and_leaves_nothing(short: Path) -> None:
    code = "from leadline.faces.cli.main import run; run()"
    words = [sys.executable, "-c", code, "simulate", str(EXAMPLES / "capped-neighbour.yaml"), "--check-real"]
    own = {**os.environ, "LEADLINE_HOME": str(short / "home"), "TMPDIR": str(short)}
    process = subprocess.Popen(words, env=own, stderr=subprocess.PIPE, text=True)
    deadline = time.monotonic() + 30.0
    while not list(short.glob("leadline-check-*/nbd.sock")) and time.monotonic() < deadline:
        time.sleep(0.1)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130, error
    assert "Traceback" not in error
    assert "Plan: 2 real runs" in error
    assert list(short.glob("leadline-check-*")) == []
    left = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert f"{short}/leadline-check-" not in left


@pytest.mark.real
@pytest.mark.slow
def test_a_guests_rate_grows_with_its_adapters_depth(store: RunStore, capsys: pytest.CaptureFixture[str]) -> None:
    planned = plan_simulation(EXAMPLES / "adapter-depths.yaml", [*SHORT, Axis("vms.db01.adapter_depth", (2, 8))])
    try:
        made = plan_check(planned, 4.0)
    except LeadlineError as error:
        pytest.skip(f"no lab here: {error}")
    show_check_plan(made)
    assert "guests with the adapters" in capsys.readouterr().err
    found = checked_in_guests(made, planned, store)
    ratio = row(found, "iops_ratio")
    assert ratio.simulated == pytest.approx(4.0, rel=0.02)
    assert ratio.measured == pytest.approx(4.0, rel=0.25)
    assert "db01: 1 of 1 pairs of variants stand in the same order in both" in found.notes


@pytest.mark.real
@pytest.mark.slow
def test_a_hosts_queue_holds_back_what_the_adapter_lets_through(store: RunStore) -> None:
    planned = plan_simulation(EXAMPLES / "guest-and-host-depths.yaml", [*SHORT, *DEPTHS])
    try:
        made = plan_check(planned, 4.0)
    except LeadlineError as error:
        pytest.skip(f"no lab here: {error}")
    found = checked_in_guests(made, planned, store)
    alone, both = (row(found, "iops_ratio", variant=n) for n in (0, 2))
    assert alone.simulated == pytest.approx(1.0, rel=0.02)
    assert alone.measured == pytest.approx(1.0, rel=0.35)
    assert both.simulated == pytest.approx(4.0, rel=0.02)
    assert both.measured == pytest.approx(4.0, rel=0.35)


def _lab_guests(monkeypatch: pytest.MonkeyPatch, planned: PlannedSimulation) -> tuple[list[Guest], CheckPlan]:
    """The guests of a check, whether there can be a lab here or not."""
    kernel = Kernel(Path("vmlinuz"), Path("modules"))
    held: list[Lab] = []

    def made(lab: Lab) -> LabPlan:
        held.append(lab)
        return LabPlan(lab, kernel, Accelerator("tcg", "a test"), tuple(lab.machines()), 0)

    monkeypatch.setattr(checking_lab, "plan_lab", made)
    monkeypatch.setattr(tools, "find_program", lambda _: "/usr/bin/nbdkit")
    plan = plan_check(planned, 4.0)
    return list(held[0].guests), plan


def test_guests_have_the_queues_of_the_scenario(monkeypatch: pytest.MonkeyPatch) -> None:
    guests, plan = _lab_guests(monkeypatch, plan_simulation(EXAMPLES / "guest-and-host-depths.yaml", DEPTHS))
    depths = [(guest.disks[0].queue_depth, guest.host_queue_depth) for guest in guests]
    assert depths == [(2, 2), (2, 8), (8, 2), (8, 8)]
    assert {guest.disks[0].storage_latency for guest in guests} == {0.05}
    assert any("nbdkit" in sentence for sentence in plan.sentences)
    kinds = (Axis("vms.db01.adapter", ("pvscsi", "lsi", "nvme")), Axis("vms.db01.adapter_depth", (None,)))
    guests, plan = _lab_guests(monkeypatch, plan_simulation(EXAMPLES / "adapter-depths.yaml", kinds))
    assert [guest.adapters[0].type for guest in guests] == ["pvscsi", "lsi", "nvme"]
    assert [guest.disks[0].queue_depth for guest in guests] == [64, None, None]
    assert guests[1].adapters[0].module_options == "cmd_per_lun=32"
    assert {(guest.host_queue_depth, guest.disks[0].null_latency) for guest in guests} == {(None, 0.1)}
    assert not any("nbdkit" in sentence for sentence in plan.sentences)


def test_queues_that_cannot_be_made_are_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(tools, "find_program", lambda _: "/usr/bin/nbdkit")
    deep = (Axis("vms.db01.adapter_depth", (32,)), Axis("hosts.esx01.queue_depth", (24,)))
    with pytest.raises(UsageError, match="let 24 requests through"):
        plan_check(plan_simulation(EXAMPLES / "guest-and-host-depths.yaml", deep), 4.0)
    odd = (*DEPTHS, Axis("devices.far.service", (0.0205,)))
    with pytest.raises(UsageError, match="whole milliseconds"):
        plan_check(plan_simulation(EXAMPLES / "guest-and-host-depths.yaml", odd), 4.0)
    text = (EXAMPLES / "iops-cap.yaml").read_text().replace("    workload:", "    trace: one.vscsi\n    workload:")
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="a VM whose load is a trace"):
        plan_check(plan_simulation(path), 4.0)
    monkeypatch.setattr(tools, "find_program", lambda _: None)
    with pytest.raises(ToolError, match="nbdkit: not installed"):
        plan_check(plan_simulation(EXAMPLES / "guest-and-host-depths.yaml", DEPTHS), 4.0)


def test_what_cannot_be_done_for_real_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    many = plan_simulation(EXAMPLES / "iops-cap.yaml", [Axis("seed", tuple(range(13)))])
    with pytest.raises(UsageError, match="at most 12 variants"):
        plan_check(many, 5.0)
    one = plan_simulation(EXAMPLES / "iops-cap.yaml")
    monkeypatch.setattr(tools, "find_program", lambda _: None)
    with pytest.raises(ToolError, match="qemu-storage-daemon: not installed"):
        plan_check(one, 5.0)
    text = (EXAMPLES / "adapter-depths.yaml").read_text().replace("service: 100ms", "curve: [[100, 1ms]]")
    path = tmp_path / "own.yaml"
    path.write_text(text)
    with pytest.raises(UsageError, match="near a device whose service is a constant"):
        plan_check(plan_simulation(path), 5.0)


def test_distances_are_told_or_not_known() -> None:
    assert CheckRow("", "db01", "iops", "per_s", 110.0, 100.0).distance_pct == pytest.approx(10.0)
    nothing = CheckRow("", "db01", "latency_ms_p99", "ms", 1.0, float("nan"))
    assert check_cells(nothing) == ("", "db01", "p99 ms", "1", "-", "-")


def test_a_guest_that_gave_nothing_has_no_order() -> None:
    rows = [
        CheckRow(str(n), "db01", "iops", "per_s", simulated, measured) for n, (simulated, measured) in enumerate(PAIRS)
    ]
    assert _order(rows) == ["db01: 0 of 1 pairs of variants stand in the same order in both"]
    assert _order(rows[::2]) == []


def test_the_page_shows_simulated_beside_measured(store: RunStore) -> None:
    planned = plan_simulation(EXAMPLES / "iops-cap.yaml", [*SHORT])
    found = simulate(planned, store)
    own = RealCheck("block layer", (CheckRow("", "db01", "iops", "per_s", 110.0, 100.0),), ("r1",), (), ("a note",))
    page = simulation_page(planned, found, checked=own)
    assert "Simulated and measured" in page
    assert "+10.0 %" in page
    assert "Simulated and measured" not in simulation_page(planned, found)
