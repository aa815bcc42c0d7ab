"""Profiles, boards and slowdowns against closed forms."""

from __future__ import annotations

import pytest

from leadline.app.measure.simulated import outcome_of
from leadline.app.planning import make_plan
from leadline.core.contracts.planner import Plan, PlanContext
from leadline.planners._gpu import simulated as by_simulator
from leadline.planners._gpu.schedule import JobGroup, by_hour
from leadline.planners._gpu.simulated import GpuJob, scenario, simulated, slowdown

CONTEXT = PlanContext(None, outcome_of)
GROUPS = [
    {"name": "train", "jobs": 3, "start_h": 22, "hours": 6},
    {"name": "infer", "jobs": 1, "start_h": 0, "hours": 24},
]


def planned(**given: object) -> Plan:
    return make_plan("gpu", None, given).plan


def value(plan: Plan, name: str) -> float:
    found = plan.figure(name).value
    assert isinstance(found, int | float)
    return float(found)


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


@pytest.fixture
def exponential(monkeypatch: pytest.MonkeyPatch) -> None:
    """Steps as mean value analysis has them, and enough of them."""
    monkeypatch.setattr(by_simulator, "_phase", lambda mean_s: {"kind": "exponential", "mean": mean_s})
    monkeypatch.setattr(by_simulator, "STEPS", 8000)


@pytest.mark.parametrize("duty", [0.3, 0.7])
@pytest.mark.parametrize("at_once", [1, 2, 3, 8])
@pytest.mark.usefixtures("exponential")
def test_simulator_and_mean_value_analysis_agree_within_3_percent(duty: float, at_once: int) -> None:
    """Exponential phases, best effort, switches free."""
    found = simulated(GpuJob(duty, 100.0, 0.0, 24), at_once, "best-effort", CONTEXT)
    assert found == pytest.approx(slowdown(duty, at_once, "best-effort", 24), rel=0.03)


@pytest.mark.parametrize("name", ["equal-share", "fixed-share"])
def test_shares_agree_with_their_arithmetic_when_slices_are_short(name: str) -> None:
    found = simulated(GpuJob(0.7, 100.0, 0.0, 24), 4, name, CONTEXT)
    assert found == pytest.approx(slowdown(0.7, 4, name, 24), rel=0.04)


@pytest.mark.usefixtures("exponential")
def test_they_do_not_agree_where_assumptions_do_not_meet() -> None:
    """A fifth of a slice lost to each switch; a slice missed; jobs that stay in step."""
    switching = simulated(GpuJob(0.7, 100.0, 0.2, 24), 8, "best-effort", CONTEXT)
    assert switching / slowdown(0.7, 8, "best-effort", 24) == pytest.approx(1.0 / (1.0 - 0.2), rel=0.03)
    missed = simulated(GpuJob(0.7, 2.0, 0.0, 24), 8, "equal-share", CONTEXT)
    assert missed > 1.1 * slowdown(0.7, 8, "equal-share", 24)


def test_jobs_that_never_vary_stay_in_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(by_simulator, "_phase", lambda mean_s: {"mean": mean_s})
    found = simulated(GpuJob(0.7, 100.0, 0.0, 24), 2, "best-effort", CONTEXT)
    assert found > 1.1 * slowdown(0.7, 2, "best-effort", 24)


def test_both_are_in_the_answer_and_their_distance_is_told() -> None:
    plan = planned(vms=24, at_once=3)
    assert value(plan, "slowdown, best effort") == pytest.approx(
        value(plan, "best effort, by mean value analysis"), rel=0.03
    )
    assert value(plan, "fixed share, by arithmetic") == pytest.approx(0.3 + 0.7 * 24)
    rule = "slices are short against a step, and switches are free"
    assert rule not in [bend.rule for bend in plan.bends]
    apart = planned(vms=24, at_once=3, switch_ms=0.3)
    assert [bend.cost.split()[0] for bend in apart.bends if bend.rule == rule] == [
        "best-effort",
        "equal-share",
        "fixed-share",
    ]


def test_hours_and_their_jobs() -> None:
    groups = [JobGroup.model_validate(own) for own in GROUPS]
    counts = by_hour(groups)
    assert counts == [4] * 4 + [1] * 18 + [4] * 2
    assert sum(counts) == 3 * 6 + 24


def test_overlapping_schedules_by_the_hour() -> None:
    plan = planned(vms=8, profile_gib=3.0, schedule=GROUPS)
    rows = {str(row[0]): row for row in plan.sheets[0].rows}
    assert len(rows) == 24
    assert rows["23:00"][1:3] == (4, "train, infer")
    assert rows["04:00"][1:3] == (1, "infer")
    assert rows["23:00"][3] == pytest.approx(slowdown(0.7, 4, "best-effort", 8), rel=0.04)
    assert value(plan, "slowdown of train") == pytest.approx(value(plan, "slowdown, best effort"), abs=1e-3)
    four, one = float(rows["23:00"][3]), float(rows["04:00"][3])
    assert value(plan, "slowdown of infer") == pytest.approx(24.0 / (6.0 / four + 18.0 / one), rel=0.01)


def test_a_group_that_overlaps_in_part_is_as_slow_as_simulated_whole() -> None:
    """One job for two minutes, another from the second minute on: the planner's hours, a minute each."""
    plan = planned(schedule=[{"name": "one", "start_h": 8, "hours": 2}, {"name": "two", "start_h": 9, "hours": 2}])
    whole = scenario(GpuJob(0.7, 100.0, 0.0, 24), 1, "best-effort")
    parts = {key: whole["vms"][0][key] for key in ("cpu", "gpu")}
    whole["timing"] = {"warm_up_s": 0, "measure_s": 120, "window_s": 60}
    whole["vms"] = [{"name": "one", **parts}, {"name": "two", "start": 60, **parts}]
    done = outcome_of(whole).measure("one", "steps_per_s").value * 0.1
    assert value(plan, "slowdown of one") == pytest.approx(1.0 / done, rel=0.04)


def test_more_jobs_in_an_hour_than_profiles_do_not_fit() -> None:
    plan = planned(vms=8, profile_gib=6.0, schedule=[{"name": "a", "jobs": 3}, {"name": "b", "jobs": 2, "hours": 3}])
    assert plan.infeasible is not None
    assert plan.infeasible.constraint == "5 jobs at once at 00:00 on a GPU that holds 4 VMs"
    assert plan.infeasible.nearest == "the jobs on 2 GPUs, or profiles of 4.8 GiB"
