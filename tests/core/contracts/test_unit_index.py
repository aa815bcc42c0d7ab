"""The index of units: complete, made anew when a source file changes, never in the way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import cast

import pytest

from leadline.app.read.importing import importers_for
from leadline.core.contracts import unit_index as indexing
from leadline.core.contracts.discovery import load_units, unit_modules
from leadline.core.contracts.importer import Importer
from leadline.core.contracts.rule import Rule, RuleMeta, rule_metas
from leadline.core.contracts.unit_index import unit_index
from leadline.core.io.source import Source
from tests.conftest import FIXTURES, ROOT

SEEDS = ROOT / "tests" / "importers" / "seeds"
IMPORTERS = load_units("importer")


def _title(module: ModuleType) -> str:
    return (module.__doc__ or "").splitlines()[0]


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return indexing.cache_folder() / "faults.json"


def test_metas_of_rules_survive_the_index() -> None:
    for name, module in load_units("rule").items():
        meta = cast("Rule", module).META
        assert RuleMeta.from_plain(json.loads(json.dumps(meta.to_plain()))) == meta
        assert rule_metas()[name] == meta
    assert list(rule_metas()) == list(unit_modules("rule"))


def test_a_second_look_imports_nothing(cache: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = unit_index("fault", _title)
    assert list(first) == list(unit_modules("fault"))
    assert cache.stat().st_mode & 0o777 == 0o600
    monkeypatch.setattr(indexing, "load_units", None)
    assert unit_index("fault", _title) == first


@pytest.mark.parametrize("held", [b"", b"[]", b'{"key": 1}', b"\xff", b'{"key": "old", "units": {"x": 1}}'])
def test_a_file_that_does_not_count_is_made_anew(cache: Path, held: bytes) -> None:
    cache.parent.mkdir(parents=True)
    cache.write_bytes(held)
    assert list(unit_index("fault", _title)) == list(unit_modules("fault"))
    assert json.loads(cache.read_bytes())["units"]
    assert [path.name for path in cache.parent.iterdir()] == [cache.name]


def test_a_changed_source_file_makes_it_anew(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "package"
    (package / "inner").mkdir(parents=True)
    unit = package / "inner" / "unit.py"
    unit.write_text("one")
    monkeypatch.setattr(indexing, "_PACKAGE", package)
    keys = []
    for change in (lambda: None, lambda: unit.write_text("more"), lambda: os.utime(unit, (1, 1)), unit.unlink):
        change()
        (package / "kept.py").touch()
        indexing._sources_key.cache_clear()
        keys.append(indexing._sources_key())
    indexing._sources_key.cache_clear()
    assert len(set(keys)) == 4


def test_a_folder_that_cannot_be_written_is_no_error(cache: Path) -> None:
    cache.parent.parent.mkdir(parents=True, exist_ok=True)
    cache.parent.write_text("a file where the folder would be")
    assert list(unit_index("fault", _title)) == list(unit_modules("fault"))


def test_a_user_without_a_home_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    monkeypatch.chdir(tmp_path)
    assert list(unit_index("fault", _title)) == list(unit_modules("fault"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("folder", [FIXTURES, SEEDS], ids=["fixtures", "seeds"])
def test_whoever_can_read_a_file_is_asked(folder: Path) -> None:
    files = [path for path in sorted(folder.rglob("*")) if path.is_file()]
    assert files
    for path in files:
        source = Source(str(path), path)
        able = {name for name, module in IMPORTERS.items() if cast("Importer", module).sniff(source) > 0}
        assert able <= set(importers_for(source)), path.name


def test_marks_are_lower_case() -> None:
    for module in IMPORTERS.values():
        marks = cast("Importer", module).META.marks
        assert all(mark and mark == mark.lower() for mark in marks)


def test_diagnosing_imports_only_what_the_recording_needs() -> None:
    code = (
        "import sys; from leadline.faces.cli.main import run\n"
        "sys.argv = ['leadline', 'diagnose', 'x-t-iso.txt']\n"
        "try:\n    run()\nexcept SystemExit:\n    pass\n"
        "print('\\n'.join(sys.modules), file=sys.stderr)"
    )
    words = [sys.executable, "-c", code]
    for _ in range(2):  # the first makes the index where there is none
        done = subprocess.run(words, cwd=FIXTURES / "iostat", capture_output=True, text=True, check=True)
    modules = done.stderr.split()
    rules = [name for name in modules if name in set(unit_modules("rule").values())]
    importers = [name for name in modules if name in set(unit_modules("importer").values())]
    verbs = [name for name in modules if name.startswith("leadline.faces.cli.verbs.")]
    assert 0 < len(rules) < len(unit_modules("rule")) / 4
    assert 0 < len(importers) < len(IMPORTERS) / 2
    assert verbs == ["leadline.faces.cli.verbs.diagnose"]
    assert {"polars", "pandas", "pyarrow", "plotly", "asyncssh", "psycopg", "pydantic", "yaml"}.isdisjoint(modules)
