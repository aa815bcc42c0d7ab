"""`make run` without Rust, or with one that is too old: what to type is named, or a wheel in dist/ serves."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

PROGRAMS = (
    "bash",
    "cat",
    "cp",
    "dirname",
    "env",
    "grep",
    "head",
    "ls",
    "mkdir",
    "mv",
    "rm",
    "sed",
    "sort",
    "touch",
    "tr",
    "uname",
)
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="setup.sh is for Linux")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A folder with what `setup.sh` reads, and a PATH of a few programs and a uv that only says what it is asked."""
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "scripts" / "setup.sh", tmp_path / "scripts")
    shutil.copy(ROOT / "requirements-run.lock", tmp_path)
    (tmp_path / "bin").mkdir()
    for name in PROGRAMS:
        program = shutil.which(name)
        assert program is not None
        (tmp_path / "bin" / name).symlink_to(program)
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    program_file(tmp_path, "uv", 'mkdir -p .venv/bin; touch .venv/bin/python; echo "uv $*" >>asked.txt')
    return tmp_path


def program_file(checkout: Path, name: str, script: str) -> None:
    path = checkout / "bin" / name
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)


def setup(checkout: Path, level: str) -> subprocess.CompletedProcess[str]:
    env = {**os.environ, "PATH": str(checkout / "bin")}
    command = [str(checkout / "scripts" / "setup.sh"), level]
    return subprocess.run(command, check=False, capture_output=True, text=True, env=env, timeout=60)


@pytest.mark.parametrize(
    ("programs", "said", "command"),
    [
        ({}, "cargo not found; ", "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"),
        ({"apt-cache": "echo Package: rustup"}, "cargo not found; ", "apt-get install rustup && rustup default stable"),
        ({"apt-cache": "exit 100"}, "cargo not found; ", "curl --proto"),
        (
            {"cargo": "echo 'cargo 1.63.0 (fd9c4297c 2022-07-01)'", "rustup": ":"},
            "cargo 1.63.0 is too old; ",
            "rustup update stable && rustup default stable",
        ),
        ({"cargo": "exit 1"}, "cargo of no known version is too old; ", "curl --proto"),
    ],
    ids=["none", "apt", "no-package", "old", "broken"],
)
def test_what_to_type_is_named(checkout: Path, programs: dict[str, str], said: str, command: str) -> None:
    for name, script in programs.items():
        program_file(checkout, name, script)
    for level in ("run", "test"):
        done = setup(checkout, level)
        assert done.returncode == 4
        assert f"{said}Rust 1.85 or newer is needed. Run:\n  {command}" in done.stderr
        assert "put a wheel into dist/" in done.stderr
    assert not (checkout / "asked.txt").exists()


def test_a_wheel_serves_for_running(checkout: Path) -> None:
    wheel = checkout / "dist" / f"leadline-0.1.0-cp311-abi3-manylinux2014_{platform.machine()}.whl"
    wheel.parent.mkdir()
    wheel.write_bytes(b"")
    (wheel.parent / "leadline-0.1.0-cp311-abi3-manylinux2014_other.whl").write_bytes(b"")
    done = setup(checkout, "run")
    assert done.returncode == 0, done.stderr
    assert "what runs is that wheel, not the sources here" in done.stderr
    last = (checkout / "asked.txt").read_text().splitlines()[-1]
    assert last.endswith(f"--no-deps --reinstall-package leadline dist/{wheel.name}")
    assert (checkout / ".venv" / ".ready-simulator").exists()
    assert not (checkout / ".venv" / ".ready-test").exists()
    assert setup(checkout, "test").returncode == 4  # tests need the sources


@pytest.mark.parametrize("version", ["1.85.0", "1.95.0-nightly", "2.0.1"])
def test_a_new_rust_is_used(checkout: Path, version: str) -> None:
    program_file(checkout, "cargo", f"case $1 in --version) echo 'cargo {version}' ;; *) exit 1 ;; esac")
    done = setup(checkout, "run")
    assert "compiling the readers" in done.stderr
    assert "the Rust code does not compile" in done.stderr
