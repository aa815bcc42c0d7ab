"""`make new`: the skeleton is a unit, and mistakes are one line."""

from __future__ import annotations

import ast
from pathlib import Path
from types import ModuleType

import pytest

from leadline.core.contracts.docstrings import HEADINGS, sections
from leadline.core.model.vocabulary import Layer
from scripts import new_unit
from tests import test_rules_conformance as conformance
from tests.rule_cases import cases_of


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


@pytest.mark.parametrize("layer", Layer)
def test_the_skeleton_of_a_rule_works_and_one_test_says_what_to_write(
    layer: Layer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = "disk-foo-high"
    monkeypatch.setattr(new_unit, "ROOT", tmp_path)
    case_folder = tmp_path / "tests" / "cases" / "rules"
    monkeypatch.setattr(conformance, "CASES", case_folder)
    assert new_unit.main(["rule", name, layer.value]) == 0
    folder = layer.value.replace("-", "_")
    file = tmp_path / "src" / "leadline" / "rules" / folder / "disk_foo_high.py"
    module = ModuleType(f"leadline.rules.{folder}.disk_foo_high")
    module.__file__ = str(file)
    exec(compile(file.read_text(), file, "exec"), module.__dict__)
    monkeypatch.setitem(conformance.RULES, name, module)

    conformance.test_docstring_has_every_heading(name)
    conformance.test_metadata_is_sound(name)
    conformance.test_codes_are_unique()
    cases = cases_of(case_folder / f"{name}.yaml")
    assert [case.name for case in cases] == ["fires", "quiet", "threshold"]
    for case in cases:
        conformance.test_case(case)
    with pytest.raises(AssertionError, match="replace every WRITE ME"):
        conformance.test_nothing_of_the_skeleton_is_left(name)


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
