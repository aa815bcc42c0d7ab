"""`leadline bench density` as a user sees it, with Ctrl-C and kill -9."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from leadline.core.system.cgroups import PREFIX, Hierarchies, InstanceLimits, find
from leadline.core.system.tools import find_program
from tests.command_line import BIN, leadline

pytestmark = pytest.mark.skipif(find_program("fio") is None, reason="fio is not installed")
EASY = ("hci-8k-50-50", "--on", "on", "--rate", "40", "--set-size", "1m", "--service-level", "p50<=20s")
SHORT = ("--seconds", "11", "--rounds", "1", "--warm-up", "0", "--yes")


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "LEADLINE_HOME": str(folder / "home")}


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return leadline("bench", "density", *words, cwd=cwd, env=environment(cwd))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder to work on and a store with one density run of one instance."""
    path = tmp_path_factory.mktemp("density")
    (path / "on").mkdir()
    return path


@pytest.fixture(scope="module")
def done(folder: Path) -> subprocess.CompletedProcess[str]:
    return run(*EASY, *SHORT, "--max", "1", "--html", "curve.html", cwd=folder)


@pytest.mark.real
@pytest.mark.slow
def test_the_answer_the_curve_and_the_page(done: subprocess.CompletedProcess[str], folder: Path) -> None:
    assert done.returncode == 0, done.stderr
    assert "At least 1 instance fits, the most asked for" in done.stdout
    assert "█" in done.stdout
    assert "fairness" in done.stdout
    assert max(map(len, (done.stdout + done.stderr).splitlines())) <= 80
    assert "makes a folder of its own in on: 1 MiB each" in done.stderr
    assert list((folder / "on").iterdir()) == []
    page = (folder / "curve.html").read_text()
    assert page.count("<circle") == 2
    assert page.count("<figure") == 2
    assert "p50 of the worst instance, ms" in page
    assert "20000 is asked" in page or "2e+04 is asked" in page
    assert not re.search(r"""(src|href)=["']?(https?:)?//""", page)
    assert "Content-Security-Policy" in page


@pytest.mark.real
@pytest.mark.slow
@pytest.mark.usefixtures("done")
def test_two_results_side_by_side(folder: Path) -> None:
    shown = run("--compare", "last", "last", cwd=folder)
    assert shown.returncode == 0, shown.stderr
    assert "That as many fit cannot be ruled out." in " ".join(shown.stdout.split())
    assert max(map(len, shown.stdout.splitlines())) <= 80
    found = json.loads(run("--compare", "last", "last", "--json", "--html", "two.html", cwd=folder).stdout)
    assert found["schema"] == "leadline.density-comparison/1"
    assert found["full"]["change"] == 0.0
    assert found["worse"] is False
    assert (folder / "two.html").read_text().count('class="key s') == 4  # both are named below both charts


@pytest.mark.real
@pytest.mark.slow
def test_json_and_too_few_as_an_exit_status(folder: Path) -> None:
    shown = run(*EASY, *SHORT, "--max", "1", "--require", "2", "--json", "--quiet", cwd=folder)
    assert shown.returncode == 1, shown.stderr
    assert shown.stderr == ""
    found = json.loads(shown.stdout)
    assert found["schema"] == "leadline.density/1"
    level = found["density"]["levels"][0]
    assert (found["density"]["state"], level["count"], level["state"]) == ("done", 1, "held")
    assert level["per_s"]["mean"] == pytest.approx(40.0, rel=0.3)
    assert {"p50", "p90"} <= set(level["percentiles_ms"])
    assert found["density"]["answer"]["held"] == 1
    listed = leadline("runs", "show", level["run"], env=environment(folder))
    assert "1 instance of the density run" in " ".join(listed.stdout.split())


