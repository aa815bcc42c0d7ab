"""The first screen of recorded incidents: 24 lines of 80 columns, no sentence twice, the answer first."""

from __future__ import annotations

import io
import re
from pathlib import Path

import pytest
from rich.console import Console

from benches.incidents.recordings import Recording, read_recording
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.diagnose.grouping import grouped
from leadline.faces.terminal import show_diagnosis
from leadline.faces.words.findings import Quotes
from leadline.faces.words.screen import Screen, screens
from tests.conftest import ROOT

RECORDED = ROOT / "incidents" / "recorded"
# Ten kinds of trouble, and how the screen begins.
BEGINNINGS = {
    "iops-limit-wal/1": "Yes, it is the disk: ",
    "slow-disk/1": "Yes, as the guest sees it: ",
    "disk-freezes/1": "Yes, as the guest sees it: disk db01 loop0 stood still",
    "missing-index/2": "No, it is not the disk: statements scan ",
    "lock-waits/1": "No, it is not the disk: 6.6 sessions of db01 postgresql wait for a lock",
    "cpu-taken/1": "No, it is not the disk: stress-ng-cpu uses ",
    "noisy-program/2": "Yes, as the guest sees it: fio reads ",
    "network-loss/1": "No, it is not the disk: db01 sends ",
    "lab-cpu/2": "No, it is not the disk: ",
    "two-faults/1": "Yes, it is the disk: ",
}


def recorded(name: str, folder: Path) -> Recording:
    return read_recording(RECORDED / f"{name}.tar.xz", folder)


def screen_of(recording: Recording) -> tuple[str, tuple[Screen, ...]]:
    capture = recording.whole
    diagnosis = diagnose(capture)
    stream = io.StringIO()
    show_diagnosis(Console(file=stream, width=80, highlight=False), diagnosis, capture)
    return stream.getvalue(), screens(diagnosis, Quotes(grouped(diagnosis.findings, capture)), capture.span_ns())


@pytest.mark.parametrize("name", BEGINNINGS)
def test_the_first_screen_is_one(name: str, tmp_path: Path) -> None:
    text, shown = screen_of(recorded(name, tmp_path))
    assert text.startswith(BEGINNINGS[name])
    lines = text.splitlines()
    assert len(shown) == 1
    assert len(lines) <= 24
    assert max(map(len, lines)) <= 80
    sentences = re.findall(r"[^.:;]{25,}", " ".join(text.split()))
    assert len(sentences) == len(set(sentences))


def test_two_incidents_are_told_one_after_the_other(tmp_path: Path) -> None:
    text, shown = screen_of(recorded("temp-spill/1", tmp_path))
    assert len(shown) == 2
    assert text.startswith("2 incidents, the worst first.")
    assert text.count("  When  ") == 2


def test_who_did_it_is_named_with_the_share(tmp_path: Path) -> None:
    _, (shown,) = screen_of(recorded("missing-index/2", tmp_path))
    assert '"SELECT ... FROM orders"' in shown.lead
    assert dict(shown.rows)["Who"].startswith('"SELECT ... FROM orders": 100 % of the active sessions')
    assert shown.steps[0].startswith("EXPLAIN (ANALYZE, BUFFERS) SELECT ... FROM orders")
