"""Layouts against the arithmetic of RAID."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.planners._layout.degraded import failed_array
from leadline.planners._layout.inputs import LayoutInputs
from leadline.planners._layout.levels import LEVELS


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
    assert [bend.rule for bend in single.bends] == [
        "log and data on adapters of their own",
        "the load is carried while a device is replaced",
    ]


def test_too_few_devices_are_told_with_what_they_reach() -> None:
    plan = make_plan("layout", None, {"reads_per_s": 7000.0, "writes_per_s": 0.0, "data_gib": 10.0, "devices": 2}).plan
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "2 devices; raid-10 needs 4 for operations and capacity"
    assert plan.infeasible.nearest == "4 devices, or 50 % of the operations with 2"


def test_a_failed_device_loads_its_partner_or_all_others() -> None:
    """Counted by hand on eight devices: 800 reads, 80 writes per second."""
    mirror, parity, double = (failed_array(level, 8, 800.0, 80.0) for level in LEVELS)
    # the partner: reads of a pair, 800 / 4, and its writes, 80 / 4; the others (800 + 2 x 80) / 8
    assert (mirror.busiest_per_s, mirror.others_per_s, mirror.slow_share, mirror.fan_out) == (220.0, 120.0, 0.25, 1)
    # RAID-5: 700 reads as before and 100 x 7; a write (7 + 1 + 6 x 4) / 8 = 4; all on seven devices
    assert parity.healthy_per_s == 140.0
    assert parity.busiest_per_s == pytest.approx((700 + 700 + 80 * 4) / 7)
    assert (parity.slow_share, parity.fan_out) == (0.125, 7)
    # RAID-6: 700 and 100 x 6; a write (7 + 2 x 4 + 5 x 6) / 8 = 5.625
    assert double.busiest_per_s == pytest.approx((700 + 600 + 80 * 5.625) / 7)
    assert (double.slow_share, double.fan_out) == (0.125, 6)


def test_three_devices_of_raid_5_with_one_failed_are_read_and_written_by_two() -> None:
    """A third of writes read one and write one, a third write data alone, a third are four operations: 7 / 3."""
    assert failed_array(LEVELS[1], 3, 0.0, 300.0).busiest_per_s == pytest.approx(300 * 7 / 3 / 2)


@pytest.mark.parametrize(
    ("raid", "data_gib", "whole", "failed"),
    [
        # 400 reads on 8 devices of 200 per second: 25 % busy, 5 / 0.75 ms; a partner is 50 % busy, 10 ms
        ("raid-10", 400, 6.667, 0.25 * 10 + 0.75 * 5 / 0.75),
        # all seven 50 % busy; one read in eight waits for the slowest of seven, H(7) = 363 / 140
        ("raid-5", 700, 6.667, 10 * (7 / 8 + 363 / 140 / 8)),
        # 350 + 50 x 6 on seven are 46.4 % busy; the slowest of six, H(6) = 2.45
        ("raid-6", 600, 6.667, 5 / (1 - 650 / 1400) * (7 / 8 + 2.45 / 8)),
    ],
)
def test_latency_of_reads_with_one_device_failed(raid: str, data_gib: float, whole: float, failed: float) -> None:
    load = {"reads_per_s": 400.0, "writes_per_s": 0.0, "device_iops": 200.0, "device_gib": 100.0}
    plan = make_plan("layout", None, {**load, "raid": raid, "data_gib": data_gib}).plan
    assert plan.figure("devices for data").value == 8
    assert plan.figure("latency of reads").value == whole
    assert plan.figure("latency of reads, one device failed").value == pytest.approx(failed, abs=0.0005)


def test_a_rebuild_takes_its_share_and_lasts_as_long_as_a_device_is_written() -> None:
    load = {"reads_per_s": 400.0, "writes_per_s": 0.0, "device_iops": 200.0, "device_gib": 100.0, "data_gib": 400.0}
    plan = make_plan("layout", None, {**load, "raid": "raid-10", "rebuild_share_pct": 20.0}).plan
    # 100 GiB at a fifth of 200 MB/s; the partner has 160 per second left for 100: 6.25 / (1 - 100 / 160)
    assert plan.figure("rebuild of a device").value == round(100 * 1.073741824 / 0.04 / 3600, 2) == 0.75
    assert plan.figure("latency of reads, rebuilding").value == pytest.approx(
        0.25 * 6.25 / 0.375 + 0.75 * 20 / 3, abs=5e-4
    )
    # as many as make the partner busy: 400 x 200 / 100, during the rebuild 400 x 160 / 100
    row = plan.sheets[2].rows[0]
    assert row == ("raid-10", 8, 1600.0, 800.0, 640.0, 0.75)
    assert [bend.rule for bend in plan.bends] == []


def test_what_the_array_cannot_do_with_a_device_failed_is_a_bend() -> None:
    load = {"reads_per_s": 1000.0, "writes_per_s": 0.0, "device_iops": 200.0, "data_gib": 400.0, "device_gib": 100.0}
    plan = make_plan("layout", None, {**load, "raid": "raid-10"}).plan
    assert plan.figure("latency of reads, one device failed").value == "saturated"
    assert plan.bends[0].cost == (
        "800 of 1,000 operations per second with one device failed: requests queue; use more devices"
    )
    kept = make_plan("layout", None, {**load, "raid": "raid-10", "reads_per_s": 700.0}).plan
    assert kept.bends[0].cost.startswith("560 of 700 operations per second while a device is rebuilt")


def test_no_load_has_no_latency_to_lose() -> None:
    plan = make_plan("layout", None, {"reads_per_s": 0.0, "writes_per_s": 0.0}).plan
    assert plan.figure("latency of reads").value == 0.4  # 1000 / 2500, idle
    assert plan.figure("operations, one device failed").value == "no load"
    assert plan.bends == ()
