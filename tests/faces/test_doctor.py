"""`leadline doctor`: which verb lacks what, and the one command that brings it."""

from __future__ import annotations

import json
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import pytest

from leadline.core.system.extras import EXTRAS
from leadline.core.system.tools import TOOLS
from leadline.faces.cli import needs
from leadline.faces.cli.lazy_verbs import verb_stems
from leadline.faces.cli.main import VERBS
from tests.command_line import leadline


@pytest.fixture
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine without any program and without the packages of extras."""
    monkeypatch.setenv("PATH", "/nonexistent")
    for module in ("leadline.core.system.tools._EXTRA_FOLDERS",):
        monkeypatch.setattr(module, "/nonexistent")
    real: Callable[[str], object] = find_spec
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name in EXTRAS else real(name))


def test_every_need_is_of_a_verb_that_exists_and_can_be_brought() -> None:
    named = {verb for verb, _, _ in needs.VERB_NEEDS}
    for verb in named:
        words, package = verb.split(), VERBS
        for word in words:
            stems = verb_stems(package)
            assert word in stems, verb
            package = f"{package}.{stems[word]}"
    used = {name for _, _, names in needs.VERB_NEEDS for name in names}
    assert used <= {*EXTRAS, *needs._PACKAGES}
    assert {name for name in EXTRAS if name != "polars"} <= used  # data frames are for notebooks


def test_every_tool_that_a_verb_is_named_for_is_a_need_of_it() -> None:
    used = {(verb, name) for verb, _, names in needs.VERB_NEEDS for name in names}
    for tool in TOOLS:
        for verb in ("bench run", "leadline probe", "bench protect"):
            if verb in tool.disables:
                assert (verb.removeprefix("leadline "), tool.name) in used


@pytest.mark.usefixtures("bare")
def test_what_is_missing_is_named_by_verb_with_its_command() -> None:
    done = leadline("doctor")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    row = next(line for line in lines if line.startswith("bench sweep"))
    assert row.split() == ["bench", "sweep", "fio", "missing"]
    row = next(line for line in lines if line.startswith("pip install 'leadline[vcenter]'"))
    assert row.split("]'")[1].strip() == "collect vcenter, bench fleet, watch run"
    row = next(line for line in lines if line.startswith("apt-get install fio"))
    assert "probe, bench run (disks), bench sweep" in row
    start = lines.index("To install all that is missing:")
    assert lines[start + 1].startswith("  apt-get install busybox-static debootstrap e2fsprogs fio ")
    assert lines[start + 2] == "  pip install 'leadline[dask,keyring,mysql,parquet,postgresql,protect,ssh,vcenter,web]'"
    assert max(map(len, lines[:start])) <= 80


@pytest.mark.usefixtures("bare")
def test_the_document_has_every_need() -> None:
    document = json.loads(leadline("doctor", "--json").stdout)
    row = next(row for row in document["verbs"] if row["verb"] == "bench protect" and row["for"] is None)
    assert (row["needs"], row["kind"], row["present"]) == ("pyeclib", "extra protect", False)
    assert row["install"] == "pip install 'leadline[protect]'"
    assert {row["present"] for row in document["verbs"]} == {False}
    assert document["tools"]


def test_what_is_there_has_no_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "fio").write_text("#!/bin/sh\necho fio-3.33\n")
    (tmp_path / "fio").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    row = next(line for line in leadline("doctor").stdout.splitlines() if line.startswith("bench sweep"))
    assert row.split() == ["bench", "sweep", "fio", "there"]
