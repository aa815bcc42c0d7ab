"""An incident is recorded with the real tools, and nothing is left behind, also when it is interrupted."""

import os
import signal
import subprocess
import sys
import tarfile
import time
from pathlib import Path

import pytest
import yaml

from incidents import rig
from incidents.archive import read_truth
from incidents.processes import RigError
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from tests.conftest import ROOT

pytestmark = [pytest.mark.real, pytest.mark.slow]


def command(*words: str) -> list[str]:
    if os.geteuid() != 0:
        pytest.skip("disks are mounted by root")
    try:
        rig.check_tools()
    except RigError as error:
        pytest.skip(str(error))
    return [sys.executable, "-m", "incidents.record", *words]


def left_behind() -> set[str]:
    loops = subprocess.run(["losetup", "--list", "--noheadings"], capture_output=True, text=True, check=True).stdout
    spaces = subprocess.run(["ip", "netns", "list"], capture_output=True, text=True, check=False).stdout
    lines = {line for line in (*loops.splitlines(), *spaces.splitlines()) if "/disk" in line or "leadline" in line}
    return lines | {str(path) for path in Path("/var/tmp").glob("leadline-incident-*")}


def test_a_slow_disk_is_recorded_and_shows_itself(tmp_path: Path) -> None:
    before = left_behind()
    words = ("slow-disk", "--variants", "1", "--output", str(tmp_path), "--accept-noise", "--keep-all")
    done = subprocess.run(command(*words), cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "data_read_ms" in done.stdout, "what the recording shows is printed"
    with tarfile.open(tmp_path / "slow-disk" / "1.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    folder = tmp_path / "slow-disk-1"
    truth = yaml.safe_load((folder / "truth.yaml").read_text())
    assert truth["fault"]["cause"] == "disk-slow"
    assert set(truth["fault"]["entities"][0]) == {"kind", "name"}
    assert sum(truth["wait_shares"]["fault"].values()) > 0.9
    recorders = {one["recorder"] for one in truth["recordings"].values()}
    assert recorders >= {"iostat", "vmstat", "mpstat", "pidstat", "sar", "psi", "pgbench", "pg-stat", "active-sessions"}
    capture = import_paths([folder], Request()).capture
    assert {source.importer for source in capture.sources} >= {"iostat", "sar", "pgbench", "pg-active-sessions"}
    assert left_behind() == before


def test_a_bystander_is_recorded_is_innocent_and_leaves_nothing(tmp_path: Path) -> None:
    before = left_behind()
    words = ("slow-flush", "--only", "4", "--output", str(tmp_path), "--accept-noise", "--keep-all")
    done = subprocess.run(command(*words), cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stderr
    assert "with the bystanders" in done.stdout, "whether users felt them is printed"
    truth = read_truth(tmp_path / "slow-flush" / "4.tar.xz")
    innocent = {(one["kind"], one["name"]) for one in truth["innocent"]["entities"]}
    for one in truth["bystanders"]:
        assert "entity" not in one or ("block-device", one["entity"]) in innocent
        assert one["from"] < truth["fault"]["end"] < one["to"]
    assert any(kind == "process" for kind, _ in innocent)
    assert not any(str(ROOT) in str(part) or str(tmp_path) in str(part) for part in truth.values())
    with tarfile.open(tmp_path / "slow-flush" / "4.tar.xz") as packed:
        packed.extractall(tmp_path, filter="data")
    inventory = yaml.safe_load((tmp_path / "slow-flush-4" / "inventory.yaml").read_text())
    known = {device["name"] for device in inventory["guests"][0]["devices"]}
    assert known == {truth["disks"][role] for role in ("data", "wal")}, "nobody told which disks are not the database's"
    assert left_behind() == before


def test_an_interrupted_recording_leaves_nothing(tmp_path: Path) -> None:
    before = left_behind()
    words = ("network-latency", "--variants", "1", "--output", str(tmp_path), "--accept-noise")
    with subprocess.Popen(command(*words), cwd=ROOT, stderr=subprocess.PIPE, text=True) as recording:
        time.sleep(20.0)  # the load runs
        recording.send_signal(signal.SIGINT)
        _, said = recording.communicate(timeout=60)
    assert recording.returncode == 130, said
    assert "everything that was started has been removed" in said
    assert not list(tmp_path.iterdir())
    assert left_behind() == before
