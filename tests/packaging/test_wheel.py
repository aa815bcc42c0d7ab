"""The wheel in an empty environment away from the source tree: every use case runs, and how large and fast it is."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from scripts import dist

WHEEL = os.environ.get("LEADLINE_WHEEL", "")  # `make dist` sets it
BASE_MIB_MAX = 200.0
OPTIONAL = {"pyarrow", "polars", "psycopg", "asyncssh", "pyVmomi", "pyeclib", "distributed", "pandas", "scipy"}

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not WHEEL, reason="`make dist` builds a wheel and tests it")]


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of programs of an environment that has only the wheel and what it needs."""
    dist.install(Path(WHEEL), tmp_path_factory.mktemp("warm") / "environment")
    folder = tmp_path_factory.mktemp("empty") / "environment"
    installed, took_s = dist.install(Path(WHEEL), folder)
    sys.stderr.write(f"\nbase: {dist.size_mib(folder):.0f} MiB, installed from a warm cache in {took_s:.1f} s\n")
    return installed


def run(programs: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A command in a folder away from the source tree, with nothing of this environment."""
    kept = {name: os.environ[name] for name in ("PATH", "SYSTEMROOT", "TMPDIR") if name in os.environ}
    env = {**kept, "HOME": str(folder), "LEADLINE_HOME": str(folder / "home"), "PYTHONIOENCODING": "utf-8"}
    began = time.monotonic()
    program = str(programs / "leadline")
    done = subprocess.run([program, *words], check=False, cwd=folder, env=env, capture_output=True, text=True)
    sys.stderr.write(f"leadline {' '.join(words)}: {time.monotonic() - began:.2f} s\n")
    assert "Traceback" not in done.stderr
    return done


def test_the_base_is_small_and_has_nothing_optional(programs: Path) -> None:
    (packages,) = {path.parent for path in programs.parent.rglob("numpy") if path.parent.name == "site-packages"}
    assert not OPTIONAL & {path.name for path in packages.iterdir()}
    assert dist.size_mib(programs.parent) <= BASE_MIB_MAX


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("diagnose", "examples/incidents/throttled-wal-disk"), "Yes, it is the disk"),
        (("simulate", "iops-cap"), "iops-cap, simulated storage-path"),
        (("simulate", "examples/scenarios/iops-cap.yaml", "--quiet"), "iops-cap, simulated storage-path"),
        (("plan", "queues", "--set", "iops=40000", "--set", "latency_ms=1"), "outstanding"),
        (("audit", "examples/easy/inventory.yaml"), "rules"),
        (("reproduce", "iops-cap-latency"), "iops-cap-latency"),
        (("explain", "docs/guides/sweep.md"), "The sweep"),
        (("explain", "cpu-ready-high"), "CPU101"),
        (("lab", "run", "examples/lab/pvscsi-vs-lsi.yaml", "--plan"), ""),
        (("doctor",), ""),
    ],
    ids=lambda words: " ".join(words[:2]) if isinstance(words, tuple) else "",
)
def test_a_use_case_runs(programs: Path, tmp_path: Path, words: tuple[str, ...], shown: str) -> None:
    done = run(programs, tmp_path, *words)
    assert done.returncode in (0, 1) or words[0] == "lab", done.stderr
    assert shown in done.stdout


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.13"])
def test_one_wheel_is_for_every_python(tmp_path: Path, version: str) -> None:
    python = dist.interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} on this machine")
    installed, _ = dist.install(Path(WHEEL), tmp_path / "environment", python=python)
    done = run(installed, tmp_path, "diagnose", "examples/incidents/throttled-wal-disk")
    assert "Yes, it is the disk" in done.stdout
    shown = subprocess.run([installed / "python", "--version"], check=True, capture_output=True, text=True)
    assert f"Python {version}." in shown.stdout


@pytest.mark.skipif(shutil.which("fio") is None or sys.platform != "linux", reason="needs fio on Linux")
def test_load_is_measured(programs: Path, tmp_path: Path) -> None:
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    words = (
        "bench",
        "run",
        "hci-4k-read",
        "--on",
        str(scratch),
        "--set-size",
        "8m",
        "--seconds",
        "1",
        "--quiet",
        "--yes",
    )
    done = run(programs, tmp_path, *words)
    assert done.returncode == 0, done.stderr
    assert not list(scratch.iterdir())


def test_what_needs_an_extra_names_it(programs: Path, tmp_path: Path) -> None:
    done = run(programs, tmp_path, "collect", "postgresql", "host=127.0.0.1", "-o", "db", "--seconds", "9")
    assert done.returncode == 4
    assert "pip install 'leadline[postgresql]'" in done.stderr
    done = run(programs, tmp_path, "import", "examples/incidents/throttled-wal-disk", "-o", "incident.parquet")
    assert done.returncode == 4
    assert "pip install 'leadline[parquet]'" in done.stderr
