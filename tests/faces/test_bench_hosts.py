"""`leadline bench hosts` as a user sees it: exit statuses, Ctrl-C, shares of the theoretical maximum, kept runs."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from leadline.core.system.tools import find_program
from tests import sshd
from tests.command_line import BIN, leadline
from tests.fio_servers import fio_server, free_ports

needs_fio = pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
needs_ssh = pytest.mark.skipif(sshd.missing() is not None, reason=str(sshd.missing()))
WORKLOAD = """\
name: t
io_settings: {working_set: 4m}
timing: {warm_up_s: 0, measure_s: 2, rounds: 1}
io: [{rate_iops: 200, oio: 4, block: 4k}]
"""
NOT_SET = ("SSH_AUTH_SOCK", "LEADLINE_PASSWORD")


def run(*words: str, cwd: Path, home: Path | None = None) -> subprocess.CompletedProcess[str]:
    return leadline(*words, cwd=cwd, env=_env(cwd, home))


def _env(cwd: Path, home: Path | None) -> dict[str, str]:
    own = {key: value for key, value in os.environ.items() if key not in NOT_SET}
    return own | {"LEADLINE_HOME": str(cwd / "runs")} | ({} if home is None else {"HOME": str(home)})


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """A folder with a workload and a file of two hosts: one that answers, one that does not."""
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    (tmp_path / "scratch").mkdir()
    with fio_server(tmp_path) as address:
        (tmp_path / "one.txt").write_text(f"{address}\n")
        (tmp_path / "hosts.txt").write_text(f"{address}\n127.0.0.1,{free_ports(1)[0]}\n")
        yield tmp_path


@pytest.mark.real
@needs_fio
def test_a_host_that_failed_is_told_and_the_rest_kept(folder: Path) -> None:
    scratch = str(folder / "scratch")
    words = ("bench", "hosts", "w.yaml", "--hosts", "hosts.txt", "--in", scratch, "--yes")
    done = run(*words, "--theoretical", "2x1000", cwd=folder)
    assert done.returncode == 4, done.stderr
    assert "cannot be reached (Connection refused); expected" in " ".join(done.stdout.split())
    assert "of the 1 that did not fail" in " ".join(done.stdout.split())
    for text in (done.stdout, done.stderr.replace(scratch, "")):
        assert max(map(len, text.splitlines())) <= 80, text
    shown = json.loads(run("runs", "show", "last", "--json", "--theoretical", "2x4MB/s", cwd=folder).stdout)
    assert shown["run"]["state"] == "done"
    first, second = shown["together"]["hosts"]
    assert (first["error"], second["per_s"]) == (None, None)
    assert "expected a whole run. Start `fio --server`" in second["error"]
    # 200/s of 4 KiB are 0.82 MB/s of 8.
    assert first["theoretical_share"] == pytest.approx(200 * 4096 / 8e6, rel=0.5)
    assert shown["together"]["theoretical"]["share"] == pytest.approx(first["theoretical_share"])
    assert list((folder / "scratch").iterdir()) == []


@pytest.mark.real
@needs_fio
def test_bench_run_takes_hosts_and_runs_are_compared(folder: Path) -> None:
    words = ("bench", "run", "w.yaml", "--hosts", "one.txt", "--on", str(folder / "scratch"), "--yes", "--json", "-q")
    ids = []
    for _ in range(2):
        done = run(*words, "--theoretical", "1x1000IOPS", cwd=folder)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        found = json.loads(done.stdout)
        assert found["theoretical"]["share"] == pytest.approx(0.2, rel=0.5)
        ids.append(found["run"])
    listed = json.loads(run("runs", "list", "--json", cwd=folder).stdout)
    assert [own["id"] for own in listed["runs"]] == ids
    compared = run("runs", "compare", *ids, "--json", cwd=folder)
    assert compared.returncode in (0, 1), compared.stderr
    assert "operations" in [metric["name"] for metric in json.loads(compared.stdout)["metrics"]]


@pytest.mark.real
@needs_fio
@needs_ssh
def test_ctrl_c_ends_the_load_and_leaves_nothing_on_the_hosts(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD.replace("measure_s: 2", "measure_s: 60"))
    own, scratch = tmp_path / "ssh", tmp_path / "scratch"
    own.mkdir()
    scratch.mkdir()
    with sshd.ssh_server(own) as server, fio_server(tmp_path) as address:
        (tmp_path / "hosts.txt").write_text(f"{server.address}\n{address}\n")
        words = ["env", "--default-signal=INT", str(BIN), "bench", "hosts", "w.yaml", "--hosts", "hosts.txt", "--yes"]
        pipe, env = subprocess.PIPE, _env(tmp_path, server.home)
        process = subprocess.Popen([*words, "--in", str(scratch)], cwd=tmp_path, env=env, stdout=pipe, stderr=pipe)
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith(b"round-1"):
                break
        time.sleep(5)
        process.send_signal(signal.SIGINT)
        said = process.communicate(timeout=30)[1].decode()
        assert process.returncode not in (0, 1), said
        assert "Traceback" not in said
        assert list(scratch.iterdir()) == []
    shown = json.loads(run("runs", "show", "last", "--json", cwd=tmp_path).stdout)
    assert shown["run"]["state"] == "interrupted"
    assert [part["label"] for part in shown["run"]["rounds"]] == ["round-1, cut short"]


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        (["--hosts", "absent.txt", "--yes"], 3, "not readable"),
        (["--hosts", "hosts.txt"], 2, "nobody to ask"),
        (["--hosts", "hosts.txt", "--yes", "--theoretical", "24"], 2, "24x550000"),
        (["--hosts", "hosts.txt", "--yes", "--set-size", "x"], 2, "sizes as 4g"),
        (["--hosts", "hosts.txt", "--yes", "--ask-password"], 2, "LEADLINE_PASSWORD"),
        (["--hosts", "bad.txt", "--yes"], 3, "bad.txt:1"),
        (["--hosts", "device.txt", "--yes"], 2, "--destroy-data /dev/sdx"),
    ],
)
@needs_fio
def test_mistakes_are_told_before_anything_is_done(tmp_path: Path, words: list[str], status: int, part: str) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    (tmp_path / "hosts.txt").write_text("127.0.0.1,1\n")
    (tmp_path / "bad.txt").write_text("ssh://root:hunter2@db1\n")
    (tmp_path / "device.txt").write_text("db1 /dev/sdx\n")
    done = run("bench", "hosts", "w.yaml", *words, cwd=tmp_path)
    assert done.returncode == status, done.stderr
    assert part in " ".join(done.stderr.split())
    assert "hunter2" not in done.stdout + done.stderr
    assert not (tmp_path / "runs").exists()


def test_bench_run_wants_a_target_or_hosts(tmp_path: Path) -> None:
    (tmp_path / "w.yaml").write_text(WORKLOAD)
    done = run("bench", "run", "w.yaml", "--yes", cwd=tmp_path)
    assert done.returncode == 2
    assert "--on or --hosts" in done.stderr
