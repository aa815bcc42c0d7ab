"""`leadline bench run --tool vdbench` as a user sees it; a stand-in is run, the program itself never was."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.benchmarks.test_vdbench import STAND_IN
from tests.command_line import leadline

SHORT = ("--set-size", "2m", "--seconds", "2", "--rounds", "1", "--warm-up", "0", "--yes")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder to work in, with vdbench unpacked beside it."""
    (tmp_path / "vdbench").mkdir()
    script = tmp_path / "vdbench" / "vdbench"
    script.write_text(f'#!/bin/sh\nexec {shlex.quote(sys.executable)} {shlex.quote(str(STAND_IN))} "$@"\n')
    script.chmod(0o755)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "hosts.txt").write_text("127.0.0.1\n")
    text = "name: t\nio_settings: {tool: vdbench, working_set: 2m}\nio: [{block: 8k}]\n"
    (tmp_path / "w.yaml").write_text(text)
    return tmp_path


def run(*words: str, cwd: Path, named: str = "vdbench") -> subprocess.CompletedProcess[str]:
    env = os.environ | {"LEADLINE_HOME": str(cwd / "home"), "LEADLINE_VDBENCH": str(cwd / named)}
    return leadline(*words, cwd=cwd, env=env)


def test_a_run_shows_its_plan_and_the_figures_of_vdbench(folder: Path) -> None:
    done = run("bench", "run", "hci-8k-50-50", "--on", "scratch", "--tool", "vdbench", *SHORT, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert "note: vdbench takes no seed" in done.stderr
    assert "1,000" in done.stdout
    assert list((folder / "scratch").iterdir()) == []
    shown = json.loads(run("runs", "show", "last", "--json", cwd=folder).stdout)["run"]
    assert (shown["tool"], shown["state"], shown["tool_version"]) == ("vdbench", "done", "5.04.07")
    assert shown["workload"]["io_settings"]["tool"] == "vdbench"


def test_the_workload_may_name_the_tool_and_the_command_line_another(folder: Path) -> None:
    missing = run("bench", "run", "w.yaml", "--on", "scratch", *SHORT, cwd=folder, named="nowhere")
    assert missing.returncode == 4
    assert "set LEADLINE_VDBENCH to its folder" in " ".join(missing.stderr.split())
    assert "oracle.com" in missing.stderr
    unknown = run("bench", "run", "w.yaml", "--on", "scratch", "--tool", "dd", *SHORT, cwd=folder)
    assert unknown.returncode == 2
    assert "expected one of fio, vdbench" in " ".join(unknown.stderr.split())
    refused = run("bench", "run", "pgbench", "--on", "new", "--tool", "vdbench", "--yes", cwd=folder)
    assert refused.returncode == 2
    assert "kind database" in refused.stderr


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("bench hosts w.yaml --hosts hosts.txt", "a fio server, which starts no vdbench; expected ssh://"),
        ("bench run w.yaml --hosts hosts.txt", "a fio server, which starts no vdbench; expected ssh://"),
        ("bench density w.yaml --on scratch --service-level p95<=20ms", "tool vdbench; expected I/O by fio"),
    ],
)
def test_what_fio_alone_loads_refuses_another_tool(folder: Path, words: str, problem: str) -> None:
    done = run(*words.split(), "--yes", cwd=folder)
    assert done.returncode == 2, done.stderr
    assert problem in " ".join(done.stderr.split())


def test_a_data_file_that_nobody_named_is_refused(folder: Path) -> None:
    (folder / "data").write_bytes(bytes(2**21))
    done = run("bench", "run", "hci-8k-50-50", "--on", "data", "--tool", "vdbench", *SHORT, cwd=folder)
    assert done.returncode == 2
    assert "would be overwritten" in done.stderr
    assert (folder / "data").read_bytes() == bytes(2**21)
