"""Files that verbs write: inputs and strangers' files stay, full disks are one line, stdout's failures cost no file."""

from __future__ import annotations

import hashlib
import inspect
import os
import resource
import subprocess
import sys
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from leadline.core.model.errors import LeadlineError, ToolError, UsageError
from leadline.faces.cli.main import build_app
from tests.command_line import BIN
from tests.conftest import ROOT
from tests.faces.test_cli import VERBS

NO_FILES = ("collect linux", "collect postgresql", "collect mysql", "collect qemu")  # append to a folder of recordings


@cache
def app() -> Any:
    return build_app()


def invoke(*words: str | Path) -> Any:
    return CliRunner().invoke(app(), [str(word) for word in words])


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def run(*words: str | Path, cwd: Path, stdout: Any) -> subprocess.CompletedProcess[str]:
    command = [str(BIN), *map(str, words)]
    return subprocess.run(command, cwd=cwd, stdout=stdout, stderr=subprocess.PIPE, text=True, check=False, timeout=120)


def sums(folder: Path) -> dict[str, str]:
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): hashlib.md5(path.read_bytes()).hexdigest() for path in files}


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("recording") / "cap.csv"
    assert invoke("generate", path, "--vms", "2", "--minutes", "2", "-q").exit_code == 0
    return path.read_bytes()


@pytest.fixture
def folder(recording: bytes, tmp_path: Path) -> Path:
    """A recording, an inventory, and other names for the recording."""
    (tmp_path / "cap.csv").write_bytes(recording)
    (tmp_path / "inventory.yaml").write_text("leadline_inventory: 1\n")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "cap.csv")
    (tmp_path / "soft.csv").symlink_to("cap.csv")
    return tmp_path


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_every_verb_that_writes_a_file_offers_force(verb: tuple[str, ...]) -> None:
    command = getattr(import_module(VERBS[verb]), "command", None)
    if command is None or " ".join(verb) in NO_FILES:
        return
    source = inspect.getsource(command)
    if {"output", "html", "sarif"} & set(command.__annotations__):
        assert command.__annotations__["force"] == "Force"
        assert "output_file(ctx, " in source


def test_nobody_else_writes_aside() -> None:
    others = [
        path.relative_to(ROOT)
        for path in (ROOT / "src").rglob("*.py")
        if any(part in path.read_text(encoding="utf-8") for part in ('.part"', "aside.replace(", 'path.open("w'))
        and path.name not in ("outputs.py", "guest_linux.py", "showing.py", "pipes.py", "unit_index.py", "images.py")
    ]
    assert others == []


VERBS_THAT_READ = (
    ("import", "-o"),
    ("show", "-o"),
    ("diagnose", "--html"),
    ("audit", "--sarif"),
    ("calibrate", "-o"),
    ("trace", "model", "-o"),
)


