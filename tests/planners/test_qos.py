"""Quality of service against mClock's example and Little's law."""

from __future__ import annotations

from typing import Any

import pytest

from leadline.app.planning import make_plan
from leadline.core.model.errors import UsageError


def test_the_example_of_mclock() -> None:
    plan = make_plan("qos", None, {**make_example(), "is_checked": True}).plan
    got = [plan.figure(f"{name} gets").value for name in ("rd", "oltp", "dm")]
    assert got == pytest.approx([250, 380, 570], rel=0.005)
    apart = plan.figure("simulated apart by").value
    assert isinstance(apart, float)
    assert apart < 0.5


def make_example() -> dict[str, object]:
    from leadline.planners.qos import META

    return dict(META.example)


def test_a_limit_becomes_latency_as_little_says() -> None:
    disks = [{"name": "db01", "limit_iops": 200, "outstanding": 116}]
    plan = make_plan("qos", None, {"capacity_iops": 50_000.0, "disks": disks}).plan
    assert plan.sheets[0].rows[0] == ("db01", 200.0, 200.0, "limit", 116, 580.0)


def test_large_operations_count_in_units() -> None:
    disks = [{"name": "db01", "limit_iops": 10_000, "block_kib": 64}]
    assert make_plan("qos", None, {"capacity_iops": 1e6, "disks": disks}).plan.figure("db01 gets").value == 5_000


def test_what_is_not_wanted_goes_to_others() -> None:
    disks = [{"name": "a", "wanted_iops": 100.0}, {"name": "b"}, {"name": "c", "shares": 2000}]
    plan = make_plan("qos", None, {"capacity_iops": 1000.0, "disks": disks}).plan
    assert [plan.figure(f"{name} gets").value for name in "abc"] == pytest.approx([100, 300, 600])


def test_reservations_above_the_capacity_do_not_fit() -> None:
    disks = [
        {"name": "a", "reservation_iops": 800},
        {"name": "b", "reservation_iops": 700, "is_tier_1": True, "limit_iops": 900},
    ]
    plan = make_plan("qos", None, {"capacity_iops": 1000.0, "disks": disks}).plan
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "reservations of 1,500 on a capacity of 1,000"
    assert {bend.rule for bend in plan.bends} == {
        "at most 80 % of a capacity is reserved",
        "tier 1 databases have no IOPS limit",
        "reservations fit the capacity",
    }


@pytest.mark.parametrize(
    ("disks", "given"),
    [
        ([{"reservation_iops": 900}, {"reservation_iops": 300}], [150, 150]),
        ([{"reservation_iops": 900, "outstanding": 8}, {"reservation_iops": 300, "outstanding": 2}], [240, 60]),
        ([{"reservation_iops": 900}, {"reservation_iops": 100}, {"shares": 5000}], [200, 100, 0]),
        ([{"reservation_iops": 900}, {"reservation_iops": 300, "block_kib": 64}], [100, 100]),
        ([{"reservation_iops": 900, "wanted_iops": 80}, {"reservation_iops": 300}], [80, 220]),
        ([{"reservation_iops": 400}, {"reservation_iops": 120, "outstanding": 90}, {"reservation_iops": 30}],
         [150, 120, 30]),
    ],
)  # fmt: skip
def test_above_the_capacity_the_plan_is_what_the_scheduler_does(
    disks: list[dict[str, Any]], given: list[float]
) -> None:
    named = [{"name": f"d{number}", **disk} for number, disk in enumerate(disks)]
    plan = make_plan("qos", None, {"capacity_iops": 300.0, "disks": named, "is_checked": True}).plan
    assert [plan.figure(f"{disk['name']} gets").value for disk in named] == pytest.approx(given, abs=0.1)
    assert float(plan.figure("simulated apart by").value) < 0.5
    bend = next(bend for bend in plan.bends if bend.rule == "reservations fit the capacity")
    assert bend.cost.startswith("mClock serves reserved requests in the order in which they arrive")


def test_a_reservation_above_its_limit_is_refused() -> None:
    disks = [{"name": "a", "reservation_iops": 500, "limit_iops": 400}]
    with pytest.raises(UsageError, match="the limit of a is below its reservation"):
        make_plan("qos", None, {"disks": disks})


def test_mixed_sizes_are_simulated_as_they_are_computed() -> None:
    disks = [{"name": "small"}, {"name": "large", "block_kib": 128, "shares": 3000}]
    plan = make_plan("qos", None, {"capacity_iops": 1000.0, "disks": disks, "is_checked": True}).plan
    assert [plan.figure(f"{name} gets").value for name in ("small", "large")] == pytest.approx([250, 187.5])
    apart = plan.figure("simulated apart by").value
    assert isinstance(apart, float)
    assert apart < 0.5
