"""Backups against arithmetic by hand."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.planners.backup import Backup, consolidation_h, overlap_h, repository_tib


def test_a_night_by_hand() -> None:
    """20 TiB, 5 % a day, in 1 h: 1 TiB / 3600 s = 291.3 MiB/s, two streams of 150."""
    plan = make_plan("backup", None, {"data_tib": 20.0, "change_pct": 5.0, "window_h": 1.0}).plan
    assert plan.figure("increment").value == pytest.approx(1.0)
    assert plan.figure("streams").value == 2
    assert plan.figure("increment takes").value == pytest.approx(1024**2 / 300 / 3600, abs=0.01)


def test_retention_counts_fulls_and_increments() -> None:
    own = Backup(data_tib=10, change_pct=10, daily=7, weekly=4, monthly=0, yearly=0, reduction=2, repository_factor=3)
    assert repository_tib(own) == pytest.approx((5 * 10 + 7 * 1) / 2 * 3)


def test_overlap_goes_over_midnight() -> None:
    own = Backup(starts_at_h=22, batch_from_h=1, batch_h=3)
    assert overlap_h(own, 4.0) == pytest.approx(1.0)
    assert overlap_h(own, 2.0) == 0.0
    assert overlap_h(Backup(starts_at_h=2, batch_from_h=23, batch_h=4), 3.0) == pytest.approx(1.0)


def test_consolidation_ends_only_when_it_is_faster() -> None:
    assert consolidation_h(Backup(vm_write_mib_per_s=50, consolidate_mib_per_s=150), 2.0) == pytest.approx(1.0)
    plan = make_plan("backup", None, {"vm_write_mib_per_s": 300.0}).plan
    assert plan.infeasible is not None
    assert "writes 300 MiB/s" in plan.infeasible.constraint


def test_a_window_too_short_names_what_binds() -> None:
    plan = make_plan("backup", None, {"window_h": 0.1, "source_mib_per_s": 500.0}).plan
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "the source gives 500 MiB/s; the window needs 2,913"
    assert plan.infeasible.nearest == "a window of 0.58 h"
