"""Remote offices: the published ordering, and limits."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.core.model.capture import Capture
from leadline.core.model.entities import Entity
from leadline.core.model.vocabulary import EntityKind
from leadline.planners._remote.links import LINKS


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


def test_a_clean_line_helps_more_where_losses_cost_most() -> None:
    plan = make_plan("remote", None, {"round_trip_ms": 40.0, "mbit_per_s": 100.0, "loss_pct": 10.0, "vms": 300}).plan
    assert plan.figure("helps more").value == "no losses"
    clean = make_plan("remote", None, {"round_trip_ms": 40.0, "mbit_per_s": 100.0, "vms": 300}).plan
    assert "saved by no losses" not in [figure.name for figure in clean.figures]


def test_round_trip_and_vms_of_an_inventory_s_farthest_host() -> None:
    capture = Capture()
    for name, cluster, trip_ms in (("near01", "main", 0.4), ("far01", "branch", 180.0), ("far02", "branch", 150.0)):
        host = Entity(EntityKind.HOST, name)
        capture.inventory.add(host, "by hand", cluster=cluster, vcenter_rtt_ms=trip_ms)
        for number in range(3):
            capture.inventory.add(Entity(EntityKind.VM, f"{name}-{number}", host), "by hand")
    found = make_plan("remote", None, {}, capture).plan
    assert found.evidence == ("round_trip_ms 180, vms 6: far01 of branch, the farthest of 3 hosts; by hand",)
    assert found.headline.startswith("Over 180 ms")
    given = make_plan("remote", None, {"round_trip_ms": 90.0, "vms": 2}, capture).plan
    assert given.evidence == ()
    assert given.headline.startswith("Over 90 ms")


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("dsl", "Over 100 ms and 0.512 Mbit/s"),
        ("satellite", "Over 500 ms and 1.5 Mbit/s"),
        ("4g", "Over 170 ms and 9 Mbit/s"),
    ],
)
def test_a_link_by_name_is_the_same_as_its_numbers(name: str, headline: str) -> None:
    named = make_plan("remote", None, {"link": name, "vms": 5}).plan
    assert named.headline.startswith(headline)
    numbers = make_plan("remote", None, {**LINKS[name].numbers(), "vms": 5}).plan
    assert named.figure("all operations") == numbers.figure("all operations")
    assert named.figure("link").value == name
    assert named.bends == ()


def test_every_usual_link_can_be_named_and_is_listed() -> None:
    described = make_plan("remote", None, {"vms": 1}).inputs.__class__.model_fields["link"].description or ""
    for name, link in LINKS.items():
        assert f"{name} {link.text()}" in described


def test_a_number_beside_a_named_link_counts_and_is_said() -> None:
    plan = make_plan("remote", None, {"link": "lte", "round_trip_ms": 40.0, "mbit_per_s": 12.0, "vms": 5}).plan
    assert plan.headline.startswith("Over 40 ms and 12 Mbit/s")
    assert [bend.cost for bend in plan.bends] == ["round_trip_ms 40 instead of 70: given, so they count"]


def test_a_named_link_goes_over_the_round_trip_of_an_inventory() -> None:
    capture = Capture()
    host = Entity(EntityKind.HOST, "far01")
    capture.inventory.add(host, "by hand", vcenter_rtt_ms=180.0)
    capture.inventory.add(Entity(EntityKind.VM, "vm01", host), "by hand")
    plan = make_plan("remote", None, {"link": "cable"}, capture).plan
    assert plan.headline.startswith("Over 28 ms and 1 Mbit/s")
    assert plan.evidence == ("vms 1: far01, the farthest of 1 hosts; by hand",)
