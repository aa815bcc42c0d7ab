"""Queue depths against Little's law."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan


def test_the_narrow_queue_leaves_what_little_says() -> None:
    """A disk of depth 64 at 2 ms passes 32,000 per second."""
    plan = make_plan("queues", None, {"iops": 40_000, "latency_ms": 2.0}).plan
    assert plan.figure("narrow queue").value == "a disk's queue"
    assert plan.figure("rate it leaves a VM").value == 32_000
    assert "vmw_pvscsi.cmd_per_lun=254 vmw_pvscsi.ring_pages=32" in plan.snippets[0].text
    assert "RequestRingPages=32,MaxQueueDepth=254" in plan.snippets[1].text
    assert any(bend.rule == "queues are widened together" for bend in plan.bends)


def test_four_disks_move_the_narrow_place_down() -> None:
    plan = make_plan("queues", None, {"iops": 40_000, "latency_ms": 2.0, "disks": 4}).plan
    assert plan.figure("narrow queue").value == "a LUN's queue"
    assert " lpfc_lun_queue_depth=128" in plan.snippets[0].text


def test_competing_machines_have_their_own_bound() -> None:
    plan = make_plan("queues", None, {"iops": 10_000, "latency_ms": 4.0, "vms": 4, "hosts": 2, "lun_depth": 254}).plan
    assert plan.figure("narrow queue").value == "a VM's part of a shared LUN"
    assert plan.figure("rate it leaves a VM").value == 8_000
    assert "--sched-num-req-outstanding 64" in plan.snippets[-1].text


def test_what_no_depth_can_hold_is_infeasible() -> None:
    plan = make_plan("queues", None, {"iops": 200_000, "latency_ms": 5.0}).plan
    assert plan.infeasible is not None
    assert "1000" in plan.infeasible.constraint
    assert plan.infeasible.nearest.startswith("50,800 operations per second")


def test_ports_that_all_hosts_overrun_are_told() -> None:
    plan = make_plan("queues", None, {"hosts": 32, "vms": 32, "luns": 8, "iops": 100, "port_depth": 1024}).plan
    assert [bend.rule for bend in plan.bends] == ["an array's ports take what all hosts may send"]
    assert plan.bends[0].cost.startswith("32 hosts x 8 LUNs can send 16,384, the ports take 2,048")
    assert plan.figure("narrow queue").value is not None
    assert plan.figure("outstanding at the array").value == pytest.approx(6.4)
