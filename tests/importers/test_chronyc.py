"""chronyc tracking: the state of the clock."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import chronyc
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "chronyc.txt").read_text()


def read(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert chronyc.sniff(source) == 95
    return chronyc.read(source, Request())


def settings(capture: Capture) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.facts[UNNAMED_GUEST].items()}


def test_a_clock_that_is_kept(tmp_path: Path) -> None:
    capture = read(tmp_path, SEED)
    expected = {"clock_synchronised": True, "clock_offset_s": -0.000107969, "time_services": ["chronyd"]}
    assert settings(capture) == expected
    assert codes(capture) == ["no-guest"]


def test_the_last_report_counts(tmp_path: Path) -> None:
    later = SEED.replace("0.000107969 seconds slow", "1557.763061523 seconds fast")
    capture = read(tmp_path, SEED + later)
    assert settings(capture)["clock_offset_s"] == 1557.763061523
    assert "guest-time-not-synced" in {finding.rule for finding in diagnose(capture).findings}


def test_a_clock_that_nothing_sets(tmp_path: Path) -> None:
    known = settings(read(tmp_path, SEED.replace("Normal", "Not synchronised")))
    assert known == {"clock_synchronised": False, "time_services": ["chronyd"]}


def test_half_a_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no report with"):
        chronyc.read(source_of(tmp_path, SEED.partition("Leap")[0]), Request())


def test_it_is_recognised(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, SEED), load_units("importer"))
    assert known is not None
    assert known[0] == "chronyc"
