"""A lab's guest as the target of a load: what it is called, what is planned, and what came out in a real guest."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from leadline.app.density.density import DensityRequest, make_plan, run_density
from leadline.app.density.model import CountState, parse_service_level
from leadline.app.density.steps import StepRule
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.lab.results import pooled
from leadline.app.measure.benching import capture_of, plan, run, run_repeated
from leadline.app.measure.comparing_runs import compare_runs
from leadline.app.measure.lab_targets import GuestDriver, named
from leadline.app.measure.workloads import workload_of
from leadline.app.read.importing import import_paths
from leadline.app.sweep.sweeping import SweepWish, plan_sweep, run_sweep
from leadline.core.contracts.benchmark import LoadPlan
from leadline.core.contracts.load_target import Target
from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.model.workload import Workload
from leadline.core.system.cgroups import InstanceLimits
from leadline.lab.folders import labs
from leadline.lab.machine import Machine
from leadline.lab.processes import PID
from leadline.lab.programs import running_in
from leadline.stores.runs import RunStore
from tests.lab.conftest import GUEST, planned

LEADLINE = str(Path(sys.executable).parent / "leadline")
BUSY = 0.6  # the share of a limit that a guest gets at least on a machine that others keep busy
real = pytest.mark.real
slow = pytest.mark.slow
TWO = """
leadline_lab: 1
name: two
guests:
  - name: vm
    count: 2
    memory: 512m
    adapters: [{name: scsi0, type: pvscsi}]
    disks: [{name: data, adapter: scsi0, size: 32m, limits: {iops: 200}}]
    load: {workload: {io: [{oio: 4}]}, disk: data}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "lab.yaml"
    path.write_text(GUEST)
    return path


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "home")


def workload(seconds: float = 3.0, warm_up_s: float = 0.0, **stream: Any) -> Workload:
    return Workload.model_validate(
        {
            "name": "tried",
            "io": [{"block": "4k", "read_pct": 100, "random_pct": 100, **stream}],
            "io_settings": {"working_set": "8m"},
            "timing": {"warm_up_s": warm_up_s, "measure_s": seconds, "rounds": 1},
        }
    )


def borrowed(made: LoadPlan, guest: Machine) -> LoadPlan:
    """A plan in a guest that runs already: booting one takes longer than all the rest."""
    assert isinstance(made.driver, GuestDriver)
    return replace(made, driver=GuestDriver(made.driver.lab_target, made.driver.lab_plan, lambda _: nullcontext(guest)))


def test_a_target_names_guest_and_disk(file: Path, tmp_path: Path) -> None:
    own = named(Target(f"lab:{file}:db/data"))
    assert (own.guest.name, own.disk.name, own.name) == ("db", "data", f"lab:{file}:db/data")
    own = named(Target(f"lab:{file}:db/data", roles={"wal": "wal"}))
    assert (own.disk_of(None).name, own.disk_of("wal").name) == ("data", "wal")
    two = tmp_path / "with:colon.yaml"
    two.write_text(TWO)
    assert named(Target(f"lab:{two}")).name == f"lab:{two}:vm/data"
    assert named(Target(f"lab:{two}:vm")).disk.name == "data"


@pytest.mark.parametrize(
    ("rest", "found", "expected"),
    [
        ("", "no disk", "db/data, db/wal"),
        (":db", "no disk", "db/data"),
        (":db/none", "no disk none", "db/data"),
        (":web/data", "no guests web", "db/data"),
    ],
)
def test_what_a_lab_does_not_have_is_said(file: Path, rest: str, found: str, expected: str) -> None:
    with pytest.raises(UsageError) as told:
        named(Target(f"lab:{file}{rest}"))
    assert found in told.value.found
    assert expected in told.value.expected


def test_no_file_is_said() -> None:
    with pytest.raises(UsageError, match=r"no file none\.yaml"):
        named(Target("lab:none.yaml:db/data"))


