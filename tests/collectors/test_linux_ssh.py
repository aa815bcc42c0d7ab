"""The recorder of another Linux machine: a real SSH server on loopback, its shell, and BusyBox's."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.measure.recording import record
from leadline.app.read.importing import import_paths
from leadline.app.watch.recorded import RecordedFiles
from leadline.collectors import _linux_ssh, linux
from leadline.core.contracts.importer import Request
from leadline.core.model.errors import ToolError, UsageError
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.addresses import Address, address_of
from leadline.core.system.secret import Secret
from tests import sshd
from tests.command_line import BIN

pytestmark = pytest.mark.real
needs_ssh = pytest.mark.skipif(sshd.missing() is not None, reason=str(sshd.missing()))
SECRET = "a passphrase nobody guesses"
NAME = Path("/proc/sys/kernel/hostname").read_text().strip()


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[sshd.Server]:
    """A server, and its user's home as ours."""
    folder = tmp_path / "ssh"
    folder.mkdir()
    with sshd.ssh_server(folder) as running:
        monkeypatch.setenv("HOME", str(running.home))
        monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
        yield running


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "recorded"
    path.mkdir()
    return path


@needs_ssh
def test_what_comes_over_ssh_is_what_this_machine_says(server: sshd.Server, tmp_path: Path) -> None:
    far, near = tmp_path / "far", tmp_path / "near"
    near.mkdir()
    beside = linux.record(address_of(""), near)
    beside.sample()
    done = record("linux", server.address, far, every_s=0.2, seconds=1.0)
    beside.sample()
    beside.close()
    assert (done.sample_count, done.notes) == (6, ())
    theirs, ours = (import_paths([path], Request()).capture for path in (far, near))
    assert [guest.name for guest in theirs.inventory.of_kind(EntityKind.GUEST)] == [NAME]
    series = [{(one.metric, name) for one in capture.groups for name in one.entities} for capture in (theirs, ours)]
    assert {one for one in series[1] - series[0] if not one[0].startswith("guest_disk_")} == set()  # those need I/O
    assert series[0] - series[1] == set()
    for metric in ("guest_cpu_idle_pct", "guest_memory_available_mib", "guest_context_switches_per_s"):
        (group,) = [one for one in theirs.of(metric, EntityKind.GUEST)]
        assert len(group.times_ns) >= 5
        assert np.isfinite(group.values).all()
    steps = np.diff(theirs.of("guest_context_switches_per_s")[0].times_ns) / 1e9
    assert steps == pytest.approx(0.2, abs=0.15)


