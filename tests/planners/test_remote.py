"""Remote offices: the published ordering, and limits."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan


def test_latency_costs_more_than_bandwidth() -> None:
    plan = make_plan("remote", None, {"round_trip_ms": 250.0, "mbit_per_s": 1.5, "vms": 20}).plan
    assert plan.figure("helps more").value == "a quarter of the round trip"
    by_name = {row[0]: row for row in plan.sheets[0].rows}
    assert all(isinstance(row[3], float) and row[3] >= 1.0 for row in by_name.values())
    assert "connect" in str(plan.figure("keep local").value)


def test_next_door_is_next_door() -> None:
    plan = make_plan("remote", None, {"round_trip_ms": 1.0, "mbit_per_s": 1000.0}).plan
    assert plan.figure("all operations").value == pytest.approx(plan.figure("the same next door").value)
    assert plan.figure("keep local").value == "nothing"


def test_bent_rules_are_told() -> None:
    plan = make_plan("remote", None, {"round_trip_ms": 600.0, "loss_pct": 2.0}).plan
    assert [bend.rule for bend in plan.bends] == ["round trips stay below 500 ms", "losses stay below 1 %"]