def test_what_cannot_run_in_a_guest_is_refused(file: Path) -> None:
    planned(GUEST)  # skips where there can be none
    with pytest.raises(UsageError, match="lab run"):
        plan(workload_of("pgbench"), Target(f"lab:{file}:db/data"))
    large = workload().model_copy(
        update={"io_settings": workload().io_settings.model_copy(update={"working_set": 2**26})}
    )
    with pytest.raises(UsageError, match="working set of 64 MiB"):
        plan(large, Target(f"lab:{file}:db/wal"))
    clauses = parse_service_level("p95<=1s")
    with pytest.raises(UsageError, match="lab file"):
        make_plan(
            DensityRequest(workload(11.0), Target(f"lab:{file}:db/data"), clauses, limits=InstanceLimits(cpus=1.0))
        )


def test_a_plan_says_what_is_booted_and_filled(file: Path) -> None:
    planned(GUEST)
    made = plan(workload(), Target(f"lab:{file}:db/data"))
    assert made.target.name == f"lab:{file}:db/data"
    assert made.read_only  # the lab file says it is filled
    assert made.facts["adapter"] == "pvscsi"
    assert any("data on pvscsi" in note for note in made.notes)
    assert not plan(workload(read_pct=0), Target(f"lab:{file}:db/flash")).read_only
    assert any("never written" in note for note in plan(workload(), Target(f"lab:{file}:db/flash")).notes)
    changed = file.with_name("changed.yaml")
    changed.write_text(GUEST.replace("cmd_per_lun=64", "cmd_per_lun=254"))
    other = plan(workload(), Target(f"lab:{changed}:db/data")).facts
    assert other["guest_settings"] != made.facts["guest_settings"]


