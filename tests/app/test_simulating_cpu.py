"""Simulations of a hypervisor's CPU from a scenario file to runs and pages."""

from __future__ import annotations

from math import isnan
from pathlib import Path

import pytest

from leadline.app.simulate.simulating import Simulated, plan_simulation, simulate
from leadline.core.contracts.scenario import Axis
from leadline.core.model.errors import InputError, UsageError
from leadline.faces.report.simulation import simulation_page
from leadline.faces.simulations import changes
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "scenarios"
SHORT = (Axis("timing.warm_up_s", (2,)), Axis("timing.measure_s", (10,)))


def simulated(folder: Path, name: str, *axes: Axis, policies: tuple[str, ...] = ()) -> list[Simulated]:
    path = EXAMPLES / f"{name}.yaml" if "/" not in name else Path(name)
    return simulate(plan_simulation(path, [*SHORT, *axes], policies), RunStore(folder / "runs"))


def value(own: Simulated, name: str, entity: str = "db01") -> float:
    return own.outcome.measure(entity, name).value


def test_more_vcpus_than_cores_add_what_second_threads_do(tmp_path: Path) -> None:
    found = simulated(tmp_path, "cpu-right-sizing", Axis("vms.db01.vcpus", (12, 24, 48)))
    half, whole, double = (value(own, "transactions_per_s") for own in found)
    assert half < 0.6 * whole
    assert whole < double < 1.1 * whole
    assert value(found[0], "host_pct") == pytest.approx(50.0, 0.01)
    assert value(found[2], "guest_pct") < value(found[1], "guest_pct")


def test_transactions_are_the_operations_of_a_run(tmp_path: Path) -> None:
    own = simulated(tmp_path, "cpu-right-sizing", Axis("vms.db01.load.scale", (1,)))[0]
    pooled = own.run.pooled()
    assert [part.name for part in pooled] == ["db01 transaction"] or pooled[0].name.endswith("transaction")
    assert pooled[0].per_s == pytest.approx(value(own, "transactions_per_s"))
    assert pooled[0].percentiles_ms["p99"][0] == pytest.approx(value(own, "latency_ms_p99"), 0.02)
    # 50 ms of CPU and 18 ms of waits, with nobody in the way.
    assert value(own, "latency_ms_mean") == pytest.approx(68.0, 0.03)
    states = [value(own, f"{state}_pct") for state in ("run", "ready", "co_stop")]
    assert sum(states) == pytest.approx(value(own, "guest_pct"))


def test_policies_and_the_page_show_who_waits(tmp_path: Path) -> None:
    planned = plan_simulation(EXAMPLES / "two-monsters.yaml", [*SHORT], ("sca-v1", "sca-v2"))
    found = simulate(planned, RunStore(tmp_path / "runs"))
    rates = [value(own, "transactions_per_s") for own in found]
    assert rates[1] < 0.85 * rates[0]
    assert rates[1] < rates[2] <= 1.01 * rates[0]
    assert any("transactions -" in text and "sca-v1" in text for text in changes(planned, found))
    page = simulation_page(planned, found, compared=True)
    for title in ("Ready over time", "Co-stop over time", "Host over time"):
        assert title in page


def test_a_reservation_saves_and_a_limit_costs(tmp_path: Path) -> None:
    without, reserved = simulated(tmp_path, "cpu-shares", Axis("vms.db01.reservation_cores", (0, 8)))
    assert value(reserved, "latency_ms_mean") < 0.5 * value(without, "latency_ms_mean")
    limited = simulated(tmp_path, "cpu-shares", Axis("vms.db01.limit_cores", (1,)))[0]
    assert value(limited, "used_cores") == pytest.approx(1.0, 0.03)


def scenario(folder: Path, vm: str, host: str = "cores_per_node: 4") -> str:
    path = folder / "own.yaml"
    path.write_text(
        "name: own\nsystem: hypervisor-cpu\ntiming: {warm_up_s: 2, measure_s: 10, window_s: 1}\n"
        f"host: {{{host}}}\nvms:\n  - name: db01\n    {vm}\n"
    )
    return str(path)


def test_overload_is_said(tmp_path: Path) -> None:
    own = simulated(tmp_path, scenario(tmp_path, "vcpus: 2\n    load: {per_s: 300, burst: 10ms}"))[0]
    assert any("more is offered than is done" in note for note in own.run.notes)


def test_what_did_not_happen_is_not_measured(tmp_path: Path) -> None:
    own = simulated(tmp_path, scenario(tmp_path, "vcpus: 1\n    load: {users: 1, burst: 100s}"))[0]
    assert isnan(value(own, "latency_ms_mean"))
    assert value(own, "guest_pct") == pytest.approx(100.0)


@pytest.mark.parametrize(
    ("vm", "host", "told"),
    [
        ("vcpus: 2\n    load: {burst: 1ms}", "cores_per_node: 4", "either users or a rate"),
        ("vcpus: 2\n    load: {users: 1, burst: 1ms}", "cores_per_node: 4, scheduler: cfs", "no scheduler cfs"),
        ("vcpus: 2\n    load: {users: 1, burst: 1ms}", "cores_per_node: 4, name: db01", "have the same name"),
        (
            "vcpus: 2\n    reservation_cores: 8\n    load: {users: 1, burst: 1ms}",
            "cores_per_node: 4",
            "no more than the host has",
        ),
        (
            "vcpus: 2\n    load: {users: 1, burst: 1ms}",
            "cores_per_node: 4, co_stop_s: 1ms, co_start_s: 2ms",
            "co-start not above co-stop",
        ),
    ],
)
def test_scenarios_that_make_no_host_are_refused(tmp_path: Path, vm: str, host: str, told: str) -> None:
    with pytest.raises(InputError, match=told):
        simulated(tmp_path, scenario(tmp_path, vm, host))


def test_a_scheduler_there_is_not_is_refused() -> None:
    with pytest.raises(UsageError, match="no policy cfs; expected one of default, sca-v1, sca-v2"):
        plan_simulation(EXAMPLES / "two-monsters.yaml", (), ["cfs"])
