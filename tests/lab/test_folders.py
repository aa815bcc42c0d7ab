"""Folders of labs: what runs is left alone, what a killed lab left is ended and removed; and a lab that is killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.core.model.errors import ToolError, UsageError
from leadline.lab.folders import clean, find_guest, lab_folder, labs, running_folder
from leadline.lab.processes import PID, is_alive, note_process
from tests.lab.conftest import GUEST, planned

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with tempfile.TemporaryDirectory(prefix="ll") as short:  # sockets must have short names
        monkeypatch.setenv("XDG_CACHE_HOME", short)
        yield


def test_a_path_no_socket_can_have_is_refused(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ("x" * 90)))
    with pytest.raises(ToolError, match="too long"), lab_folder("adapters"):
        pass


def test_a_lab_that_runs_is_found_and_left_alone() -> None:
    with lab_folder("adapters") as folder:
        (folder / "db").mkdir()
        assert [lab.is_running for lab in labs()] == [True]
        assert find_guest("db") == folder / "db" == find_guest(f"{folder.name}/db")
        assert clean() == []
        with pytest.raises(UsageError, match="no such guest"):
            find_guest("other")
        with lab_folder("adapters") as second:
            (second / "db").mkdir()
            with pytest.raises(UsageError, match="2 labs"):
                find_guest("db")
    assert labs() == []


def test_what_a_killed_lab_left_is_ended_and_removed() -> None:
    guest = running_folder() / "adapters-0001" / "db"
    guest.mkdir(parents=True)
    left, other = (subprocess.Popen(["sleep", "60"]) for _ in range(2))
    try:
        note_process(guest / PID, left.pid)
        (guest.parent / "leadline.pid").write_text(f"{os.getpid()} 1\n")  # our number, another process
        (guest / "data.raw").write_bytes(b"x")
        done = clean()
        assert left.wait(5) == -signal.SIGKILL
        assert other.poll() is None
        assert any("ended guest db" in line for line in done)
        assert labs() == []
    finally:
        for process in (left, other):
            process.kill()
            process.wait()


def test_a_number_given_to_another_process_is_not_mistaken(tmp_path: Path) -> None:
    file = tmp_path / "pid"
    note_process(file, os.getpid())
    assert is_alive(file)
    file.write_text(f"{os.getpid()} 12345\n")
    assert not is_alive(file)
    assert not is_alive(tmp_path / "none")


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_guests_end_with_their_lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: signal.Signals) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME")
    planned(GUEST)  # skips where there can be none
    cache = os.environ.get("XDG_CACHE_HOME", str(Path.home() / ".cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", cache)
    file = tmp_path / "lab.yaml"
    file.write_text(GUEST.replace("name: tests", "name: killed"))
    words = ["env", "--default-signal=INT", str(Path(sys.executable).parent / "leadline"), "lab", "run", str(file)]
    process = subprocess.Popen(words, cwd=tmp_path, stderr=subprocess.PIPE, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + 120.0
        while not (own := [lab for lab in labs() if lab.path.name.startswith("killed-") and _pid(lab.path)]):
            assert time.monotonic() < deadline, "no guest was started"
            time.sleep(0.2)
        pid = _pid(own[0].path)
        assert Path(f"/proc/{pid}").exists()
        process.send_signal(number)
        process.wait(20)
        deadline = time.monotonic() + 10.0
        while Path(f"/proc/{pid}").exists():
            assert time.monotonic() < deadline, "the guest goes on"
            time.sleep(0.1)
        if number == signal.SIGINT:
            assert not own[0].path.exists()
        else:
            assert any(str(own[0].path) in line for line in clean())
            assert not own[0].path.exists()
    finally:
        process.kill()
        process.communicate()


def _pid(lab: Path) -> int | None:
    file = lab / "db" / PID
    return int(file.read_text().split()[0]) if file.exists() and file.read_text() else None
