"""How the program ends early: a polite kill, a lost terminal, a fault of its own, and what was left by a kill."""

from __future__ import annotations

import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from leadline import __version__
from leadline.faces.cli import endings, main

DATA = "sentinel-data"
BIN = Path(sys.executable).parent / "leadline"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Temporary files of the test alone, for this process and its children."""
    path = tmp_path / "temporary"
    path.mkdir()
    monkeypatch.setenv("TMPDIR", str(path))
    monkeypatch.setattr(tempfile, "tempdir", str(path))
    return path


def _failing(message: str) -> None:
    try:
        int(message)
    except ValueError as error:
        raise LookupError(message) from error


_ODD = """
import os, signal
try:
    os.kill(os.getpid(), {number})
except KeyboardInterrupt:
    raise ValueError("as a library passes it on")
"""
_IMPORTS_IT = """
import sys
from leadline.faces.cli import main
main.build_app = lambda: lambda **_: __import__("odd")
sys.argv = ["leadline", "metrics"]
main.run()
"""


@pytest.mark.parametrize(("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_during_an_import_is_no_fault(
    tmp_path: Path, temporary: Path, number: signal.Signals, status: int
) -> None:
    (tmp_path / "odd.py").write_text(_ODD.format(number=int(number)))
    done = subprocess.run(
        [sys.executable, "-c", _IMPORTS_IT], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr.count("\n")) == (status, 1)
    assert "nothing was left behind" in done.stderr
    assert list(temporary.iterdir()) == []


def test_a_fault_of_ours_is_one_line_and_a_report_without_data(
    temporary: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(main, "build_app", lambda: lambda **_: _failing(DATA))
    monkeypatch.setattr(
        sys, "argv", ["leadline", "show", "sentinel-file", "--metric=sentinel-metric", "-o", "sentinel-x"]
    )
    with pytest.raises(SystemExit) as ended:
        main.run()
    assert ended.value.code == 70
    told = capsys.readouterr()
    (report,) = temporary.iterdir()
    assert told.out == ""
    assert told.err.count("\n") == 1
    assert str(report) in told.err
    assert "LookupError" in told.err
    text = report.read_text()
    assert report.stat().st_mode & 0o777 == 0o600
    assert f"leadline {__version__}" in text
    assert "command: leadline show --metric" in text
    assert "builtins.LookupError" in text
    assert "builtins.ValueError" in text
    assert "in _failing" in text
    assert "sentinel" not in text + told.err


def test_a_report_that_cannot_be_written_is_said(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/nonexistent")
    with pytest.raises(SystemExit) as ended:
        endings.unforeseen(KeyError("x"))
    assert ended.value.code == 70
    assert "No report could be written (No such file or directory)" in capsys.readouterr().err


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_polite_kill_cleans_up_as_ctrl_c_does(temporary: Path, tmp_path: Path, number: signal.Signals) -> None:
    """A verb that has a scratch folder and works on."""
    code = (
        "import sys, time\n"
        "from leadline.faces.cli import main\n"
        "from leadline.core.system.leftovers import scratch_folder\n"
        "def work(**_):\n"
        "    with scratch_folder('test') as folder:\n"
        "        print(folder, flush=True)\n"
        "        time.sleep(60)\n"
        "main.build_app = lambda: work\n"
        "sys.argv = ['leadline', 'rules']\n"
        "main.run()\n"
    )
    words = [sys.executable, "-c", code]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    assert folder.parent == temporary
    assert folder.is_dir()
    process.send_signal(number)
    _, talk = process.communicate(timeout=20)
    assert process.returncode == 128 + number
    assert talk == ("interrupted" if number == signal.SIGINT else f"ended by {number.name}") + (
        "; nothing was left behind\n"
    )
    assert list(temporary.iterdir()) == []


def test_a_signal_the_caller_ignores_stays_ignored(tmp_path: Path) -> None:
    """As under nohup."""
    code = (
        "import signal, os\n"
        "from leadline.faces.cli.endings import end_as_by_ctrl_c\n"
        "signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "end_as_by_ctrl_c()\n"
        "os.kill(os.getpid(), signal.SIGHUP)\n"
        "print('went on')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=tmp_path)
    assert done.stdout == "went on\n"


def test_the_next_start_removes_what_a_kill_left_and_says_so(temporary: Path, tmp_path: Path) -> None:
    code = (
        "import time\n"
        "from leadline.core.system.leftovers import scratch_folder\n"
        "with scratch_folder('test') as folder:\n"
        "    (folder / 'numbers.csv').write_bytes(bytes(1536))\n"
        "    print(folder, flush=True)\n"
        "    time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    process.kill()
    process.wait()
    process.stdout.close()
    assert folder.is_dir()
    missing = tmp_path / "missing.csv"
    helped = subprocess.run([BIN, "show", "--help"], capture_output=True, text=True, check=True)
    assert helped.stderr == ""
    assert folder.is_dir()
    done = subprocess.run([BIN, "show", missing], capture_output=True, text=True, check=False)
    assert done.returncode == 3
    removed = f"removed what a killed run left behind: {str(folder)!r} (folder with numbers.csv, 1.5 KiB)"
    assert done.stderr.splitlines()[0] == removed
    assert not folder.exists()