@pytest.mark.parametrize(("variable", "status"), [("PATH", 4), ("LEADLINE_LAB_KERNEL", 2)])
def test_a_missing_program_or_kernel_is_one_line(file: Path, tmp_path: Path, variable: str, status: int) -> None:
    planned(GUEST)
    words = [LEADLINE, "bench", "sweep", "hci-4k-read", "--on", f"lab:{file}:db/data", "--yes"]
    (tmp_path / "empty").mkdir()
    env = {**os.environ, variable: str(tmp_path / "empty"), "LEADLINE_HOME": str(tmp_path)}
    done = subprocess.run(words, env=env, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == status
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: ")
    assert "expected" in line


@real
@slow
def test_runs_in_a_guest_are_like_any_other(guest: Machine, file: Path, store: RunStore) -> None:
    made = borrowed(plan(workload(warm_up_s=2.0, oio=8), Target(f"lab:{file}:db/capped")), guest)
    runs = run_repeated(made, store, 2, seed=1)
    for own in runs:
        assert own.state == "done"
        assert (own.tool, own.target) == ("fio", f"lab:{file}:db/capped")
        assert own.tool_version
        assert own.warm_up is not None
        told = {key: own.host[key] for key in ("host", "lab", "guest", "disk", "adapter")}
        assert told == {"host": "db", "lab": "tests", "guest": "db", "disk": "capped", "adapter": "pvscsi"}
        assert own.host["accelerator"] in ("kvm", "tcg")
        assert own.host["kernel"] == guest.channel.run(["uname", "-r"]).text.strip()
        assert BUSY * 100.0 < own.counted_per_s() < 115.0
        assert pooled([own]).mean_ms == pytest.approx(8.0 / own.counted_per_s() * 1000.0, rel=0.2)  # Little's law
        capture = capture_of(own.id, store)
        assert {"linux.txt", "qemu.jsonl"} <= {path.name for path in store.files_of(own.id).iterdir()}
        assert [entity.name for entity in capture.inventory.of_kind(EntityKind.GUEST)] == ["db"]
        assert list(capture.inventory.of_kind(EntityKind.HOST))
    same = compare_runs(runs[:1], runs[1:])
    assert not [text for text in same.unlike if "steady" not in text]
    lsi = run(borrowed(plan(workload(oio=8), Target(f"lab:{file}:db/old")), guest), store, seed=1)
    other = compare_runs(runs[:1], [lsi])
    assert "adapter: pvscsi then lsi" in other.unlike
    assert next(part for part in other.metrics if part.name == "operations").after > 120.0


@real
@slow
def test_a_queue_deeper_than_the_adapter_is_told(guest: Machine, facts: Path, file: Path, store: RunStore) -> None:
    made = borrowed(plan(workload(19.0, oio=96), Target(f"lab:{file}:db/capped")), guest)
    own = run(made, store, seed=1)
    assert BUSY * 100.0 < own.counted_per_s() < 115.0
    found = diagnose(import_paths([store.files_of(own.id) / "linux.txt", facts]).capture)
    assert "guest-pvscsi-queue-depth-default" in {finding.rule for finding in found.findings}


@real
@slow
def test_a_sweep_finds_the_knee_of_a_guest(guest: Machine, file: Path, store: RunStore) -> None:
    wish = SweepWish(loads="2,4,16", target_ms=60.0, percentile="mean", seed=1)
    made = plan_sweep(workload(), Target(f"lab:{file}:db/capped"), wish)
    done = run_sweep(replace(made, load_plan=borrowed(made.load_plan, guest)), store)
    assert done.is_complete
    assert (done.sweep.target, done.sweep.loads) == (f"lab:{file}:db/capped", (2, 4, 16))
    (curve,) = done.curves
    assert [point.load for point in curve.points] == [2, 4, 16]
    for point in curve.points:
        assert BUSY * 100.0 < point.per_s.mean < 115.0
        assert point.mean_ms == pytest.approx(point.load / point.per_s.mean * 1000.0, rel=0.3)  # Little's law
    assert curve.knee is not None
    assert curve.knee.load == 2  # a limit gives no more to more requests
    assert {own.host["guest"] for own in done.runs} == {"db"}


@real
@slow
def test_streams_go_to_their_disks_which_are_filled(guest: Machine, file: Path, store: RunStore) -> None:
    two = Workload.model_validate(
        {
            "name": "both",
            "io": [
                {"name": "data", "block": "8k", "read_pct": 50, "random_pct": 100, "oio": 2},
                {
                    "name": "log",
                    "role": "wal",
                    "block": "8k",
                    "read_pct": 0,
                    "random_pct": 0,
                    "oio": 1,
                    "sync_every": 1,
                },
            ],
            "io_settings": {"working_set": "8m"},
            "timing": {"warm_up_s": 0, "measure_s": 2, "rounds": 1},
        }
    )
    before = guest.blocks()
    target = Target(f"lab:{file}:db/flash", roles={"wal": "wal"})
    own = run(borrowed(plan(two, target), guest), store, seed=1)
    after = guest.blocks()
    written = {name: after[name]["wr_bytes"] - before[name]["wr_bytes"] for name in ("flash", "wal", "data")}
    assert written["flash"] > 8 * 2**20  # a thin disk is filled first
    assert written["wal"] > 8 * 2**20  # as is a file of a file system
    assert written["data"] == 0
    assert {result.job for result in own.rounds[0].results} == {"data", "log"}
    assert "leadline-bench-log.dat" in guest.channel.run(["ls", "/mnt/wal"]).text
    guest.channel.run(["sh", "-c", "rm /mnt/wal/leadline-bench-*"])


@real
@slow
def test_a_failing_load_says_why_and_is_kept(guest: Machine, file: Path, store: RunStore) -> None:
    made = borrowed(plan(workload(), Target(f"lab:{file}:db/data")), guest)
    wrong = replace(made, engine="no-such-engine")
    with pytest.raises(LeadlineError, match="no-such-engine"):
        run(wrong, store, seed=1)
    assert [own.state for own in store.list()] == ["failed"]


@real
@slow
def test_a_program_in_a_guest_is_followed(guest: Machine, tmp_path: Path) -> None:
    out, err = tmp_path / "out", tmp_path / "err"
    with running_in(guest.channel, ["sh", "-c", "echo a; echo b >&2; exit 3"], output=out, talk=err) as program:
        _until(lambda: program.poll() is not None)
        assert program.poll() == 3
    assert (out.read_bytes(), err.read_bytes()) == (b"a\n", b"b\n")
    with running_in(guest.channel, ["sleep", "100"], output=out, talk=err) as program:
        _until(lambda: guest.channel.run(["pidof", "sleep"]).text.strip() != "")
        program.send_signal(signal.SIGTERM)
        _until(lambda: program.poll() is not None)
        assert program.poll() == -signal.SIGTERM
    with running_in(guest.channel, ["sleep", "100"], output=out, talk=err) as program:
        _until(lambda: guest.channel.run(["pidof", "sleep"]).text.strip() != "")
    assert program.poll() == -signal.SIGKILL


def _until(is_so: Any, seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@real
@slow
def test_ctrl_c_ends_the_guest_and_keeps_the_run(tmp_path: Path) -> None:
    planned(TWO)
    (tmp_path / "lab.yaml").write_text(TWO.replace("name: two", "name: ended"))
    words = ["env", "--default-signal=INT", LEADLINE, "bench", "run", "hci-4k-read", "--on", "lab:lab.yaml", "--yes"]
    words += ["--set-size", "16m", "--warm-up", "0", "--seconds", "300", "--rounds", "2"]
    env = {**os.environ, "LEADLINE_HOME": str(tmp_path / "home")}
    with subprocess.Popen(words, cwd=tmp_path, env=env, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            said = []
            for line in process.stderr:
                said.append(line)
                if line.startswith("round 1"):
                    break
            assert said[-1].startswith("round 1"), said
            own = next(lab for lab in labs() if lab.path.name.startswith("ended-"))
            pid = int((own.path / "vm" / PID).read_text().split()[0])
            time.sleep(3.0)
            process.send_signal(signal.SIGINT)
            assert process.wait(30) == 130
            assert not Path(f"/proc/{pid}").exists()
            assert not own.path.exists()
        finally:
            process.kill()
    (kept,) = RunStore(tmp_path / "home").list()
    assert kept.state == "interrupted"
    assert kept.target == "lab:lab.yaml:vm/data"


@real
@slow
def test_density_grows_the_number_of_guests(tmp_path: Path, store: RunStore) -> None:
    planned(TWO)
    path = tmp_path / "lab.yaml"
    path.write_text(TWO)
    asked = workload(11.0, oio=4, rate_iops={"read": 40, "write": 0}, arrivals="even")
    clauses = parse_service_level("p50<=4s, per_s>=0.5 of offered")
    made = make_plan(DensityRequest(asked, Target(f"lab:{path}"), clauses, StepRule(start=1, most=2)))
    assert made.site is not None
    assert made.site.kind == "guests"
    done = run_density(made, store, seed=1)
    assert done.is_done
    assert done.target == f"lab:{path}:vm/data"
    assert [level.count for level in done.by_count] == [1, 2]
    for level in done.by_count:
        assert level.state is CountState.HELD, level
        assert BUSY * 40.0 * level.count < level.per_s.mean < 48.0 * level.count
        own = store.get(level.run)
        assert own.host["guest"] == "vm"
        assert len(own.rounds[0].results) == level.count
        capture = capture_of(own.id, store)
        guests = {entity.name for entity in capture.inventory.of_kind(EntityKind.GUEST)}
        assert guests == {f"vm-{number}" for number in range(1, level.count + 1)}
    assert not [lab for lab in labs() if lab.path.name.startswith("two-")]


@real
@slow
def test_a_guest_that_cannot_be_set_up_is_told_and_removed(tmp_path: Path, store: RunStore) -> None:
    planned(TWO)
    path = tmp_path / "lab.yaml"
    wrong = "memory: 512m\n    prepare: ['echo not so >&2; exit 7']"
    path.write_text(TWO.replace("name: two", "name: broken").replace("memory: 512m", wrong))
    with pytest.raises(ToolError, match=r"guest vm: .*not so"):
        run(plan(workload(), Target(f"lab:{path}")), store)
    assert [own.state for own in store.list()] == ["failed"]
    assert not [lab for lab in labs() if lab.path.name.startswith("broken-")]
