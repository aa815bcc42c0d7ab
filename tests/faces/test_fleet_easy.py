"""`leadline bench fleet --easy`: a vCenter's own interface and fio's own servers, from the plan to the comparison."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from leadline.app.fleet import easy_run
from leadline.app.fleet.easy_order import PROFILES
from leadline.app.measure.hosts import HostsResult, load_hosts
from leadline.core.model.errors import ToolError
from leadline.stores.runs import RunStore
from tests.command_line import BIN, leadline
from tests.fleets import SECRET, Estate, estate, needs_simulator, until

THERE = {"fio-template", "DC0_C0_RP0_VM1", "DC0_H0_VM0", "DC0_H0_VM1"}  # what the simulator has from its beginning
SHORT = ("--set-size", "16m", "--seconds", "1", "--rounds", "1", "--warm-up", "0")
HERE = "/proc/self/cwd"  # the folder of each fio server: none shares files with another

pytestmark = needs_simulator


def environment(home: Path) -> dict[str, str]:
    rest = {key: value for key, value in os.environ.items() if key != "LEADLINE_PASSWORD"}
    return {**rest, "LEADLINE_HOME": str(home / "home"), "LEADLINE_PASSWORD": SECRET}


def words(there: Estate, *more: str, cluster: str = "DC0_C0", datastore: str = "LocalDS_0") -> list[str]:
    where = ("--vcenter", f"https://bench@127.0.0.1:{there.port}", "--insecure", "--cluster", cluster)
    what = ("--datastore", datastore, "--template", "fio-template", "--workers", "2", "--path", HERE)
    waits = ("--fio-port", str(there.fio_port), "--address-wait", "60")
    return ["bench", "fleet", "--easy", *where, *what, *waits, *SHORT, *more]


def easy(there: Estate, *more: str, **places: str) -> subprocess.CompletedProcess[str]:
    done = leadline(*words(there, *more, **places), cwd=there.folder, env=environment(there.folder))
    assert "Traceback" not in done.stderr
    assert SECRET not in done.stdout + done.stderr
    return done


def journals(there: Estate) -> list[str]:
    return [path.stem for path in (there.folder / "home" / "fleets").glob("*.json")]


@pytest.fixture(scope="module")
def healthy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Estate]:
    """For tests that make nothing."""
    with estate(tmp_path_factory.mktemp("fleet"), workers=1) as there:
        yield there


def test_a_dry_run_prints_what_was_chosen_and_makes_nothing(healthy: Estate) -> None:
    done = easy(healthy, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert "Plan: easy run on LocalDS_0 of DC0_C0 at 127.0.0.1" in done.stdout
    assert "machines: 2" in done.stdout
    assert "outstanding I/O of each worker: 128" in done.stdout
    assert "deduplication: not known: vCenter tells it of vSAN alone" in done.stdout
    assert "off" not in done.stdout  # nobody said so
    assert "make leadline-02 on DC0_C0_H1, LocalDS_0" in done.stdout
    assert "then hci-256k-write: 1 x 1 s" in done.stdout
    assert done.stdout.endswith("Nothing was made.\n")
    assert healthy.names() == THERE
    assert journals(healthy) == []


def test_the_plan_is_that_of_an_easy_sweep(healthy: Estate) -> None:
    """A third of 1000 GiB, for 2 x 8 disks; three hosts would have six workers."""
    command = words(healthy, "--dry-run", "--json")
    count, path = command.index("--workers"), command.index("--path")
    del command[path : path + 2], command[count : count + 2]
    done = leadline(*command, cwd=healthy.folder, env=environment(healthy.folder))
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert document["schema"] == "leadline.easy-fleet-plan/1"
    plan = document["plan"]
    assert (plan["easy"]["machine_count"], plan["easy"]["disk_count"]) == (6, 8)
    assert plan["easy"]["disk_bytes"] == int(1000 / 3 / 48) * 2**30
    assert len(plan["workers"]) == 6
    assert [profile["name"] for profile in plan["profiles"]] == list(PROFILES)
    assert {(one["io"][0].get("oio"), one["io"][0].get("jobs", 1)) for one in plan["profiles"]} == {(16, 1)}
    assert plan["paths"] == [f"/dev/sd{letter}" for letter in "bcdefghi"]
    assert all(one["on"] is None for one in plan["services"])


def test_a_job_file_of_vdbench_is_a_profile(healthy: Estate) -> None:
    """Fio makes its load: 8 KiB, 70 % reads, four threads, as the file says."""
    lines = ("sd=sd1,lun=/dev/sdb", "wd=wd1,sd=sd1,xfersize=8k,rdpct=70,seekpct=100")
    rate = "rd=rd1,wd=wd1,iorate=max,elapsed=60,interval=1,threads=4"
    (healthy.folder / "runs.vdbench").write_text("\n".join([*lines, rate, ""]))
    done = easy(healthy, "--profile", "runs.vdbench", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    (profile,) = json.loads(done.stdout)["plan"]["profiles"]
    (stream,) = profile["io"]
    assert (stream["read_pct"], stream["oio"] * stream.get("jobs", 1)) == (70.0, 4)
    assert profile["io_settings"]["working_set"] == 16 * 2**20


def test_what_is_not_there_is_told_and_nothing_made(healthy: Estate) -> None:
    done = easy(healthy, "--yes", cluster="DC0_C9", datastore="LocalDS_9")
    assert done.returncode == 2
    assert "DC0_C9" in done.stderr
    assert "There are: DC0_C0." in done.stderr
    assert "LocalDS_9" in done.stderr
    assert "2 problems; expected none. Nothing was made." in done.stderr


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--easy",), "no --vcenter, --cluster, --datastore, --template"),
        (("fleet.yaml", "--easy"), "a file beside --easy"),
        (("fleet.yaml", "--workers", "2"), "--workers without --easy"),
        (("fleet.yaml", "--set-size", "4g"), "--set-size without --easy"),
        (
            ("--easy", "--vcenter", "a@b", "--cluster", "c", "--datastore", "d", "--template", "t", "--set-size", "4"),
            "1m",
        ),
    ],
)
def test_options_that_do_not_go_together(arguments: tuple[str, ...], part: str) -> None:
    done = leadline("bench", "fleet", *arguments)
    assert done.returncode == 2
    assert part in done.stderr


@pytest.mark.parametrize("name", ["https://bench:geheim@vc.example", "https://vc.example", "ldap://bench@vc.example"])
def test_an_address_without_a_user_or_with_a_password_is_refused(name: str) -> None:
    rest = ("--cluster", "c", "--datastore", "d", "--template", "t", "--dry-run")
    done = leadline("bench", "fleet", "--easy", "--vcenter", name, *rest)
    assert done.returncode == 2
    assert "geheim" not in done.stdout + done.stderr


def test_from_a_vcenter_to_the_finished_comparison(tmp_path: Path) -> None:
    """Twice, so that the second run has an earlier one to be compared with."""
    with estate(tmp_path) as there:
        first = easy(there, "--yes", "--json")
        assert first.returncode == 0, first.stderr
        document = json.loads(first.stdout)
        assert document["schema"] == "leadline.easy-fleet/1"
        assert document["complete"]
        assert (document["missing"], document["stopped"], document["against"]) == ([], None, None)
        assert [profile["name"] for profile in document["profiles"]] == list(PROFILES)
        for profile in document["profiles"]:
            assert [part["worker"] for part in profile["workers"]] == ["leadline-01", "leadline-02"]
            assert all(part["per_s"] > 0 and part["error"] is None for part in profile["workers"])
            p50 = profile["percentiles_ms"]["p50"]
            assert p50["low"] <= p50["ms"] <= p50["high"]
            assert RunStore(tmp_path / "home").get(profile["run"]).state == "done"
        assert (there.names(), journals(there)) == (THERE, [])
    with estate_again(tmp_path / "second", tmp_path / "home") as there:
        second = leadline(*words(there, "--yes", "--html", "easy.html"), cwd=there.folder, env=environment(tmp_path))
        assert second.returncode == 0, second.stderr
        assert f"against {document['id']}" in second.stdout
        assert "one run each" in second.stdout.replace("\n", " ")
        assert max(map(len, second.stdout.splitlines())) <= 80
        page = (there.folder / "easy.html").read_text()
        assert all(name in page for name in (*PROFILES, "leadline-02", "Deduplication", "not known", document["id"]))
        assert (there.names(), journals(there)) == (THERE, [])
    assert not any(path.is_file() for number in (1, 2) for path in (tmp_path / f"worker-{number}").iterdir())


def test_added_disks_are_filled_once_and_then_measured(tmp_path: Path) -> None:
    """A file in memory stands for the disk of both workers."""
    with estate(tmp_path) as there, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        disk = Path(memory) / "disk"
        disk.write_bytes(bytes(16 * 2**20))
        command = words(there, "--yes", "--profile", "hci-4k-read", "--profile", "hci-8k-50-50")
        command[command.index(HERE)] = str(disk)
        done = leadline(*command, cwd=there.folder, env=environment(there.folder))
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("filling 16m") == 1
        assert "filling 16m on each of 2 disks" in done.stderr
        assert "filled 100 % of the disks" in done.stderr
        assert disk.read_bytes()[:4096] != bytes(4096)
        assert (there.names(), journals(there)) == (THERE, [])


def test_a_disk_that_is_not_there_ends_the_run_before_any_load(tmp_path: Path) -> None:
    with estate(tmp_path) as there, tempfile.TemporaryDirectory(dir="/dev/shm") as memory:
        disk = Path(memory) / "none"
        command = words(there, "--yes", "--profile", "hci-4k-read")
        command[command.index(HERE)] = str(disk)
        done = leadline(*command, "--json", cwd=there.folder, env=environment(there.folder))
        assert done.returncode == 4
        document = json.loads(done.stdout)
        assert document["profiles"] == []
        assert "fill-1: its client ended with 1" in document["stopped"]
        assert list(Path(memory).iterdir()) == []
        assert (there.names(), journals(there)) == (THERE, [])


def estate_again(folder: Path, home: Path) -> Any:
    """Another vCenter at the same address with the same names, whose workers have other addresses."""
    folder.mkdir()
    assert home.is_dir()
    return estate(folder)


def test_an_error_in_the_third_profile_removes_all_and_reports_the_first_two(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    count = 0

    def third_fails(*arguments: Any, **options: Any) -> HostsResult:
        nonlocal count
        count += 1
        if count == 3:
            raise ToolError("fio", found="killed", expected="a round", advice="Look at it.")
        return load_hosts(*arguments, **options)

    monkeypatch.setattr(easy_run, "load_hosts", third_fails)
    with estate(tmp_path) as there:
        done = easy(there, "--yes", "--json")
        assert done.returncode == 4
        document = json.loads(done.stdout)
        assert [profile["name"] for profile in document["profiles"]] == list(PROFILES[:2])
        assert document["missing"] == list(PROFILES[2:])
        assert "killed" in document["stopped"]
        assert (there.names(), journals(there)) == (THERE, [])
        states = {run.name: run.state for run in RunStore(tmp_path / "home").list()}
        assert states == {PROFILES[0]: "done", PROFILES[1]: "done", PROFILES[2]: "failed"}


def test_a_worker_that_dies_in_the_third_profile_ends_the_run(tmp_path: Path) -> None:
    """Its fio server is killed as the third profile begins; the report names it."""
    with estate(tmp_path) as there:
        process, log = begun(there, "--yes", "--seconds", "3")
        until(lambda: f"profile 3 of 4: {PROFILES[2]}" in log.read_text() or process.poll() is not None)
        until(lambda: "round-1" in log.read_text().split("profile 3 of 4")[-1] or process.poll() is not None)
        time.sleep(0.5)
        kill_server("127.0.0.3")
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 4, log.read_text()
        text = " ".join(output.split())
        assert f"stopped: profile {PROFILES[2]}: leadline-0" in text
        assert f"not measured: {PROFILES[3]}" in text
        assert (there.names(), journals(there)) == (THERE, [])


def begun(there: Estate, *more: str) -> tuple[subprocess.Popen[str], Path]:
    """A run in a process of its own, and the file with its talk."""
    log = there.folder / "talk.txt"
    with log.open("w") as stream:
        process = subprocess.Popen(
            ["env", "--default-signal=INT", str(BIN), *words(there, *more)],
            stdout=subprocess.PIPE,
            stderr=stream,
            text=True,
            cwd=there.folder,
            env=environment(there.folder),
        )
    return process, log


def kill_server(address: str) -> None:
    """Kill the fio server of an address that this test started, with the children that do its work."""
    for path in Path("/proc").glob("[0-9]*"):
        try:
            command = (path / "cmdline").read_bytes().split(b"\0")
            parent = int((path / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        if any(word.startswith(f"--server={address},".encode()) for word in command) and parent == os.getpid():
            os.killpg(int(path.name), signal.SIGKILL)


@pytest.mark.slow
def test_ctrl_c_in_the_second_profile_removes_the_workers_and_shows_the_first(tmp_path: Path) -> None:
    with estate(tmp_path) as there:
        process, log = begun(there, "--yes", "--seconds", "2")
        until(lambda: "profile 2 of 4" in log.read_text() or process.poll() is not None)
        process.send_signal(signal.SIGINT)
        output, _ = process.communicate(timeout=120)
        assert process.returncode == 130, log.read_text()
        assert PROFILES[0] in output
        assert f"not measured: {', '.join(PROFILES[1:3])}" in " ".join(output.split())
        assert (there.names(), journals(there)) == (THERE, [])


@pytest.mark.slow
def test_what_kill_9_left_in_the_middle_is_cleaned(tmp_path: Path) -> None:
    with estate(tmp_path) as there:
        process, log = begun(there, "--yes", "--seconds", "30")
        until(lambda: "round-1 on 2 hosts" in log.read_text() or process.poll() is not None)
        assert process.poll() is None, log.read_text()
        process.kill()
        process.communicate()
        assert there.names() == THERE | {"leadline-01", "leadline-02"}
        (left,) = journals(there)
        done = leadline("bench", "fleet", "--clean", "--json", cwd=there.folder, env=environment(there.folder))
        assert done.returncode == 0, done.stderr
        assert json.loads(done.stdout)["cleaned"] == [left]
        assert (there.names(), journals(there)) == (THERE, [])