@needs_ssh
def test_a_machine_is_recorded_by_the_command_line(server: sshd.Server, tmp_path: Path) -> None:
    words = [str(BIN), "collect", "linux", server.address, "-o", "far", "--every", "0.2", "--seconds", "0.4", "--json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["samples"] == 3
    assert import_paths([tmp_path / "far"], Request()).capture.of("guest_cpu_idle_pct", EntityKind.GUEST)


@needs_ssh
def test_a_sample_costs_the_other_machine_little(
    server: sshd.Server, folder: Path, request: pytest.FixtureRequest
) -> None:
    recorder = linux.record(address_of(server.address), folder)
    try:
        recorder.sample()
        before, size = _cpu_s(server.pid), (folder / linux.FILE_NAME).stat().st_size
        for _ in range(100):
            recorder.sample()
        spent_ms = (_cpu_s(server.pid) - before) * 10
        sent = ((folder / linux.FILE_NAME).stat().st_size - size) / 100
    finally:
        recorder.close()
    request.node.user_properties.append(("cpu_ms_per_sample_there", spent_ms))
    request.node.user_properties.append(("bytes_per_sample", sent))
    assert 0 < spent_ms < 50
    deadline = time.monotonic() + 10
    while len(_family(server.pid)) > 1 and time.monotonic() < deadline:
        time.sleep(0.05)
    assert _family(server.pid) == [server.pid]  # nothing goes on there


def _family(pid: int) -> list[int]:
    """A process and all that stem from it."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
    family = [pid]
    for one in family:
        family += [child for child, parent in parents.items() if parent == one]
    return family


def _cpu_s(pid: int) -> float:
    """CPU time of a process, of all that stem from it, and of those of them that have ended, seconds."""
    fields = [Path(f"/proc/{one}/stat").read_text().rpartition(")")[2].split()[11:15] for one in _family(pid)]
    return sum(int(ticks) for four in fields for ticks in four) / os.sysconf("SC_CLK_TCK")


@needs_ssh
def test_a_machine_whose_key_changed_is_refused(server: sshd.Server, folder: Path, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    public = (tmp_path / "other.pub").read_text().split()
    (server.home / ".ssh" / "known_hosts").write_text(f"[127.0.0.1]:{server.port} {public[0]} {public[1]}\n")
    with pytest.raises(ToolError, match="host key that is not in known_hosts") as caught:
        linux.record(address_of(server.address), folder)
    assert "ssh -p" in caught.value.advice
    server.forget()
    with pytest.raises(ToolError, match="host key that is not in known_hosts"):
        linux.record(address_of(server.address), folder)


@needs_ssh
def test_a_key_may_be_named_and_its_passphrase_is_the_password(server: sshd.Server, folder: Path) -> None:
    (server.home / ".ssh" / "id_ed25519").unlink()
    key = server.home / "key"
    # OpenSSH's form of an encrypted key needs bcrypt, which the extra does not bring.
    subprocess.run(["ssh-keygen", "-q", "-t", "ecdsa", "-m", "PKCS8", "-N", SECRET, "-f", key], check=True)
    with (server.home.parent / "authorized").open("a") as authorized:
        authorized.write((server.home / "key.pub").read_text())
    with pytest.raises(ToolError, match="login refused"):
        linux.record(address_of(server.address), folder)
    for wrong in (Secret(), Secret("not the passphrase")):
        with pytest.raises(ToolError, match=str(key)) as caught:
            linux.record(Address(server.address, wrong), folder, identity="~/key")
        assert "passphrase as the password" in caught.value.advice
        assert "not the passphrase" not in str(caught.value)
    recorder = linux.record(Address(server.address, Secret(SECRET)), folder, identity="~/key")
    recorder.sample()
    recorder.close()
    assert SECRET.encode() not in (folder / linux.FILE_NAME).read_bytes()


@needs_ssh
def test_a_machine_that_goes_away_is_an_error_and_is_recorded_again(server: sshd.Server, tmp_path: Path) -> None:
    files = RecordedFiles(tmp_path / "files")
    opened = files.recorder("far", "linux", address_of(server.address), {})
    first = opened()
    first.sample()
    for child in _family(server.pid)[1:]:
        os.kill(child, signal.SIGKILL)
    with pytest.raises(ToolError, match=r"127\.0\.0\.1"):
        for _ in range(3):
            first.sample()
    first.close()
    again = opened()
    for _ in range(3):
        again.sample()
        time.sleep(0.05)
    capture = files.read()
    again.close()
    assert capture is not None
    assert capture.series_count > 20


@needs_ssh
def test_no_answer_in_time_is_an_error(server: sshd.Server, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = linux.record(address_of(server.address), folder)
    monkeypatch.setattr(_linux_ssh, "ANSWER_S", 0.3)
    children = _family(server.pid)[1:]
    for child in children:
        os.kill(child, signal.SIGSTOP)
    try:
        with pytest.raises(ToolError, match="no answer"):
            recorder.sample()
    finally:
        for child in children:
            os.kill(child, signal.SIGCONT)
        recorder.close()


@needs_ssh
def test_a_machine_without_these_files_is_refused(
    server: sshd.Server, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(linux, "PATHS", ("/proc/stat-of-another-system", *linux.PATHS))
    recorder = linux.record(address_of(server.address), folder)
    assert recorder.notes == ["/proc/stat-of-another-system left out: it cannot be read there"]
    recorder.close()
    monkeypatch.setattr(_linux_ssh, "SCRIPT", _linux_ssh.SCRIPT.replace('cat "$f"', "false"))
    with pytest.raises(ToolError, match="a Linux machine"):
        linux.record(address_of(server.address), folder)


@pytest.mark.parametrize("target", ["ssh://", "ssh://db1/path", "ssh://-oProxyCommand=x", "ssh://db1:port"])
def test_an_address_that_is_none_is_refused(folder: Path, target: str) -> None:
    with pytest.raises(UsageError):
        linux.record(Address(target), folder)


@pytest.mark.skipif(shutil.which("busybox") is None, reason="BusyBox is not installed")
def test_busybox_runs_the_script(tmp_path: Path) -> None:
    programs = tmp_path / "bin"
    programs.mkdir()
    for name in ("awk", "cat", "sh"):
        (programs / name).symlink_to(str(shutil.which("busybox")))
    words = [str(programs / "sh"), "-c", _linux_ssh.SCRIPT, "leadline", "/proc/nothing", *linux.PATHS]
    pipes: Any = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(words, env={"PATH": str(programs)}, **pipes) as shell:
        assert shell.stdin is not None
        for _ in range(3):
            shell.stdin.write(b"\n")
            shell.stdin.flush()
            time.sleep(0.1)  # without a tick of the clock between two samples there is no share of a processor
        stdout, stderr = shell.communicate(timeout=20)
    assert (shell.returncode, stderr) == (0, b"")
    missing, *blocks, rest = stdout.split(b"~\n")
    assert (missing, rest) == (b"- /proc/nothing\n", b"")
    path = tmp_path / linux.FILE_NAME
    path.write_bytes(b"".join(b"# 2026-11-26T10:00:0%d+00:00\n%s" % pair for pair in enumerate(blocks)))
    capture = import_paths([path], Request()).capture
    assert [guest.name for guest in capture.inventory.of_kind(EntityKind.GUEST)] == [NAME]
    assert len(capture.of("guest_cpu_idle_pct", EntityKind.GUEST)[0].times_ns) == 2


def test_the_script_is_posix() -> None:
    subprocess.run(["sh", "-n"], input=_linux_ssh.SCRIPT, text=True, check=True)
