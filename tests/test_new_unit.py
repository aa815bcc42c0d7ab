"""`make new`: the skeleton is a unit, and mistakes are one line."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
import yaml

from leadline.core.contracts.docstrings import HEADINGS, sections
from scripts import new_unit


@pytest.mark.parametrize(
    ("words", "file"),
    [
        (["rule", "disk-foo-high", "storage-path"], "src/leadline/rules/storage_path/disk_foo_high.py"),
        (["importer", "footop"], "src/leadline/importers/footop.py"),
        (["collector", "hyperfoo"], "src/leadline/collectors/hyperfoo.py"),
        (["target", "foo"], "src/leadline/targets/foo.py"),
        (["scenario", "cache-foo"], "src/leadline/scenarios/cache_foo.py"),
        (["planner", "foo"], "src/leadline/planners/foo.py"),
        (["experiment", "foo-latency"], "src/leadline/experiments/foo_latency.py"),
        (["fault", "device_foo"], "src/leadline/generators/faults/device_foo.py"),
    ],
)
def test_a_skeleton_has_every_heading(
    words: list[str], file: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(new_unit, "ROOT", tmp_path)
    assert new_unit.main(words) == 0
    tree = ast.parse((tmp_path / file).read_text())
    assert set(HEADINGS[words[0]]) <= set(sections(ast.get_docstring(tree, clean=False)))
    if words[0] == "rule":
        cases = yaml.safe_load_all((tmp_path / "tests" / "cases" / "rules" / f"{words[1]}.yaml").read_text())
        assert [case["case"] for case in cases] == ["fires", "quiet", "threshold"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "usage"),
        (["planet", "x"], "usage"),
        (["rule", "cpu-ready-high", "guest"], "exists already"),
        (["rule", "cpu-foo"], "needs a layer"),
    ],
)
def test_mistakes_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert new_unit.main(words) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
