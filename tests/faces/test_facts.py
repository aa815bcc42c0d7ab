"""`leadline facts` as a user sees it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.command_line import leadline as run


@pytest.fixture
def image(tmp_path: Path) -> Path:
    """The root of a machine that tells its name and one setting, and keeps a folder to itself."""
    for path, text in {"etc/hostname": "db01\n", "proc/sys/vm/swappiness": "1\n"}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    return tmp_path


def test_writes_a_file_that_audit_reads(image: Path, tmp_path: Path) -> None:
    done = run("facts", "--root", str(image), "-o", "facts.json", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "facts.json: facts of db01\n")
    found = json.loads((tmp_path / "facts.json").read_text())
    assert (found["leadline_facts"], found["guests"][0]["sysctl"]) == (1, {"vm.swappiness": 1})
    assert run("audit", "facts.json", cwd=tmp_path).returncode == 0


def test_prints_one_document(image: Path) -> None:
    plain, asked = (run("facts", "--root", str(image), *more) for more in ([], ["--json"]))
    assert list(json.loads(asked.stdout))[:2] == ["schema", "leadline_facts"]
    assert json.loads(plain.stdout)["guests"] == json.loads(asked.stdout)["guests"]


def test_a_folder_that_is_no_system_is_one_line(tmp_path: Path) -> None:
    done = run("facts", "--root", str(tmp_path))
    assert done.returncode == 3
    assert done.stderr.startswith(f"error: {tmp_path}: no proc, sys or etc in it; expected the root folder")


def test_a_file_that_cannot_be_written_is_one_line(image: Path) -> None:
    done = run("facts", "--root", str(image), "-o", "no/such/folder/facts.json")
    assert done.returncode == 2
    assert done.stderr == (
        "error: --output no/such/folder/facts.json: there is no folder no/such/folder; "
        "expected a file in a folder that can be written. Name another place.\n"
    )
