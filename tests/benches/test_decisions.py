"""Kept decisions: written, read again, and compared."""

from __future__ import annotations

from pathlib import Path

from benches.incidents.decisions import Decisions, differences, keep_decisions, kept_decisions

KEPT: Decisions = {("slow-disk", "1", "full"): ("yes", "guest-disk-await-high", "db01 sdb", "guest=convicted")}


def test_decisions_are_kept_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "decisions.tsv"
    assert kept_decisions(path) == {}
    keep_decisions(KEPT, path)
    assert kept_decisions(path) == KEPT


def test_each_difference_is_a_line() -> None:
    (key,) = KEPT
    changed: Decisions = {
        key: ("unknown", "guest-disk-await-high", "db01 sdb", "guest=suspected"),
        ("new", "1", "full"): ("", "", "", ""),
    }
    assert list(differences(KEPT, changed)) == [
        "slow-disk 1 full: disk yes -> unknown",
        "slow-disk 1 full: states guest=convicted -> guest=suspected",
        "2 differences from the kept decisions in 1 views",
    ]
    assert list(differences(KEPT, KEPT)) == ["0 differences from the kept decisions in 1 views"]