@pytest.mark.parametrize(
    ("words", "status", "part"),
    [
        ((), 2, "nothing to do"),
        (("hci-8k-50-50",), 2, "no --service-level"),
        (("hci-8k-50-50", "--resume", "last"), 2, "WORKLOAD and --resume"),
        ((*EASY, "--seconds", "10"), 2, "nobody to ask"),
        ((*EASY[:-1], "p95<20"), 2, "--service-level: 'p95<20'"),
        ((*EASY, "--memory", "big"), 2, "--memory"),
        ((*EASY, "--rate", "0"), 2, "--rate"),
        ((*EASY, "--seconds", "0.1"), 2, "seconds of at least 1"),
        ((*EASY, "--start", "9", "--max", "8"), 2, "--start"),
        ((*EASY, "--html", "none/x.html"), 2, "there is no folder"),
        ((*EASY, "--hosts", "none.txt"), 3, "not readable"),
        (("--resume", "1999"), 2, "no such run"),
        (("--compare", "1999", "last"), 2, "no such run"),
    ],
)
def test_mistakes_are_one_line_and_write_nothing(
    words: tuple[str, ...], status: int, part: str, tmp_path: Path
) -> None:
    (tmp_path / "on").mkdir()
    shown = run(*words, cwd=tmp_path)
    assert shown.returncode == status, shown.stderr
    assert part in shown.stderr
    assert "Traceback" not in shown.stderr
    assert shown.stdout == ""
    assert list((tmp_path / "on").iterdir()) == []


@pytest.mark.real
@pytest.mark.slow
def test_when_no_instance_could_run_the_tool_failed(tmp_path: Path) -> None:
    (tmp_path / "hosts.txt").write_text("127.0.0.1,1\n")
    shown = run(*EASY, "--hosts", "hosts.txt", "--seconds", "4", "--rounds", "3", "--yes", cwd=tmp_path)
    assert shown.returncode == 4, shown.stderr
    assert "At 1 could not run (instance 1: 127.0.0.1,1: fill:" in " ".join(shown.stdout.split())


def started(folder: Path) -> subprocess.Popen[str]:
    """A run of three limited instances whose load is running."""
    (folder / "on").mkdir()
    words = ["--start", "3", "--max", "3", "--cpus", "0.3", "--seconds", "60", "--rounds", "1", "--warm-up", "0"]
    process = subprocess.Popen(
        ["env", "--default-signal=INT", BIN, "bench", "density", *EASY, *words, "--yes"],
        cwd=folder,
        env=environment(folder),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    limit = time.monotonic() + 60
    while sum(1 for path in folder.glob("home/runs/*/i000?-round-1.json") if path.stat().st_size) < 3:
        assert time.monotonic() < limit, "no load"
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    return process


def groups() -> list[Path]:
    where = find(InstanceLimits(cpus=1.0))
    folders = where.folders.values() if isinstance(where, Hierarchies) else ()
    return [path for folder in folders for path in folder.glob(f"{PREFIX}-*")]


def load_in(folder: Path) -> list[str]:
    """Processes of fio that work in the folder."""
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = path.read_bytes().decode(errors="replace")
        except OSError:
            continue
        if "fio" in words and str(folder) in words:
            found.append(words)
    return found


@pytest.mark.real
@pytest.mark.slow
def test_ctrl_c_stops_the_load_and_removes_files_and_groups(tmp_path: Path) -> None:
    process = started(tmp_path)
    assert len(load_in(tmp_path)) >= 3
    own = [path for path in groups() if f"-{process.pid}-" in path.name]
    begin = time.monotonic()
    process.send_signal(signal.SIGINT)
    while load_in(tmp_path):
        assert time.monotonic() - begin < 5.0  # within a second on a machine that has one to spare
        time.sleep(0.02)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130, err
    assert "Traceback" not in err
    assert "leadline bench density --resume" in " ".join(out.split())
    assert list((tmp_path / "on").iterdir()) == []
    assert [path for path in own if path.exists()] == []
    listed = leadline("runs", "list", "--json", env=environment(tmp_path))
    assert [own["state"] for own in json.loads(listed.stdout)["runs"]] == ["interrupted"]


@pytest.mark.real
@pytest.mark.slow
def test_a_killed_run_is_told_and_goes_on(tmp_path: Path) -> None:
    process = started(tmp_path)
    process.kill()
    process.communicate()
    limit = time.monotonic() + 10
    while load_in(tmp_path):  # the kernel ends them with their parent
        assert time.monotonic() < limit
        time.sleep(0.02)
    left = list((tmp_path / "on").iterdir())
    assert len(left) == 1
    again = run("--resume", "last", cwd=tmp_path)
    assert again.returncode == 2
    assert "goes on with" in again.stderr
    assert "nobody to ask" in again.stderr
    told = run(*EASY, *SHORT, "--max", "1", cwd=tmp_path)
    assert told.returncode == 0, told.stderr
    assert list((tmp_path / "on").iterdir()) == []  # the next start has removed it
    assert [path for path in groups() if f"-{process.pid}-" in path.name] == []
