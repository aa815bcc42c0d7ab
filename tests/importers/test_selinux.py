"""sestatus and getenforce: the mode in force."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from leadline.app.read.importing import recognise
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.importer import UNNAMED_GUEST, Request
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.importers import selinux
from tests.conftest import ROOT
from tests.importers.recordings import codes, source_of

STATUS = (ROOT / "tests" / "importers" / "seeds" / "selinux.txt").read_text()


def mode(source: Source) -> str:
    capture = selinux.read(source, Request())
    assert codes(capture) == ["no-guest"]
    return str(capture.inventory.get(UNNAMED_GUEST, "selinux"))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (STATUS, "enforcing"),
        (STATUS.replace("mode:                   enforcing", "mode:                   permissive"), "permissive"),
        ("SELinux status:                 disabled\n", "disabled"),
    ],
)
def test_the_status(tmp_path: Path, text: str, expected: str) -> None:
    source = source_of(tmp_path, text)
    assert selinux.sniff(source) == 95
    assert mode(source) == expected


def test_the_word_of_getenforce(tmp_path: Path) -> None:
    source = source_of(tmp_path, "Permissive\n")
    assert selinux.sniff(source) == 60
    assert selinux.sniff(replace(source, command="sudo getenforce")) == 95
    assert mode(source) == "permissive"
    assert selinux.sniff(source_of(tmp_path, "Permissive\nor not\n")) == 0


def test_a_status_without_mode_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no line with the mode"):
        selinux.read(source_of(tmp_path, STATUS.partition("Current")[0]), Request())


def test_it_is_recognised(tmp_path: Path) -> None:
    known = recognise(source_of(tmp_path, STATUS), load_units("importer"))
    assert known is not None
    assert known[0] == "selinux"