@pytest.mark.parametrize("verb", VERBS_THAT_READ, ids=lambda words: words[0])
def test_no_verb_replaces_what_it_reads(verb: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    before = sums(folder)
    for name in ("cap.csv", "hard.csv", "soft.csv", "./cap.csv"):
        for force in ((), ("--force",)):
            done = invoke(*verb[:-1], "cap.csv", verb[-1], name, *force)
            assert isinstance(done.exception, UsageError)
            assert "is a file this command reads" in str(done.exception)
    assert sums(folder) == before


@pytest.mark.parametrize(
    "words",
    [
        ("plan", "queues", "inventory.yaml", "--input", "in.yaml", "--html", "in.yaml"),
        ("diagnose", "cap.csv", "--baseline", "soft.csv", "--html", "hard.csv"),
        ("diagnose", "inventory.yaml", "--profile", "leadline.toml", "--html", "leadline.toml"),
        ("diagnose", "inventory.yaml", "--html", "leadline.toml"),
        ("simulate", "in.yaml", "--html", "in.yaml"),
        ("guest", "export", "--from", "in.yaml", "-o", "in.yaml"),
        ("bench", "run", "in.yaml", "--on", ".", "--yes", "--html", "in.yaml"),
        ("bench", "run", "ioping", "--on", "in.yaml", "--yes", "--html", "in.yaml"),
        ("bench", "sweep", "jobs.fio#one", "--on", ".", "--yes", "--html", "jobs.fio"),
        ("bench", "density", "in.yaml", "--on", ".", "--service-level", "p95<=9s", "--html", "in.yaml", "--yes"),
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_whatever_the_command_line_names_is_an_input(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    (folder / "in.yaml").write_text("name: my\nio: [{oio: 4}]\n")
    (folder / "jobs.fio").write_text("[one]\nrw=read\nsize=1m\n")
    (folder / "leadline.toml").write_text("")
    before = sums(folder)
    done = invoke(*words, "--force")
    assert "is a file this command reads" in str(done.exception), done.output
    assert sums(folder) == before


def test_in_an_input_folder_only_recordings_are_inputs(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    (folder / "old").mkdir()
    assert invoke("import", "cap.csv", "-o", "old/own.parquet", "-q").exit_code == 0
    before = sums(folder)
    done = invoke("import", ".", "-o", "old/own.parquet", "--force")
    assert "in a folder it reads" in str(done.exception)
    assert sums(folder) == before
    for _ in range(2):  # the report of the first time lies in the folder that is read again
        assert invoke("diagnose", ".", "--html", "report.html", "-q").exit_code == 0


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    verb=st.sampled_from(["import -o", "show -o", "diagnose --html", "facts -o", "guest export -o"]),
    data=st.binary(min_size=1, max_size=300),
)
def test_a_strangers_file_stays_without_force(verb: str, data: bytes, folder: Path) -> None:
    *words, option = verb.split()
    path = folder / "precious.csv"
    path.write_bytes(data)
    reads = [folder / "cap.csv"] if words[0] in ("import", "show", "diagnose") else []
    done = invoke(*words, *reads, option, path)
    assert isinstance(done.exception, UsageError)
    assert "add --force" in str(done.exception)
    assert path.read_bytes() == data
    path.unlink()


@pytest.mark.parametrize(
    "words",
    [
        ("import", "cap.csv", "-o", "x.parquet"),
        ("show", "cap.csv", "-o", "x.csv"),
        ("diagnose", "cap.csv", "--html", "x.html"),
        ("audit", "inventory.yaml", "--sarif", "x.sarif"),
        ("facts", "-o", "x.json"),
        ("guest", "export", "-o", "x.ps1"),
        ("plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1", "--html", "x.html"),
        ("generate", "x.csv", "--vms", "2", "--minutes", "1"),
    ],
    ids=lambda words: words[0],
)
def test_what_a_verb_wrote_it_may_replace_and_force_replaces_the_rest(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(folder)
    there = names(folder)
    for _ in range(2):
        done = invoke(*words)
        assert done.exit_code == 0, done.output
    new = names(folder) - there
    assert all(name.startswith("x.") for name in new), "nothing temporary is left"
    path = folder / next(word for word in words if word.startswith("x."))
    path.write_text("mine")
    refused = invoke(*words)
    assert isinstance(refused.exception, UsageError)
    assert path.read_text() == "mine"
    assert invoke(*words, "--force").exit_code == 0
    assert path.stat().st_size > 4


WRITERS = (
    ("import", "cap.csv", "-o", "x.parquet"),
    ("show", "cap.csv", "-o", "x.csv"),
    ("diagnose", "cap.csv", "--html", "x.html"),
    ("generate", "x.csv", "--vms", "4", "--minutes", "5"),
)


@pytest.mark.parametrize("words", WRITERS, ids=lambda words: words[0])
def test_a_disk_that_fills_up_is_told_and_the_old_file_stays(
    words: tuple[str, ...], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A limit on the size of files stands for the disk: writing fails with EFBIG at a byte in the middle."""
    monkeypatch.chdir(folder)
    assert invoke(*words).exit_code == 0
    before = sums(folder)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (8192, limits[1]))
    try:
        done = invoke(*words)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert isinstance(done.exception, ToolError), done.exception
    assert "cannot be written" in str(done.exception)
    assert "is unchanged" in str(done.exception)
    assert sums(folder) == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [WRITERS[0], WRITERS[2], WRITERS[3]], ids=lambda words: words[0])
def test_a_device_is_refused_and_stays_one(words: tuple[str, ...], folder: Path) -> None:
    before = Path("/dev/full").stat().st_rdev
    own = [
        str(folder / word) if word == "cap.csv" else "/dev/full" if word.startswith("x.") else word for word in words
    ]
    done = invoke(*own, "--force")
    assert isinstance(done.exception, UsageError)
    assert "/dev/full: is a device" in str(done.exception)
    assert Path("/dev/full").stat().st_rdev == before


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="this system has no /dev/full")
@pytest.mark.parametrize("words", [("metrics",), ("explain", "psi"), ("plan",), ("--help",)], ids=" ".join)
def test_a_full_stdout_is_one_line(words: tuple[str, ...], folder: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = run(*words, cwd=folder, stdout=full)
    assert done.returncode == 4
    assert done.stderr.startswith("error: stdout: cannot be written (No space left on device); expected ")
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("kind", ["closed pipe", "full", "closed"])
def test_a_report_is_written_whatever_happens_to_stdout(kind: str, folder: Path) -> None:
    words = ("diagnose", "cap.csv", "--all", "--html", "r.html")
    if kind == "closed":
        line = f"{BIN} {' '.join(words)} >&-"
        done = subprocess.run(line, shell=True, cwd=folder, stderr=subprocess.PIPE, text=True, check=False, timeout=120)
    elif kind == "full":
        with Path("/dev/full").open("w") as full:
            done = run(*words, cwd=folder, stdout=full)
    else:
        read, write = os.pipe()
        os.close(read)
        with os.fdopen(write, "w") as pipe:
            done = run(*words, cwd=folder, stdout=pipe)
    assert done.returncode == (4 if kind == "full" else 0), done.stderr
    assert "Traceback" not in done.stderr
    assert "</html>" in (folder / "r.html").read_text()


def test_a_place_that_cannot_be_written_is_told_before_the_login(tmp_path: Path) -> None:
    """Nobody gave a password: whoever asks for it first says so instead."""
    words = ("collect", "vcenter", "vc.invalid", "-u", "me", "-o")
    for path in (tmp_path / "no" / "vc.parquet", tmp_path, Path("/proc/self/vc.parquet")):
        done = invoke(*words, path)
        assert isinstance(done.exception, UsageError)
        assert str(done.exception).startswith(f"--output {path}: ")


@pytest.mark.parametrize("source", ["linux", "postgresql", "qemu"])
def test_a_folder_that_cannot_be_written_is_told_before_recording(source: str, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    (tmp_path / "file").write_text("mine")
    target = ["/no.qmp"] if source == "qemu" else []
    for path in ("link", "file", "file/in"):
        done = invoke("collect", source, *target, "-o", tmp_path / path, "--seconds", "9")
        assert isinstance(done.exception, LeadlineError)
        assert f"--output {tmp_path / path}" in str(done.exception)
    assert names(tmp_path) == {"file", "link"}


def test_a_recording_is_not_appended_through_a_planted_link(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("mine")
    (tmp_path / "guest").mkdir()
    (tmp_path / "guest" / "linux.txt").symlink_to("../victim")
    done = invoke("collect", "linux", "-o", tmp_path / "guest", "--seconds", "1")
    assert isinstance(done.exception, UsageError)
    assert (tmp_path / "victim").read_text() == "mine"


def test_outputs_cost_no_slow_import() -> None:
    code = (
        "import sys; before = set(sys.modules); import leadline.core.io.outputs; "
        "print(sorted(m for m in set(sys.modules) - before if m.split('.')[0] in ('pyarrow', 'numpy', 'hashlib')))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"
