"""`leadline bench fleet` as a user sees it: a real vCenter API, real fio load, failures, Ctrl-C and kill -9."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.app.fleet.file import read_fleet
from leadline.app.fleet.fleet import FleetTalk, run_fleet
from leadline.app.fleet.model import MARK
from leadline.app.fleet.order import prepare
from leadline.core.system.secret import Secret
from leadline.estate.knowledge.vcenter_session import kind
from leadline.stores.fleets import FleetStore
from leadline.stores.runs import RunStore
from tests.command_line import BIN, leadline
from tests.fleets import SECRET, Estate, estate, needs_simulator, until

THERE = {"fio-template", "DC0_C0_RP0_VM1", "DC0_H0_VM0", "DC0_H0_VM1"}  # what the simulator has from its beginning

pytestmark = needs_simulator


def environment(home: Path, secret: str | None) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if key != "LEADLINE_PASSWORD"}
    return {**own, "LEADLINE_HOME": str(home / "home")} | ({} if secret is None else {"LEADLINE_PASSWORD": secret})


def fleet(own: Estate, *words: str, secret: str | None = SECRET) -> subprocess.CompletedProcess[str]:
    done = leadline("bench", "fleet", *words, cwd=own.folder, env=environment(own.folder, secret))
    assert "Traceback" not in done.stderr
    assert_no_secret(own, done.stdout + done.stderr)
    return done


def assert_no_secret(own: Estate, talk: str) -> None:
    """Neither in what was said nor in any file that was written."""
    assert SECRET not in talk
    for path in own.folder.rglob("*"):
        if path.is_file() and path.name != "password.txt":
            assert SECRET.encode() not in path.read_bytes(), path


def started(own: Estate, file: Path, said: str) -> subprocess.Popen[str]:
    """A run that has said something."""
    log = own.folder / "talk.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(
            ["env", "--default-signal=INT", BIN, "bench", "fleet", file, "--yes"],
            stdout=subprocess.DEVNULL,
            stderr=stream,
            text=True,
            cwd=own.folder,
            env=environment(own.folder, SECRET),
        )
    until(lambda: said in log.read_text() or process.poll() is not None)
    assert process.poll() is None, log.read_text()
    return process


def journals(own: Estate) -> list[str]:
    return [path.stem for path in (own.folder / "home" / "fleets").glob("*.json")]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """For tests that make nothing."""
    with estate(tmp_path_factory.mktemp("fleet"), workers=1) as own:
        yield own


def test_workers_are_made_loaded_and_removed(tmp_path: Path) -> None:
    with estate(tmp_path) as own:
        done = fleet(own, str(own.file()), "--yes", "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert found["schema"] == "leadline.bench-fleet/1"
        assert [(one["worker"], one["error"]) for one in found["workers"]] == [
            ("leadline-01", None),
            ("leadline-02", None),
        ]
        assert {one["address"] for one in found["workers"]} == {f"127.0.0.{n},{own.fio_port}" for n in (2, 3)}
        assert found["per_s"] == pytest.approx(sum(one["per_s"] for one in found["workers"]))
        assert found["percentiles_ms"]["p95"] > 0
        assert (found["failed"], found["left"]) == ({}, {})
        assert own.names() == THERE
        assert journals(own) == []
        assert not any(path.is_file() for number in (1, 2) for path in (tmp_path / f"worker-{number}").iterdir())
        shown = RunStore(tmp_path / "home").get(found["run"])
        assert (shown.state, [result.job for result in shown.rounds[0].results]) == (
            "done",
            ["leadline-01", "leadline-02"],
        )
        assert any("leadline-02 on " in note for note in shown.notes)


def test_a_worker_has_its_disks_mark_and_place(tmp_path: Path) -> None:
    """Four disks on the three buses the template leaves free, seen while the workers are there."""
    seen: dict[str, Any] = {}
    with estate(tmp_path) as own:

        def look(name: str, state: str) -> None:
            if state == "loading" and name not in seen:
                seen[name] = own.machine(name)

        file = read_fleet(own.file(count=2))
        found = prepare(file, tmp_path, lambda: Secret(SECRET))
        assert found.problems == []
        assert found.access is not None
        assert found.load is not None
        done = run_fleet(
            found.plan, found.access, found.load, FleetTalk(lambda _: None, look), RunStore(tmp_path / "runs")
        )
    assert sorted(seen) == ["leadline-01", "leadline-02"]
    assert len({own.host.name for own in found.plan.placements}) == 2
    for number, (_, machine) in enumerate(sorted(seen.items())):
        config = machine["config"]
        assert {one.key: one.value for one in config.extraConfig}[MARK] == done.id
        kinds = {one.key: kind(one) for one in config.hardware.device}
        disks = [one for one in config.hardware.device if kinds[one.key] == "VirtualDisk"]
        added = [one for one in disks if kinds[one.controllerKey] == "ParaVirtualSCSIController"]
        by_controller = sorted(
            sum(one.controllerKey == key for one in added) for key in {d.controllerKey for d in added}
        )
        assert by_controller[-3:] == [1, 1, 2]
        assert all(one.capacityInKB == 1024**2 for one in added[-4:])
        assert all(one.backing.fileName.startswith(f"[LocalDS_{number}]") for one in added[-4:])


def test_everything_that_speaks_against_it_is_told_at_once(tmp_path: Path) -> None:
    wrong = ("-maintenance", "DC0_C0_H0", "-isolated", "DC0_C0_H1", "-unattached", "LocalDS_2", "-free-gib", "210")
    denied = ("-deny", "VirtualMachine.Inventory.Delete,Datastore.AllocateSpace", "-no-tools")
    with estate(tmp_path, *wrong, *denied, workers=1) as own:
        place = {"datastores": ["LocalDS_0", "LocalDS_2", "nowhere"], "hosts": ["DC0_C0_H0", "DC0_C0_H1", "DC0_C0_H9"]}
        file = own.file(place=place, count=3, load__paths=["/dev/sdb", "srv"], load__working_set="2g", disks__size="1g")
        done = fleet(own, str(file), "--yes", "--json")
        assert done.returncode == 2
        found = {one["where"]: one["found"] for one in json.loads(done.stdout)["problems"]}
        assert set(found) == {
            "load.paths",
            "load.working_set",
            "template fio-template",
            "host DC0_C0_H0",
            "host DC0_C0_H9",
            "datastore LocalDS_0",
            "datastore LocalDS_2",
            "datastore nowhere",
            "network DC0_DVPG0",
            "privileges on folder vm",
            "privileges on datastore LocalDS_0",
        }
        assert found["host DC0_C0_H0"] == "in maintenance mode"
        assert found["template fio-template"] == "no VMware Tools"
        assert "10.0 GiB may be used" in found["datastore LocalDS_0"]
        assert found["privileges on folder vm"] == "missing VirtualMachine.Inventory.Delete"
        text = fleet(own, str(file), "--yes")
        assert "11 problems; expected none. Nothing was made." in text.stderr
        assert max(map(len, text.stderr.splitlines())) <= 80
        assert own.names() == THERE


def test_a_refused_login_is_told_with_the_rest(healthy: Estate) -> None:
    file = healthy.file(load__workload="no-such-load")
    done = fleet(healthy, str(file), "--yes", "--json", secret="another-" + SECRET[:6])
    assert done.returncode == 4
    assert "another-" not in done.stdout + done.stderr
    found = [one["found"] for one in json.loads(done.stdout)["problems"]]
    assert any("the login of bench was refused" in one for one in found)
    assert any("no shipped workload" in one for one in found)


@pytest.mark.parametrize("secret", [None, ""])
def test_no_password_and_nobody_to_ask(healthy: Estate, secret: str | None) -> None:
    done = fleet(healthy, str(healthy.file()), "--yes", secret=secret)
    assert done.returncode == 2
    assert "LEADLINE_PASSWORD" in done.stderr


def test_the_password_may_come_from_a_file(healthy: Estate) -> None:
    for words, key in ((("--password-file", "password.txt"), {}), ((), {"vcenter__password_file": "password.txt"})):
        done = fleet(healthy, str(healthy.file(**key)), "--dry-run", *words, secret=None)
        assert done.returncode == 0, done.stderr
    done = fleet(healthy, str(healthy.file()), "--dry-run", "--password-file", "nowhere.txt")
    assert done.returncode == 2
    assert "nowhere.txt" in done.stderr


def test_a_password_in_the_file_is_refused_and_not_repeated(healthy: Estate) -> None:
    path = healthy.file()
    path.write_text(path.read_text().replace("user: bench", f"user: bench\n  password: {SECRET}"))
    done = leadline("bench", "fleet", path, "--dry-run")
    path.unlink()
    assert done.returncode == 3
    assert SECRET not in done.stdout + done.stderr
    assert "name a password_file" in done.stderr


def test_a_dry_run_prints_the_plan_and_makes_nothing(healthy: Estate) -> None:
    done = fleet(healthy, str(healthy.file(count=3)), "--dry-run")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Plan: 3 clones of fio-template" in done.stdout
    assert "make leadline-03 on DC0_C0_H1, LocalDS_0" in done.stdout
    assert "disks: 4 x 1.00 GiB on pvscsi controllers: 2, 1, 1" in done.stdout
    plan = json.loads(fleet(healthy, str(healthy.file(count=3)), "--dry-run", "--json").stdout)["plan"]
    assert (len(plan["workers"]), plan["disks_by_controller"]) == (3, [2, 1, 1])
    assert fleet(healthy, str(healthy.file())).returncode == 2  # nobody to ask
    assert healthy.names() == THERE
    assert journals(healthy) == []


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (("-fail-clone", "2"), "worker leadline-02: not made: GenericVmConfigFault"),
        (("-no-address", "1"), "no address within 3 s"),
        (("-addresses", "127.0.0.2,127.0.0.2"), "it has the address of leadline-0"),
        (("-addresses", "127.0.0.2,127.0.0.99"), "nothing answers at 127.0.0.99"),
    ],
)
def test_a_worker_that_fails_ends_the_fleet_and_all_are_removed(
    tmp_path: Path, words: tuple[str, ...], part: str
) -> None:
    with estate(tmp_path, *words) as own:
        done = fleet(own, str(own.file(address_wait_s=3)), "--yes")
        assert done.returncode == 4
        assert part in done.stderr
        assert own.names() == THERE
        assert journals(own) == []


def test_with_keep_going_the_others_are_loaded(tmp_path: Path) -> None:
    with estate(tmp_path, "-fail-clone", "1") as own:
        done = fleet(own, str(own.file(count=3, keep_going=True, clones_at_a_time=1)), "--yes", "--json")
        assert done.returncode == 4
        found = json.loads(done.stdout)
        assert [(one["worker"], one["error"]) for one in found["workers"]] == [
            ("leadline-02", None),
            ("leadline-03", None),
        ]
        assert list(found["failed"]) == ["leadline-01"]
        assert own.names() == THERE


@pytest.mark.slow
def test_a_removal_that_fails_is_tried_again_and_then_told(tmp_path: Path) -> None:
    """Two workers are each tried three times: the first seven destructions fail."""
    with estate(tmp_path, "-fail-destroy", "7") as own:
        # In a process of its own: what a process that lives has made is not cleaned.
        words = [str(BIN), "bench", "fleet", str(own.file()), "--yes"]
        env = environment(own.folder, SECRET)
        done = subprocess.run(words, cwd=own.folder, env=env, capture_output=True, text=True, check=False)
        assert done.returncode == 4
        assert "NOT REMOVED: leadline-01" in done.stdout
        assert own.names() == THERE | {"leadline-01", "leadline-02"}
        (left,) = journals(own)
        assert f"--clean {left}" in done.stdout.replace("\n", " ")
        assert fleet(own, "--clean").returncode == 0
        assert own.names() == THERE
        assert journals(own) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("said", "number"),
    [
        ("leadline-01: cloning", signal.SIGINT),
        ("round-1 on 2 hosts", signal.SIGINT),
        ("round-1 on 2 hosts", signal.SIGTERM),
    ],
)
def test_ctrl_c_removes_the_workers(tmp_path: Path, said: str, number: signal.Signals) -> None:
    with estate(tmp_path, "-clone-ms", "1000") as own:
        process = started(own, own.file(load__measure_s=60), said)
        process.send_signal(number)
        assert process.wait(60) == 128 + number
        assert own.names() == THERE
        assert journals(own) == []


@pytest.mark.slow
@pytest.mark.parametrize("said", ["leadline-01: cloning", "round-1 on 2 hosts"])
def test_what_kill_9_left_is_cleaned_and_nothing_else(tmp_path: Path, said: str) -> None:
    with estate(tmp_path, "-clone-ms", "1000") as own:
        process = started(own, own.file(load__measure_s=60), said)
        (left,) = journals(own)
        assert fleet(own, "--clean").returncode == 0  # of those whose run is over: none
        refused = fleet(own, "--clean", left)
        assert refused.returncode == 4
        assert "its run is going on" in refused.stderr
        process.kill()
        process.wait()
        # Even a journal that names a VM of others does not have it removed: it lacks the mark.
        journal = own.folder / "home" / "fleets" / f"{left}.json"
        held = json.loads(journal.read_text())
        other = own.machine("DC0_H0_VM0")["config"].instanceUuid
        held["workers"].append({"name": "DC0_H0_VM0", "uuid": other, "task": ""})
        journal.write_text(json.dumps(held))
        done = fleet(own, "--clean", "--json")
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["cleaned"] == [left]
        assert own.names() == THERE
        assert journals(own) == []


def test_cleaning_with_nothing_left(healthy: Estate) -> None:
    done = fleet(healthy, "--clean")
    assert (done.returncode, done.stdout) == (0, "no fleet was left by a killed run\n")
    assert fleet(healthy, "--clean", "20260101-000000-0123abcd").returncode == 2
    assert FleetStore(healthy.folder / "home").list() == []
