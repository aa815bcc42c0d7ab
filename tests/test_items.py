"""Every thing of the founding documents has a row whose references, command and test exist, or a reason."""

from __future__ import annotations

import csv
import re
import shlex
from functools import cache
from pathlib import Path

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.contracts.discovery import load_units
from scripts.items import DOCUMENTS, PAGE, STATES, Item, items, page
from tests.conftest import ROOT
from tests.faces.test_cli import VERBS

UNITS = {"rule", "planner", "experiment", "importer", "scenario", "guide", "notifier", "target", "collector"}
REASON_MIN = 15


@cache
def names(kind: str) -> frozenset[str]:
    """What there is of a kind of reference."""
    if kind == "scenario":
        return frozenset(load_units(kind)) | {path.stem for path in (ROOT / "examples/scenarios").glob("*.yaml")}
    if kind in UNITS:
        return frozenset(load_units(kind))
    if kind == "driver":
        return frozenset(load_units("benchmark"))
    if kind == "verb":
        return frozenset(" ".join(words) for words in VERBS)
    if kind == "advice":
        table = (ROOT / "src/leadline/app/explain/advice.csv").read_text(encoding="utf-8")
        return frozenset(row["catalogue"] for row in csv.DictReader(table.splitlines()))
    folders = {"lab": "examples/lab", "workload": "src/leadline/core/model/workloads"}
    return frozenset(path.stem for path in (ROOT / folders[kind]).rglob("*.yaml"))


def test_there_are_328_rows_each_once() -> None:
    rows = items()
    assert len(rows) == 328
    assert len({row.id for row in rows}) == 328
    assert {row.id.partition(".")[0] for row in rows} == set(DOCUMENTS)


@pytest.mark.parametrize("row", items(), ids=lambda row: row.id)
def test_a_row_is_whole(row: Item) -> None:
    assert row.item
    assert row.state in STATES
    if row.state in ("there", "part"):
        assert row.by and row.run and row.test
    if row.state != "there":
        assert len(row.reason) >= REASON_MIN
    for reference in row.by:
        kind, _, name = reference.partition(":")
        assert name in names(kind), reference
    if row.run:
        assert shlex.split(row.run)[0] == "leadline"
    if row.test:
        path, _, name = row.test.partition("::")
        assert Path(ROOT, path).exists(), row.test
        assert not name or re.search(rf"^def {re.escape(name)}\(", Path(ROOT, path).read_text(), re.MULTILINE), row.test


@pytest.mark.parametrize("path", sorted((ROOT / "examples/rules").glob("*.yaml")), ids=lambda path: path.stem)
def test_an_example_shows_its_rule(path: Path) -> None:
    findings = diagnose(import_paths([path]).capture, rules=[path.stem]).findings
    assert [finding.rule for finding in findings][:1] == [path.stem]


def test_the_page_is_that_of_the_table() -> None:
    assert PAGE.read_text(encoding="utf-8") == page(), "run `python -m scripts.items`"
