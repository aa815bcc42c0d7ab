"""`make new`: every skeleton passes every test but the one that lists what to write; mistakes are one line."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from leadline.core.contracts.discovery import KINDS
from leadline.core.contracts.docstrings import HEADINGS, sections
from scripts import new_unit
from tests.conftest import ROOT

WORDS = {
    "rule": ["rule", "disk-foo-high", "storage-path"],
    "importer": ["importer", "footop"],
    "fault": ["fault", "device_foo"],
    "collector": ["collector", "hyperfoo"],
    "target": ["target", "foo-host"],
    "benchmark": ["benchmark", "foobench"],
    "scenario": ["scenario", "cache-foo"],
    "experiment": ["experiment", "foo-latency"],
    "planner": ["planner", "foo-size"],
    "notifier": ["notifier", "foo-pager"],
    "guide": ["guide", "slow-foo"],
}
CONFORMANCE = (
    "tests/test_house_rules.py",
    "tests/test_registry.py",
    "tests/test_rules_conformance.py",
    "tests/test_generator.py",
    "tests/importers/test_fuzz.py",
    "tests/planners/test_contract.py",
    "tests/notifiers/test_contract.py",
    "tests/guides/test_contract.py",
    "tests/experiments/test_conformance.py",
)
COPIED = ("src", "tests", "examples", "scripts", "benches")


@dataclass(frozen=True)
class Tree:
    """A copy of this tree with a new unit of every kind, and the files that were written for them."""

    root: Path
    files: tuple[str, ...]

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        environment = {**os.environ, "PYTHONPATH": str(self.root / "src"), "MYPYPATH": "src"}
        command = [sys.executable, "-m", *words]
        return subprocess.run(
            command, cwd=self.root, env=environment, capture_output=True, text=True, check=False, timeout=500
        )

    @property
    def python_files(self) -> list[str]:
        return [name for name in self.files if name.endswith(".py")]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tree]:
    root = tmp_path_factory.mktemp("skeletons")
    for folder in COPIED:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", root)
    before = {path for path in root.rglob("*") if path.is_file()}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(new_unit, "ROOT", root)
        assert [new_unit.main(words) for words in WORDS.values()] == [0] * len(WORDS)
    written = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file() and path not in before)
    yield Tree(root, tuple(written))
    shutil.rmtree(root)


def test_every_kind_has_a_skeleton() -> None:
    assert set(WORDS) == set(new_unit.FILES) == set(KINDS)
    taken = {skeleton for files in new_unit.FILES.values() for skeleton in files.values()}
    assert taken == {path.name for path in new_unit.SKELETONS.iterdir()}


@pytest.mark.parametrize("kind", WORDS)
def test_a_skeleton_has_every_heading(kind: str) -> None:
    text = (new_unit.SKELETONS / f"{kind}.py.txt").read_text(encoding="utf-8")
    parts = sections(text.split('"""')[1])
    assert [heading for heading in HEADINGS[kind] if not parts.get(heading)] == []


def test_skeletons_are_formatted(tree: Tree) -> None:
    for words in (["check", "--quiet"], ["format", "--check"]):
        done = tree.run("ruff", *words, "--no-cache", *tree.python_files)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.slow
def test_skeletons_have_types(tree: Tree) -> None:
    done = tree.run("mypy", *tree.python_files)
    assert done.returncode == 0, done.stdout + done.stderr


def test_only_the_test_that_lists_what_to_write_fails(tree: Tree) -> None:
    """House rules, the registry and the skeletons' own tests as a whole; of other tests what is theirs."""
    subprocess.run(["git", "init", "--quiet"], cwd=tree.root, check=True)  # the house rules ask for the files there are
    tests = [name for name in tree.python_files if name.startswith("tests/")]
    names = [words[1].replace("_", "-") for words in WORDS.values()]
    chosen = " or ".join(
        ["test_house_rules", "test_registry", "test_skeletons", *names, *(Path(name).stem for name in tests)]
    )
    done = tree.run(
        *("pytest", "-q", "-p", "no:randomly", "-p", "no:cacheprovider", "-k", chosen),
        *("tests/test_skeletons.py", *CONFORMANCE, *tests),
    )
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.MULTILINE)
    assert failed == ["tests/test_skeletons.py::test_no_unit_is_a_skeleton"], done.stdout + done.stderr
    for name in tree.files:
        if not name.startswith("tests/importers/seeds"):
            assert f"{name}:" in done.stdout, "the failure names every file that waits to be written"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ([], "usage"),
        (["planet", "x"], "usage"),
        (["rule", "cpu-ready-high", "guest"], "exists already"),
        (["rule", "cpu-foo"], "needs a layer"),
        (["importer", "../footop"], "is no name"),
        (["importer", "Footop"], "is no name"),
    ],
)
def test_mistakes_are_one_line(words: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_unit.main(words) == 2
    error = capsys.readouterr().err
    assert message in error
    assert error.count("\n") == 1
