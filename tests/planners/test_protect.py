"""Protection against closed forms and worked examples."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.planners.protect import HOURS_PER_YEAR, ChunkScheme, Protect, loss_years, rebuild_hours


def test_three_and_two_against_three_copies() -> None:
    planned = make_plan("protect", None, {"schemes": ["3x", "3+2"], "nodes": 6, "survives": 2}).plan
    assert planned.figure("scheme").value == "3+2"
    assert planned.figure("capacity factor").value == pytest.approx(1.667, abs=5e-4)
    assert {row[0]: row[1:3] for row in planned.sheets[0].rows} == {"3x": (3.0, 2), "3+2": (1.667, 2)}


def test_each_scheme_has_its_own_bound_and_what_binds_is_said() -> None:
    """Six nodes of eight disks of 200 MiB/s: 9,600 MiB/s by what is stored; their networks by what is sent."""
    given = {"schemes": ["3x", "3+2"], "nodes": 6, "survives": 2}
    plan = make_plan("protect", None, given).plan
    network = 6 * 10e9 / 8 / 1024**2
    assert {row[0]: row[-2:] for row in plan.sheets[1].rows} == {
        "3x": (9600 / 3, "disks"),
        "3+2": (round(network / (5 / 3 - 1 / 3)), "network"),
    }
    assert plan.figure("backup").value == round(network / (5 / 3 - 1 / 3))
    assert plan.figure("backup").arithmetic == f"bound by the network: {network:,.0f} / 1.33 sent"
    slow = make_plan("protect", None, {**given, "backup_vms": 10, "backup_mib_per_s": 100}).plan
    assert slow.figure("backup").value == 1000
    assert slow.figure("backup").arithmetic.startswith("bound by the VMs: 10 x 100, where 3+2 takes 5,")
    assert slow.figure("backup of each VM").value == 100
    assert slow.sheets == plan.sheets


def test_two_copies_lose_data_as_a_mirror_does() -> None:
    """Two nodes, two copies: (3 λ + μ) / 2 λ², the textbook's mirror."""
    own = Protect(nodes=2, schemes=("2x",))
    failure = 1.0 / (own.node_mtbf_years * HOURS_PER_YEAR)
    repair = 1.0 / rebuild_hours(own, ChunkScheme.parse("2x"))
    expected = (3 * failure + repair) / (2 * failure**2) / HOURS_PER_YEAR
    assert loss_years(own, ChunkScheme.parse("2x")) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("text", "operations"), [("2x", 2), ("3x", 3), ("3+1", 4), ("4+2", 6)])
def test_small_writes_cost_what_is_published(text: str, operations: int) -> None:
    assert ChunkScheme.parse(text).small_write_operations == operations


def test_a_rebuild_is_as_fast_as_disks_or_network() -> None:
    own = Protect(nodes=5, data_tib=10.0, disks_per_node=1, network_gbit_per_s=1000.0, resync_share=1.0)
    # Two copies: 4 TiB lost, each MiB read once and written once by 4 disks of 200 MiB/s.
    assert rebuild_hours(own, ChunkScheme.parse("2x")) == pytest.approx(4 * 1024**2 * 2 / (4 * 200) / 3600)
    slow = own.model_copy(update={"network_gbit_per_s": 0.01})
    assert rebuild_hours(slow, ChunkScheme.parse("2x")) == pytest.approx(
        4 * 1024**2 / (4 * 0.01e9 / 8 / 1024**2) / 3600
    )
