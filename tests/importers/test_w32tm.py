"""w32tm /query /status: the state of the clock of a Windows guest."""

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
from leadline.importers import w32tm
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "w32tm.txt").read_text()


def read(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert w32tm.sniff(source) == 95
    return w32tm.read(source, Request())


def settings(capture: Capture) -> dict[str, Any]:
    return {name: fact.value for name, fact in capture.inventory.facts[UNNAMED_GUEST].items()}


def test_a_clock_that_is_off(tmp_path: Path) -> None:
    capture = read(tmp_path, SEED)
    assert settings(capture) == {"clock_synchronised": True, "clock_offset_s": 0.3061517, "time_services": ["w32time"]}
    assert codes(capture) == ["no-guest"]
    assert "guest-time-not-synced" in {finding.rule for finding in diagnose(capture).findings}


def test_without_verbose_the_offset_is_unknown(tmp_path: Path) -> None:
    known = settings(read(tmp_path, SEED.partition("\n\n")[0] + "\n"))
    assert known == {"clock_synchronised": True, "time_services": ["w32time"]}


@pytest.mark.parametrize(
    "text",
    [
        SEED.replace("0(no warning)", "3(not synchronized)"),
        SEED.replace("time.windows.com,0x8", "Local CMOS Clock"),
        SEED.replace("time.windows.com,0x8", "Free-running System Clock"),
    ],
)
def test_a_clock_that_nothing_sets(tmp_path: Path, text: str) -> None:
    assert settings(read(tmp_path, text)) == {"clock_synchronised": False, "time_services": ["w32time"]}


def test_another_text_is_refused(tmp_path: Path) -> None:
    german = source_of(tmp_path, "Sprungindikator: 0(keine Warnung)\nStratum: 4 (Sekundärreferenz)\n")
    assert w32tm.sniff(german) == 0
    with pytest.raises(InputError, match="English"):
        w32tm.read(german, Request())


def test_it_is_recognised(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, SEED.replace("\n", "\r\n").encode("utf-16")), load_units("importer"))
    assert known is not None
    assert known[0] == "w32tm"
