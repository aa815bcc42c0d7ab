"""What is said of guests that were loaded together."""

from __future__ import annotations

import pytest

from leadline.app.lab.results import LabRow, crowds


def row(guest: str, guests: int, per_s: float, mean_ms: float, **other: int) -> LabRow:
    return LabRow(guest, {"guests": guests, **other}, ("r1",), per_s, 0.0, 2 * per_s, mean_ms, {"p99": 4 * mean_ms})


def test_the_slowest_of_a_crowd_is_what_counts() -> None:
    rows = [row("a", 1, 200, 1.0), row("a", 3, 150, 5.0), row("b", 3, 90, 8.0), row("c", 3, 160, 4.0)]
    alone, three = crowds(rows)
    assert (alone.times, alone.sentence.split(":")[0]) == (1.0, "1 guest at once")
    assert (three.least_per_s, three.all_per_s) == (90, 400)
    assert three.times == pytest.approx(8.0)
    assert "waits 8 ms on average (p99 32 ms), 8 times as long as with the fewest" in three.sentence


def test_crowds_of_a_variant_are_beside_their_own_fewest() -> None:
    rows = [row("a", 1, 100, 1.0, oio=1), row("a", 1, 100, 3.0, oio=8)]
    rows += [row("a", 2, 100, 2.0, oio=1), row("a", 2, 100, 12.0, oio=8)]
    assert [own.times for own in crowds(rows)] == [1.0, 1.0, 2.0, 4.0]
    assert "oio 8" in crowds(rows)[3].sentence


def test_other_labs_have_no_crowds() -> None:
    assert crowds([LabRow("a", {"oio": 8}, ("r1",), 1.0, 1.0, 1.0, 1.0, {})]) == []
