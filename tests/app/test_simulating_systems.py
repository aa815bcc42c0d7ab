"""Far memory, shared GPUs and the management plane as scenarios: from the file to what is shown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from typer.testing import CliRunner

from leadline.app.measure.simulated import outcome_of
from leadline.app.simulate.simulating import Simulated, plan_simulation, simulate
from leadline.core.contracts.scenario import Axis, Outcome
from leadline.core.model.errors import InputError
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "scenarios"


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def ran(store: RunStore, name: str, *axes: Axis, policies: tuple[str, ...] = ()) -> list[Simulated]:
    return simulate(plan_simulation(EXAMPLES / f"{name}.yaml", axes, policies), store)


def value(own: Simulated, entity: str, name: str) -> float:
    return own.outcome.measure(entity, name).value


def outcome(system: str, **keys: Any) -> Outcome:
    return outcome_of({"name": "own", "system": system, **keys})


def test_less_local_memory_takes_longer_and_longer_on_an_ssd(store: RunStore) -> None:
    found = ran(store, "sort-in-far-memory", policies=("ssd",))
    times = {tuple(dict(own.variant.settings).values()): value(own, "program", "slowdown") for own in found}
    rdma = [times[share, "rdma"] for share in (90, 80, 70, 50)]
    ssd = [times[share, "ssd"] for share in (90, 80, 70, 50)]
    assert rdma == sorted(rdma)
    assert rdma[0] > 1.0
    assert all(fast < slow for fast, slow in zip(rdma, ssd, strict=True))


def test_a_run_of_a_program_has_series_to_its_end(store: RunStore) -> None:
    own = ran(store, "sort-in-far-memory", Axis("local_pct", (70,)))[0]
    run_s = value(own, "program", "run_s")
    assert len(own.outcome.ticks) == pytest.approx(run_s / 5.0, abs=1.0)
    reads = next(series for series in own.outcome.series if series.name == "iops")
    assert sum(reads.values) * 5.0 == pytest.approx(value(own, "program", "major_count"))
    assert value(own, "program", "read_ahead_pct") > 80
    local = ran(store, "sort-in-far-memory", Axis("local_pct", (100,)))[0]
    assert str(value(local, "program", "latency_ms_mean")) == "nan"  # there was no fault to measure


def test_local_memory_below_a_window_is_refused() -> None:
    with pytest.raises(ValidationError, match="more than the 8 read at once"):
        outcome("far-memory", program={"memory_mb": 1, "run": "1s"}, local_pct=2)


def test_more_touches_than_can_be_simulated_are_an_error_of_the_scenario() -> None:
    with pytest.raises(InputError, match="let a page stand for more"):
        outcome("far-memory", program={"memory_mb": 400_000, "run": "1s", "visits": 900}, local_pct=50)


def test_shares_let_slices_pass_and_best_effort_does_not(store: RunStore) -> None:
    found = ran(store, "shared-gpu", Axis("vms.train.count", (4,)), policies=("equal-share", "fixed-share"))
    best, equal, fixed = (value(own, "gpu", "utilisation_pct") for own in found)
    assert best > equal > fixed
    # Four VMs; of a step 20 ms take an eighth of the GPU, and 20 ms are on the CPU.
    assert fixed == pytest.approx(4 * 100.0 * 20 / (8 * 20 + 20), abs=1.5)
    assert value(found[0], "train-1", "slowdown") < value(found[1], "train-1", "slowdown")


def test_slices_are_the_defaults_for_so_many_vgpus() -> None:
    from leadline.scenarios.gpu_time_slicing import Gpu

    assert Gpu(policy="equal-share", max_vms=8).slice_s == pytest.approx(1 / 480)
    assert Gpu(policy="equal-share", max_vms=9).slice_s == pytest.approx(1 / 960)
    assert Gpu(policy="fixed-share", max_vms=8, strict=False).slice_s == 2e-3
    assert Gpu(policy="fixed-share", max_vms=24, strict=False).slice_s == 1e-3
    assert Gpu(max_vms=24, time_slice="30ms").slice_s == 0.03


def test_jobs_that_end_are_compared_with_their_own_work() -> None:
    vms = [{"name": "job", "count": 2, "steps": 50, "cpu": "0s", "gpu": "20ms"}]
    timing = {"warm_up_s": 0, "measure_s": 5, "window_s": 1}
    found = outcome("gpu-time-slicing", timing=timing, vms=vms)
    assert found.measure("job-1", "slowdown").value == pytest.approx(2.0, abs=0.01)
    assert found.measure("job-1", "run_s").value == pytest.approx(2.0, abs=0.01)
    assert found.notes == ()
    late = outcome("gpu-time-slicing", timing={**timing, "measure_s": 1}, vms=vms)
    assert str(late.measure("job-1", "run_s").value) == "nan"
    assert late.notes == ("job-1, job-2: the job did not end in what was measured; measure longer",)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"gpu": {"policy": "lottery"}}, "no policy lottery"),
        ({"gpu": {"max_vms": 1}}, "raise gpu.max_vms"),
    ],
)
def test_what_makes_no_gpu_is_refused(keys: dict[str, Any], message: str) -> None:
    vms = [{"name": "job", "count": 2, "cpu": "1ms", "gpu": "1ms"}]
    with pytest.raises(ValidationError, match=message):
        outcome("gpu-time-slicing", vms=vms, **keys)


def test_a_switch_as_long_as_the_slice_is_an_error_of_the_scenario() -> None:
    vms = [{"name": "job", "cpu": "1ms", "gpu": "1ms"}]
    with pytest.raises(InputError, match="longer than a switch"):
        outcome("gpu-time-slicing", vms=vms, gpu={"switch": "2ms", "time_slice": "1ms"})


def test_round_trips_work_and_bytes_make_an_operation() -> None:
    own = {"name": "own", "exchanges": 10, "request_bytes": 10_000, "response_bytes": 5_000, "work": "2s"}
    link = {"round_trip": "50ms", "mbit_per_s": 10}
    found = outcome("management-plane", link=link, operations=[own])
    sent_ms = (15_000 + 20 * 40) * 8 / 10e6 * 1e3
    assert found.measure("own", "latency_ms_mean").value == pytest.approx(2_500 + sent_ms, rel=1e-4)
    shares = [found.measure("own", f"{part}_pct").value for part in ("round_trips", "sending", "work")]
    assert sum(shares) == pytest.approx(100.0)
    new = outcome("management-plane", link=link, operations=[own], connection="new")
    assert new.measure("own", "latency_ms_mean").value == pytest.approx(2_650 + sent_ms, rel=1e-4)


def test_known_operations_may_be_changed_and_counted() -> None:
    from leadline.scenarios.management_plane import KNOWN, MODEL

    plain = {"name": "own", "system": "management-plane", "operations": ["clone", {"name": "inventory", "count": 101}]}
    clone, inventory = MODEL.model_validate(plain).operations
    assert (clone.exchanges, clone.request_bytes, clone.response_bytes, clone.work) == KNOWN["clone"]
    assert inventory.response_bytes == KNOWN["inventory"][2] + 100 * 650
    plain["operations"] = ["sing"]
    with pytest.raises(ValidationError, match="exchanges"):
        MODEL.model_validate(plain)
    plain["operations"] = ["clone", "clone"]
    with pytest.raises(ValidationError, match="same name"):
        MODEL.model_validate(plain)
    plain["operations"] = [{"name": "clone", "work": 0}]
    with pytest.raises(ValidationError, match="never end"):
        MODEL.model_validate({**plain, "link": {"round_trip": 0}})


def test_what_did_not_end_is_said() -> None:
    timing = {"warm_up_s": 0, "measure_s": 60, "window_s": 1}
    found = outcome("management-plane", timing=timing, operations=["power-on", {"name": "clone", "work": "1h"}])
    assert found.notes == ("clone: none ended while measured; measure longer",)
    assert str(found.measure("clone", "latency_ms_mean").value) == "nan"


@pytest.mark.parametrize(
    ("name", "policy", "sentence"),
    [
        ("sort-in-far-memory", "ssd", "local_pct=50, backing=ssd, program: run"),
        ("shared-gpu", "equal-share", "count=2, policy=equal-share"),
        ("branch-office", "new", "round_trip=400ms, connection=new, power-on: latency"),
    ],
)
def test_the_verb_shows_and_compares(name: str, policy: str, sentence: str, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    runner = CliRunner(env={"LEADLINE_HOME": str(tmp_path), "COLUMNS": "200"})
    words = ["simulate", str(EXAMPLES / f"{name}.yaml"), "--compare", policy, "--html", str(page)]
    done = runner.invoke(build_app(), words)
    assert done.exit_code == 0, done.output
    assert sentence in " ".join(done.output.split()), done.output
    assert "<h2>What changes</h2>" in page.read_text()
    again = runner.invoke(build_app(), [*words[:2], "--json"])
    assert json.loads(again.stdout)["schema"] == "leadline.simulation/1"
