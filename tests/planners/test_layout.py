"""Layouts against the arithmetic of RAID."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.planners.layout import LEVELS, LayoutInputs


@pytest.mark.parametrize(("level", "penalty"), [("raid-10", 2), ("raid-5", 4), ("raid-6", 6)])
def test_back_end_operations(level: str, penalty: int) -> None:
    plan = make_plan("layout", None, {"reads_per_s": 1000, "writes_per_s": 500, "raid": level}).plan
    assert plan.figure("back-end operations").value == 1000 + penalty * 500


def test_devices_for_operations_and_for_capacity() -> None:
    busy = LayoutInputs(reads_per_s=6000, writes_per_s=2000, data_gib=100, device_iops=1000, device_use_pct=50)
    assert [level.devices(busy) for level in LEVELS] == [20, 28, 36]
    large = LayoutInputs(reads_per_s=1, writes_per_s=0, data_gib=9000, device_gib=1000)
    assert [level.devices(large) for level in LEVELS] == [18, 10, 11]


def test_many_writes_are_mirrored_and_parity_bends_a_rule() -> None:
    load = {"reads_per_s": 100.0, "writes_per_s": 100.0, "data_gib": 20_000.0}
    assert make_plan("layout", None, load).plan.figure("RAID of data").value == "raid-10"
    forced = make_plan("layout", None, {**load, "raid": "raid-5"}).plan
    assert [bend.rule for bend in forced.bends] == ["no parity under many writes"]
    assert make_plan("layout", None, {**load, "reads_per_s": 9900.0}).plan.figure("RAID of data").value == "raid-5"


def test_log_has_an_adapter_of_its_own_when_there_is_one() -> None:
    rows = make_plan("layout", None, {"backup_gib": 500.0}).plan.sheets[1].rows
    assert [row[:2] for row in rows] == [
        ("data", "PVSCSI 0"),
        ("log", "PVSCSI 1"),
        ("temp", "PVSCSI 2"),
        ("backup", "PVSCSI 3"),
    ]
    single = make_plan("layout", None, {"adapters": 1}).plan
    assert [bend.rule for bend in single.bends] == ["log and data on adapters of their own"]


def test_too_few_devices_are_told_with_what_they_reach() -> None:
    plan = make_plan("layout", None, {"reads_per_s": 7000.0, "writes_per_s": 0.0, "data_gib": 10.0, "devices": 2}).plan
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "2 devices; raid-10 needs 4 for operations and capacity"
    assert plan.infeasible.nearest == "4 devices, or 50 % of the operations with 2"
