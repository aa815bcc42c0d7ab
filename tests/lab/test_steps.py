"""Steps during a load: what a file may ask for, snapshots of a working guest, and the phases a load is told by."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
import yaml

from leadline.app.lab.lab import run_lab
from leadline.app.lab.results import outcome
from leadline.app.measure.guests import GuestRun, LabResult, plan_lab
from leadline.core.model.errors import InputError, ToolError
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import Round, Run
from leadline.faces.labs import accelerators, lab_document
from leadline.faces.report.lab import lab_page
from leadline.lab.accelerator import Accelerator
from leadline.lab.counters import Moved
from leadline.lab.file_systems import IN_MEMORY, file_system_of
from leadline.lab.hardware import chain, layer_image
from leadline.lab.machine import Machine
from leadline.lab.snapshots import Snapshots
from leadline.lab.specification import LabDisk
from leadline.stores.runs import RunStore
from tests.lab.conftest import lab_of, planned

LAB = """
leadline_lab: 1
name: steps
guests:
  - name: db
    memory: 384m
    adapters: [{name: s, type: pvscsi}]
    disks: [{name: data, adapter: s, size: 32m, format: qcow2}]
    load:
      command: dd if=/dev/urandom of=$data bs=64k count=64 oflag=direct 2>/dev/null
      seconds: 16
      disk: data
steps:
  - {at_s: 4, guest: db, do: snapshot, disk: data, phase: snapshot}
  - {at_s: 8, guest: db, do: consolidate, disk: data, phase: merge, then: after}
