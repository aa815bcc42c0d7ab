"""`leadline bench protect` as a user sees it, with Ctrl-C and kill -9."""

from __future__ import annotations

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.command_line import BIN, leadline

TINY = ("--vms", "1,2", "--size-per-vm", "1M", "--unit", "64K", "--repeats", "2", "--yes")
LONG = ("--vms", "4", "--size-per-vm", "8M", "--seconds", "60", "--yes")


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return leadline("bench", "protect", *words, cwd=cwd)


def is_writing(folder: Path) -> bool:
    """Whether there are shards; folders come and go from round to round."""
    try:
        return any(file.stat().st_size for file in folder.rglob("*.shards"))
    except FileNotFoundError:
        return False


def started(folder: Path, *words: str) -> subprocess.Popen[str]:
    """A run that is writing."""
    process = subprocess.Popen(
        ["env", "--default-signal=INT", BIN, "bench", "protect", "--on", ".", *words],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 30
    while not is_writing(folder):
        assert time.monotonic() < end, "nothing is being written"
        time.sleep(0.02)
    return process


def test_text_fits_80_columns_and_says_what_matters(tmp_path: Path) -> None:
    done = run("--on", ".", *TINY, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines())) <= 80
    assert max(map(len, done.stderr.splitlines())) <= 80
    assert "3+2 survived: 2 of its nodes failed in 10 combinations" in done.stdout
    assert "3x survived: 2 of its nodes failed in 10 combinations" in done.stdout
    assert "one more than it tolerates: data loss" in done.stdout
    assert "1.667" in done.stdout
    assert "3.000" in done.stdout
    assert "█" in done.stdout
    assert "holds at most" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_data_loss_is_said_and_is_an_exit_status(tmp_path: Path) -> None:
    done = run("--on", ".", "--scheme", "4+1", *TINY, cwd=tmp_path)
    assert done.returncode == 1
    assert "4+1 LOST DATA: 2 of its nodes failed" in done.stdout


def test_json(tmp_path: Path) -> None:
    done = run("--on", ".", *TINY, "--json", cwd=tmp_path)
    found = json.loads(done.stdout)
    assert found["schema"] == "leadline.protection/1"
    assert found["complete"]
    assert [(cell["scheme"], cell["vms"]) for cell in found["cells"]] == [("3+2", 1), ("3x", 1), ("3+2", 2), ("3x", 2)]
    assert all(one["survived"] for one in found["failures"])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ((), "neither --on nor --node"),
        (("--on", ".", "--node", "."), "both --on and --node"),
        (("--on", "."), "nobody to ask"),
        (("--on", "nowhere", "--yes"), "no such folder, file or device"),
        (("--on", ".", "--vms", "a", "--yes"), "numbers, by commas"),
        (("--on", ".", "--nodes", "0", "--yes"), "--nodes: 0"),
        (("--on", ".", "--scheme", "3-2", "--yes"), "K+M or Nx"),
        (("--clean", "nowhere"), "no such folder, file or device"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(words: tuple[str, ...], part: str, tmp_path: Path) -> None:
    done = run(*words, cwd=tmp_path)
    assert done.returncode == 2
    assert part in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_stops_the_load_at_once_and_removes_what_was_made(tmp_path: Path) -> None:
    process = started(tmp_path, *LONG)
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert time.monotonic() - begin < 3.0  # a second for the load; the rest for a busy machine to remove and exit
    assert process.returncode == 130
    assert "interrupted; what was made is removed, and nothing is kept but what is printed" in err
    assert "No round was measured." in out
    assert list(tmp_path.iterdir()) == []


def test_ctrl_c_keeps_the_rounds_that_were_measured(tmp_path: Path) -> None:
    process = started(tmp_path, "--vms", "1", "--size-per-vm", "8M", "--seconds", "0.3", "--repeats", "200", "--yes")
    time.sleep(3.0)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=20)
    assert process.returncode == 130
    assert "data MB/s" in out
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_run_left_is_removed_by_the_next_start(tmp_path: Path) -> None:
    process = started(tmp_path, *LONG)
    process.kill()
    process.communicate()
    assert len(list(tmp_path.iterdir())) == 1
    done = subprocess.run([BIN, "metrics"], capture_output=True, text=True, check=True)
    assert "what a killed run left behind" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_killed_run_of_somebody_else_is_found_and_removed(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = started(tmp_path, *LONG)
    process.kill()
    process.communicate()
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path_factory.mktemp("another-home")))
    left = list(tmp_path.iterdir())
    assert [path.name.startswith("leadline-protect-") for path in left] == [True]
    assert "left by a killed run" in run("--on", ".", *TINY, cwd=tmp_path).stderr
    assert f"removed {left[0].name}" in run("--clean", ".", cwd=tmp_path).stdout
    assert list(tmp_path.iterdir()) == []
    assert "nothing left" in run("--clean", ".", cwd=tmp_path).stdout


def test_a_write_that_fails_is_one_line(tmp_path: Path) -> None:
    command = f"ulimit -f 1; exec {BIN} bench protect --on . {' '.join(TINY)}"
    done = subprocess.run(["bash", "-c", command], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 4, done.stderr
    assert "writing failed: 1024 of 65536 bytes written" in done.stderr
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []
