"""The extension as `make run` builds it: without the simulator, which diagnosis does not need."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import ROOT

INCIDENT = ROOT / "examples" / "incidents" / "throttled-wal-disk"

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with Leadline's Python code and an extension without the simulator."""
    if shutil.which("cargo") is None:
        pytest.skip("cargo is not installed")
    words = ["cargo", "build", "--release", "--quiet", "--locked", "-p", "leadline-python", "--no-default-features"]
    subprocess.run([*words, "--target-dir", "target"], cwd=ROOT, check=True)  # the readers are compiled there already
    folder = tmp_path_factory.mktemp("package")
    skip = shutil.ignore_patterns("*.so", "__pycache__")
    shutil.copytree(ROOT / "src" / "leadline", folder / "leadline", ignore=skip)
    shutil.copy(ROOT / "target" / "release" / "lib_core.so", folder / "leadline" / "_core.abi3.so")
    return folder


def _leadline(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    code = "from leadline.faces.cli.main import run; run()"
    env = {**os.environ, "PYTHONPATH": str(package)}
    command = [sys.executable, "-c", code, *words]
    return subprocess.run(command, check=False, cwd=package, env=env, capture_output=True, text=True)


def test_diagnosis_does_not_need_it(package: Path) -> None:
    done = _leadline(package, "diagnose", str(INCIDENT))
    assert done.returncode in (0, 1), done.stderr
    assert "limit" in done.stdout


@pytest.mark.parametrize(
    "words",
    [
        ("simulate", str(ROOT / "examples/scenarios/iops-cap.yaml")),
        (
            "calibrate",
            str(INCIDENT / "iostat.txt"),
            "--entity",
            "loop1",
            "-o",
            "mine.yaml",
        ),
        ("plan", "qos"),
    ],
    ids=lambda words: words[0],
)
def test_what_needs_it_says_how_to_build_it(package: Path, words: tuple[str, ...]) -> None:
    done = _leadline(package, *words)
    assert done.returncode == 4
    (line,) = done.stderr.strip().splitlines()
    assert line.startswith("error: the simulator: not built; expected the extension with the simulator. ")
    assert "`make simulator` waits for it" in line
