"""Profiles, boards and slowdowns against closed forms."""

from __future__ import annotations

import pytest

from leadline.app.planning import make_plan
from leadline.planners.gpu import slowdown


def test_twenty_four_profiles_of_one_gib_on_twenty_four() -> None:
    plan = make_plan("gpu", None, {"vms": 24, "profile_gib": 1.0, "gpu_memory_gib": 24.0}).plan
    assert plan.figure("profiles per GPU").value == 24
    assert plan.figure("boards").value == 1


def test_a_job_alone_is_not_slowed_and_many_wait_for_the_gpu() -> None:
    assert slowdown(0.7, 1, "best-effort", 24) == pytest.approx(1.0)
    assert slowdown(0.5, 200, "best-effort", 200) == pytest.approx(100.0, rel=0.01)  # n d when it is the bottleneck


def test_two_jobs_wait_as_two_customers_of_one_server_do() -> None:
    """Exponential phases of 1 - d and d: the closed form of two customers."""
    duty = 0.4
    think, serve = 1 - duty, duty
    load = serve / think
    p0 = 1.0 / (1.0 + 2.0 * load + 2.0 * load * load)
    rate = (1.0 - p0) / serve
    assert slowdown(duty, 2, "best-effort", 8) == pytest.approx(2.0 / rate)


def test_equal_and_fixed_share_divide_the_gpu() -> None:
    assert slowdown(1.0, 3, "equal-share", 8) == pytest.approx(3.0)
    assert slowdown(1.0, 3, "fixed-share", 8) == pytest.approx(8.0)
    for jobs in (2, 5, 8):
        best, equal, fixed = (slowdown(0.6, jobs, name, 8) for name in ("best-effort", "equal-share", "fixed-share"))
        assert best < equal <= fixed


def test_too_few_boards_and_too_large_a_profile() -> None:
    few = make_plan("gpu", None, {"vms": 40, "boards": 1}).plan
    assert few.infeasible is not None
    assert few.infeasible.nearest == "2 boards, or profiles of 0.6 GiB"
    large = make_plan("gpu", None, {"profile_gib": 32.0}).plan
    assert large.infeasible is not None