"""
COMMAND = {"at_s": 1, "guest": "db", "do": "command", "phase": "copy", "command": "true", "for_s": 2}


@pytest.mark.parametrize(
    ("step", "said"),
    [
        ({"guest": "other"}, "other is not there"),
        ({"disk": "wal"}, "wal is not there"),
        ({"at_s": 16}, "after the end of the load"),
        ({"disk": None}, "snapshot needs disk"),
        ({"speed": "1m"}, "snapshot has no speed"),
        ({"then": "after"}, "over at once"),
        ({"do": "merge"}, "Input should be"),
        ({"do": "consolidate", "count": 2}, "consolidate has no count"),
        ({**COMMAND, "disk": "data"}, "command has no disk"),
        ({**COMMAND, "disk": None, "for_s": None}, "command needs for_s"),
    ],
)
def test_a_step_that_cannot_be_is_told_with_its_line(step: dict[str, object], said: str) -> None:
    plain = yaml.safe_load(LAB)
    plain["steps"][0] |= step
    with pytest.raises(InputError, match=said) as caught:
        lab_of(yaml.safe_dump(plain, sort_keys=False))
    assert caught.value.where.startswith("lab.yaml:")


def test_steps_need_a_load_by_command() -> None:
    plain = yaml.safe_load(LAB)
    plain["guests"][0]["load"] = {"workload": {"io": [{"oio": 1}]}, "disk": "data"}
    with pytest.raises(InputError, match="no load by command"):
        lab_of(yaml.safe_dump(plain))


def test_storage_with_a_latency_of_its_own_has_no_snapshots() -> None:
    plain = yaml.safe_load(LAB)
    plain["guests"][0]["disks"][0]["storage_latency"] = "5ms"
    with pytest.raises(InputError, match="it has no snapshots"):
        lab_of(yaml.safe_dump(plain))
    plain["guests"][0]["disks"][0]["overlays"] = 1
    with pytest.raises(InputError, match="it has no overlays"):
        lab_of(yaml.safe_dump(plain))


def test_phases_in_their_order() -> None:
    lab = lab_of(LAB)
    assert lab.phases() == ["before", "snapshot", "merge", "after"]
    assert lab.cases() == [{"phase": phase} for phase in lab.phases()]
    plain = yaml.safe_load(LAB)
    plain["steps"] = [{**COMMAND, "at_s": 0}, COMMAND]
    assert lab_of(yaml.safe_dump(plain)).phases() == ["copy"]


def test_every_file_of_a_chain_stands_on_the_storage() -> None:
    disk = LabDisk.model_validate(
        {"name": "d", "adapter": "s", "size": "8m", "overlays": 2, "storage": {"iops": 9}, "limits": {"iops": 5}}
    )
    node = chain(disk, Path("/images/d-000002.qcow2"), direct=True)
    assert (node["driver"], node["throttle-group"]) == ("throttle", "limit-d")
    seen = []
    node = node["file"]
    while node is not None:
        seen.append((node["driver"], node["file"]["throttle-group"], Path(node["file"]["file"]["filename"]).name))
        node = node.get("backing")
    assert seen == [
        ("qcow2", "storage-d", "d-000002.qcow2"),
        ("qcow2", "storage-d", "d-000001.qcow2"),
        ("raw", "storage-d", "d.raw"),
    ]


def _run(number: int, rates: dict[str, float], means_ms: dict[str, float]) -> Run:
    rounds = tuple(
        Round(
            name, (Result("qemu", "data", (Operation("read", rate, rate, rate, {"mean": means_ms[name]}),), 1.0),), ()
        )
        for name, rate in rates.items()
    )
    return Run(f"run-{number}", "steps", "done", "command", "data", "2026-01-01T00:00:00+00:00", 1, {}, rounds=rounds)


def _result(runs: list[Run], notes: tuple[str, ...] = ()) -> LabResult:
    lab = lab_of(LAB).model_copy(update={"repeats": len(runs)})
    moves = tuple(Moved("db", phase, 2.0, (2**20, 2**21), (2**22, 2**23)) for phase in ("before", "merge"))
    loads = tuple(GuestRun("db", {}, number, run, moved=moves) for number, run in enumerate(runs, 1))
    tcg = Accelerator("tcg", "no KVM")
    return LabResult(lab, tcg, {"db": 9.0}, loads, notes, {"db": tcg})


def test_phases_are_compared_with_the_first_and_with_the_one_before(tmp_path: Path) -> None:
    means = {"before": 2.0, "snapshot": 2.0, "merge": 20.0, "after": 2.0}
    runs = [
        _run(number, dict(zip(means, (100.0 + number, 100.0 - number, 50.0 + number, 100.0), strict=True)), means)
        for number in range(3)
    ]
    found = outcome(_result(runs), RunStore(tmp_path))
    assert [row.per_s for row in found.rows] == [101.0, 99.0, 51.0, 100.0]
    shown = {(change.earlier, change.variant["phase"]): change for change in found.changes}
    assert set(shown) == {
        ("before", "snapshot"),
        ("before", "merge"),
        ("snapshot", "merge"),
        ("before", "after"),
        ("merge", "after"),
    }
    merge = shown["before", "merge"]
    assert merge.latency[0] == pytest.approx(10.0)
    assert merge.operations[0] == pytest.approx(0.505, abs=0.002)
    assert "0.505 times" in merge.sentence
    assert "(fewer)" in merge.sentence
    assert "(longer)" in merge.sentence
    assert "(no difference shown)" in shown["before", "after"].sentence
    assert found.moved[1].sentence == (
        "db, merge, 2.0 s: the guest read 1.0 and wrote 2.0 MiB, its hypervisor 4.0 and 8.0 MiB of the storage below."
    )
    page = lab_page(found)
    assert "as against before" in page
    assert "By tcg: no KVM." in page


def test_one_repeat_has_no_interval_and_an_idle_phase_no_comparison(tmp_path: Path) -> None:
    rates = {"before": 100.0, "snapshot": 0.0, "merge": 50.0, "after": 100.0}
    means = {"before": 2.0, "snapshot": float("nan"), "merge": 4.0, "after": 2.0}
    found = outcome(_result([_run(1, rates, means)]), RunStore(tmp_path))
    assert [(change.earlier, change.variant["phase"]) for change in found.changes] == [
        ("before", "merge"),
        ("before", "after"),
        ("merge", "after"),
    ]
    assert all("too few repeats" in change.sentence for change in found.changes)


@pytest.mark.real
def test_a_guest_that_needs_kvm_is_left_out_where_there_is_none(monkeypatch: pytest.MonkeyPatch) -> None:
    planned(LAB)  # skips where there can be no lab
    asked = "leadline.app.measure.guests.accelerator"
    monkeypatch.setattr(asked, lambda _: Accelerator("tcg", "it opens and never boots"))
    plain = yaml.safe_load(LAB)
    plain["guests"] += [{**plain["guests"][0], "name": "fast", "accelerator": "kvm"}]
    made = plan_lab(lab_of(yaml.safe_dump(plain)))
    assert [guest.name for guest in made.machines] == ["db"]
    (said,) = made.left_out
    assert said.startswith("fast: not run")
    assert "it opens and never boots" in said
    assert said.endswith("this result is no comparison")
    plain["guests"] = plain["guests"][1:]
    plain["steps"] = []
    with pytest.raises(ToolError, match="no KVM"):
        plan_lab(lab_of(yaml.safe_dump(plain)))
    monkeypatch.setattr(asked, lambda _: Accelerator("kvm", "a guest booted with it"))
    plain["guests"] += [{**plain["guests"][0], "name": "slow", "accelerator": "tcg"}]
    made = plan_lab(lab_of(yaml.safe_dump(plain)))
    assert [made.accelerator_of(guest).name for guest in made.machines] == ["kvm", "tcg"]
    assert made.left_out == ()


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("name", ["fast", "capped"])
def test_snapshots_of_a_working_guest_lose_nothing(guest: Machine, name: str) -> None:
    disk = next(disk for disk in guest.guest.disks if disk.name == name)
    device = guest.device_of(name)

    def sh(script: str) -> str:
        answer = guest.channel.run(["sh", "-c", script], timeout_s=120.0)
        assert answer.status == 0, answer.err
        return answer.text.strip()

    def write(seek_mib: int) -> None:
        sh(f"dd if=/dev/urandom of={device} bs=1M count=2 seek={seek_mib} oflag=direct 2>/dev/null")

    def contents() -> str:
        return sh(f"dd if={device} bs=1M iflag=direct 2>/dev/null | md5sum")

    snapshots = Snapshots(guest, disk)
    write(0)
    snapshots.take()
    write(1)
    write(5)
    held = contents()
    image = layer_image(disk, disk.overlays + 1, guest.files.folder)
    assert image.stat().st_size > 4 * 2**20  # what was written since the snapshot is in its file
    assert snapshots.consolidate() >= 4 * 2**20
    assert not image.exists()
    assert snapshots.count == 0
    assert contents() == held
    snapshots.restore()
    assert snapshots.count == disk.overlays
    write(3)
    assert contents() != held


@pytest.mark.real
@pytest.mark.slow
def test_a_load_is_told_by_the_phases_its_steps_mark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = planned(
        LAB + "  - {at_s: 12, guest: db, do: command, phase: copy, for_s: 3, command: 'sleep 60 | sleep 60'}\n"
    )
    store = RunStore(tmp_path / "home")
    with tempfile.TemporaryDirectory(prefix="ll") as short:  # sockets must have short names
        monkeypatch.setattr("leadline.lab.folders.cache_folder", lambda: Path(short))
        result = run_lab(made, store, say=lambda _: None, done=lambda _, __: None)
    (load,) = result.loads
    assert load.error is None
    assert load.run is not None
    kept = store.get(load.run.id)
    assert [part.label for part in kept.rounds] == ["before", "snapshot", "merge", "after", "copy"]
    assert any("consolidate at 8" in note for note in kept.notes)
    found = outcome(result, store)
    assert [row.variant["phase"] for row in found.rows] == result.lab.phases()
    assert all(row.per_s > 0 and row.mean_ms > 0 and row.percentiles_ms["p50"] > 0 for row in found.rows)
    for moved in found.moved:
        assert moved.asked_bytes[1] > 0
    merge = next(moved for moved in found.moved if moved.phase == "merge")
    if file_system_of(Path(tempfile.gettempdir())) in IN_MEMORY:
        assert "is not measured" in merge.sentence
    else:
        assert merge.storage_bytes[1] >= 4 * 2**20 or "cannot bypass" in " ".join(result.notes)
    pairs = [(change.earlier, change.variant["phase"]) for change in found.changes]
    assert ("before", "merge") in pairs
    assert ("snapshot", "merge") in pairs
    plain = lab_document(found)
    assert len(plain["sentences"]) == len(found.changes) + len(found.moved)
    assert accelerators(found)[0].startswith(f"{made.accelerator.name}: ")
