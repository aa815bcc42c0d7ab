"""leadline recorder: what the script could not record is told with the recording."""

from __future__ import annotations

from pathlib import Path

from leadline.core.contracts.importer import Request
from leadline.importers import recorder_notes
from tests.conftest import ROOT
from tests.importers.recordings import source_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "recorder_notes.txt").read_text()


def test_each_line_becomes_a_note(tmp_path: Path) -> None:
    source = source_of(tmp_path, SEED + "connections: ss (iproute2) is not here\n")
    assert recorder_notes.sniff(source) == 95
    notes = [warning.message for warning in recorder_notes.read(source, Request()).sources[0].warnings]
    assert notes == [
        "not recorded: programs: neither pidstat (sysstat) nor procps' top is here",
        "not recorded: connections: ss (iproute2) is not here",
    ]


def test_notes_of_windows_begin_with_a_mark(tmp_path: Path) -> None:
    assert recorder_notes.sniff(source_of(tmp_path, "\ufeff" + SEED.replace("\n", "\r\n"))) == 95


def test_other_notes_are_no_recording(tmp_path: Path) -> None:
    assert recorder_notes.sniff(source_of(tmp_path, "not recorded: nothing\n")) == 0
