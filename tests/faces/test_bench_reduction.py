"""`leadline bench reduction` as a user sees it, with Ctrl-C and kill -9, and `plan vsan` with its file."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from tests.app.reduction.data import write_data
from tests.command_line import BIN, leadline


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path_factory.mktemp("home")
    monkeypatch.setenv("LEADLINE_HOME", str(folder))
    return folder


@pytest.fixture
def data(tmp_path: Path) -> Path:
    write_data(tmp_path / "data.raw", 4000, 0.5, 3, zero_share=0.25)
    return tmp_path / "data.raw"


def run(*words: str | Path) -> subprocess.CompletedProcess[str]:
    return leadline("bench", "reduction", *words)


def document(*words: str | Path) -> dict[str, Any]:
    done = run(*words, "--json")
    assert done.returncode == 0, done.stderr
    plain: dict[str, Any] = json.loads(done.stdout)
    return plain


def test_text_fits_80_columns_and_says_what_matters(data: Path) -> None:
    done = run(data)
    assert done.returncode == 0, done.stderr
    assert max(map(len, done.stdout.splitlines()[2:])) <= 80
    assert "all of it was read" in done.stdout
    assert "25.0 %" in done.stdout
    assert "50.0 %" in done.stdout
    assert "vSAN compression" in done.stdout


def test_a_sample_says_how_much_was_read_and_how_to_go_on(data: Path) -> None:
    done = run(data, "--bytes", "4m", "--seed", "1")
    assert "drawn at random" in done.stdout
    assert "--resume" in done.stdout
    more = document("--resume", "last", "--bytes", "1g")
    assert more["is_whole"]
    assert more["block_sizes"][0]["duplicate_share"]["value"] == pytest.approx(0.5)
    assert run("--resume", "last").returncode == 2  # all was read: nothing is kept


def test_seconds_bound_a_run(data: Path) -> None:
    plain = document(data, "--seconds", "0.1")
    assert plain["seconds"] < 30
    assert plain["read_bytes"] > 0


@pytest.mark.parametrize(
    "words", [[], ["--resume", "none"], ["x", "--resume", "last"], ["/dev/null"], [".", "--bytes", "1k"], ["no-such"]]
)
def test_mistakes_are_one_line_and_a_status(words: list[str]) -> None:
    done = run(*words)
    assert done.returncode in (2, 3)
    assert len(done.stderr.splitlines()) == 1
    assert done.stdout == ""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_what_was_read_survives_its_end(tmp_path: Path, home: Path, number: signal.Signals) -> None:
    write_data(tmp_path / "data.raw", 16_000, 0.5, 3)
    process = subprocess.Popen(
        ["env", "--default-signal=INT", BIN, "bench", "reduction", tmp_path / "data.raw", "-q"],
        env={**os.environ, "PYTHONPATH": os.environ.get("PYTHONPATH", "")},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    end = time.monotonic() + 30
    while not list((home / "reduction").glob("*.json")):
        assert time.monotonic() < end
        time.sleep(0.01)
    time.sleep(0.2)
    process.send_signal(number)
    _, errors = process.communicate(timeout=30)
    if number == signal.SIGINT:
        assert process.returncode == 130
        assert "go on with: leadline bench reduction --resume" in errors
    assert document("--resume", "last")["block_sizes"][0]["duplicate_share"]["value"] == pytest.approx(0.5)


def test_plan_vsan_takes_the_file(data: Path, tmp_path: Path) -> None:
    file = tmp_path / "reduction.json"
    file.write_text(run(data, "--json").stdout)
    ratios = json.loads(file.read_text())["vsan"]
    for settings, key in (
        (["tier=data-warehouse"], "compression"),
        (["tier=data-warehouse", "efficiency=dedup"], "dedup"),
        (["architecture=esa"], "esa_compression"),
    ):
        words = [word for setting in [*settings, f"reduction={file}"] for word in ("--set", setting)]
        done = leadline("plan", "vsan", *words, "--json")
        assert done.returncode in (0, 1), done.stderr
        assert json.loads(done.stdout)["inputs"]["reduction"] == pytest.approx(ratios[key]["low"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (None, "is no number"),
        ("{", "cannot be read"),
        ('{"schema": "leadline.plan/1"}', "is no number"),
        ('{"schema": "leadline.reduction/1", "vsan": null}', "has no ratios of vSAN"),
        ('{"schema": "leadline.reduction/1", "vsan": {"compression": 3}}', "has no ratio compression"),
        ('{"schema": "leadline.reduction/1", "vsan": {"compression": {"low": NaN}}}', "has no ratio compression"),
    ],
)
def test_other_files_are_refused(tmp_path: Path, text: str | None, message: str) -> None:
    file = tmp_path / "other.json"
    if text is not None:
        file.write_text(text)
    done = leadline("plan", "vsan", "--set", f"reduction={file}")
    assert done.returncode == 2
    assert message in done.stderr
