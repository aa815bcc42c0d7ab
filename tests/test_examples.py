"""The shipped incidents: what is diagnosed is what was done to the machine, as truth.yaml has it."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
import yaml

from benches.fault_trials import overlap
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.contracts.rule import rule_metas
from leadline.core.model.finding import Diagnosis, Window
from leadline.core.model.vocabulary import Severity
from leadline.core.system.tools import TOOLS, examine
from tests.conftest import ROOT

INCIDENTS = sorted(path.parent for path in (ROOT / "examples" / "incidents").glob("*/truth.yaml"))
FAULTY = [path for path in INCIDENTS if path.name != "healthy"]
OVERLAP_MIN = 0.6  # real loads do not start and end at once


def truth_of(folder: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load((folder / "truth.yaml").read_text())
    return loaded


def diagnosed(*paths: Path) -> Diagnosis:
    return diagnose(import_paths(list(paths), Request(metrics=metrics_read())).capture)


def ns(text: str) -> int:
    return round(datetime.fromisoformat(text).timestamp() * 1e9)


def test_there_are_incidents_of_disk_and_cpu_and_a_healthy_one() -> None:
    assert {path.name for path in INCIDENTS} >= {"throttled-wal-disk", "cpu-starved-guest", "healthy"}


@pytest.mark.parametrize("folder", FAULTY, ids=lambda p: p.name)
def test_the_known_fault_comes_first(folder: Path) -> None:
    fault = truth_of(folder)["fault"]
    top = diagnosed(folder).top
    assert top is not None
    assert (top.rule, top.layer.value) == (fault["rule"], fault["layer"])
    assert top.severity >= Severity.MEDIUM
    assert (top.entity.kind.value, top.entity.name) == (fault["entity"]["kind"], fault["entity"]["name"])
    assert top.window is not None
    assert overlap(top.window, Window(ns(fault["start"]), ns(fault["end"]))) >= OVERLAP_MIN


@pytest.mark.parametrize("folder", FAULTY, ids=lambda p: p.name)
def test_iostat_and_vmstat_alone_are_enough(folder: Path) -> None:
    names = [next(folder.glob(f"{tool}.txt*")) for tool in ("iostat", "vmstat")]
    top = diagnosed(*names, folder / "inventory.yaml").top
    assert top is not None
    rule = truth_of(folder)["fault"]["rule"]
    assert top.rule in {rule, *rule_metas()[rule].explains}  # without pidstat nobody can say whose tasks they are


def test_a_healthy_recording_accuses_nobody() -> None:
    found = diagnosed(ROOT / "examples" / "incidents" / "healthy")
    assert [f.rule for f in found.findings if f.severity >= Severity.MEDIUM] == []


def test_without_sadf_everything_else_is_still_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nonexistent")
    assert not examine(next(tool for tool in TOOLS if tool.name == "sadf")).is_present
    imported = import_paths([FAULTY[0]], Request(metrics=metrics_read()))
    assert [Path(error.where).name for error in imported.left_out] == ["sar.bin"]
    assert diagnose(imported.capture).top is not None


def test_the_generated_capture_tells_its_three_faults() -> None:
    folder = ROOT / "examples" / "generated"
    truth: dict[str, Any] = yaml.safe_load((folder / "esxtop.csv.truth.yaml").read_text())
    found = diagnosed(folder / "esxtop.csv.gz")
    causes = {(f.rule, str(f.entity)) for f in found.findings if not f.is_symptom and f.severity >= Severity.MEDIUM}
    wanted = {(rule, fault["entity"]) for fault in truth["faults"] for rule in fault["rules"]}
    assert causes == wanted
