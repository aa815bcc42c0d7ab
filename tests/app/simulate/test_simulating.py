"""Simulations from a scenario file to runs that are listed, shown and compared."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from leadline.app.measure.comparing_runs import compare_runs, history_of
from leadline.app.simulate.simulating import Simulated, plan_simulation, simulate
from leadline.core.contracts.scenario import Axis, parse_axis
from leadline.core.model.errors import InputError, UsageError
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

EXAMPLES = ROOT / "examples" / "scenarios"
SHORT = (Axis("timing.warm_up_s", (5,)), Axis("timing.measure_s", (30,)))


def simulated(store: RunStore, name: str, *axes: Axis, policies: tuple[str, ...] = ()) -> list[Simulated]:
    path = EXAMPLES / f"{name}.yaml" if "/" not in name else Path(name)
    return simulate(plan_simulation(path, axes, policies), store)


@pytest.fixture
def store(tmp_path: Path) -> RunStore:
    return RunStore(tmp_path / "runs")


def value(own: Simulated, entity: str, name: str) -> float:
    return own.outcome.measure(entity, name).value


def test_a_cap_makes_latency_outstanding_by_limit(store: RunStore) -> None:
    found = simulated(store, "iops-cap")
    assert [round(value(own, "db01", "latency_ms_mean")) for own in found] == [580, 290]
    assert [round(value(own, "db01", "iops")) for own in found] == [200, 400]
    for own in found:
        assert value(own, "db01", "limit_count_mean") > 115.5
        assert abs(value(own, "db01", "little_imbalance_pct")) < 0.1
        assert own.run.pooled()[0].percentiles_ms["p99"][0] == pytest.approx(116_000 / value(own, "db01", "iops"), 0.01)


def test_raising_one_of_two_depths_moves_the_queue_and_no_more(store: RunStore) -> None:
    both_low, host, adapter, both = simulated(store, "adapter-queue")
    rates = [value(own, "db01", "iops") for own in (both_low, host, adapter, both)]
    assert rates[:3] == pytest.approx([16_000] * 3, 0.01)
    assert rates[3] == pytest.approx(64_000, 0.01)
    assert value(adapter, "db01", "host_count_mean") == pytest.approx(96, 0.01)


def test_turns_protect_the_small_one(store: RunStore) -> None:
    first, second = simulated(store, "noisy-neighbour", *SHORT, policies=("round-robin",))
    assert value(first, "db01", "latency_ms_mean") > 5 * value(second, "db01", "latency_ms_mean")
    again = simulated(store, "noisy-neighbour", *SHORT, policies=("round-robin",))
    assert [own.outcome.trace for own in again] == [first.outcome.trace, second.outcome.trace]


def test_a_variant_does_not_depend_on_the_others(store: RunStore) -> None:
    axis = Axis("vms.db01.iops_limit", (100, 200, 300))
    together = simulated(store, "iops-cap", *SHORT, axis)
    alone = simulated(store, "iops-cap", *SHORT, Axis("vms.db01.iops_limit", (300,)))
    assert alone[0].outcome.trace == together[2].outcome.trace
    other = plan_simulation(EXAMPLES / "iops-cap.yaml", [*SHORT], seed=9)
    assert simulate(other, store)[0].outcome.trace != simulated(store, "iops-cap", *SHORT)[0].outcome.trace


def test_variants_are_runs_that_are_compared_by_their_parameters(store: RunStore) -> None:
    runs = [own.run for own in simulated(store, "iops-cap")]
    assert [run.id for run in store.list()] == [run.id for run in runs]
    kept = store.get(runs[0].id)
    assert kept.tool == "simulation"
    assert kept.warm_up is not None
    assert kept.warm_up.steady
    found = compare_runs([kept], [store.get(runs[1].id)])
    assert "vms.db01.iops_limit: 200.0 then 400.0" in found.unlike
    assert not [text for text in found.unlike if text.startswith("workload")]
    rate = next(part for part in found.metrics if part.name == "operations")
    assert rate.change == pytest.approx(1.0, 0.01)
    document = json.loads((store.files_of(runs[0].id) / "simulation.json").read_text())
    assert document["settings"] == {"vms.db01.iops_limit": 200}
    assert len(document["series"][0]["values"]) == 300


def test_copies_of_a_run_teach_nothing_other_seeds_do(store: RunStore) -> None:
    first = simulated(store, "iops-cap", *SHORT, Axis("vms.db01.iops_limit", (200, 400)))
    simulated(store, "iops-cap", *SHORT, Axis("vms.db01.iops_limit", (200, 400)))
    runs = [own.run for own in first]
    assert [len(group) for group in history_of(store, runs[:1], runs[1:])] == [0, 0]
    simulated(store, "iops-cap", *SHORT, Axis("seed", (2, 3)), Axis("vms.db01.iops_limit", (200, 400)))
    assert [len(group) for group in history_of(store, runs[:1], runs[1:])] == [2, 2]


def scenario(folder: Path, io: str, device: str = "service: 1ms", more: str = "") -> str:
    path = folder / "own.yaml"
    path.write_text(
        f"name: own\nsystem: storage-path\ntiming: {{warm_up_s: 5, measure_s: 50, window_s: 1}}\n"
        f"vms:\n  - name: db01\n    workload: {{io: [{io}]}}\n{more}"
        f"devices:\n  - name: ssd\n    {device}\n"
    )
    return str(path)


def test_streams_go_to_the_disk_of_their_role(store: RunStore, tmp_path: Path) -> None:
    io = "{name: data, oio: 8}, {name: wal, role: wal, read_pct: 0, oio: 4, sync_every: 1}"
    more = "    disks: {wal: {iops_limit: 50}}\n"
    own = simulated(store, scenario(tmp_path, io, "service: 1ms\n    parallelism: 8", more))[0]
    rates = {part.name: part.per_s for part in own.run.pooled()}
    assert rates["data read"] == pytest.approx(8000, 0.01)
    assert rates["wal write"] == pytest.approx(50, 0.01)
    assert "db01: flushes are not simulated" in own.run.notes


def test_rates_bursts_sizes_and_curves(store: RunStore, tmp_path: Path) -> None:
    io = "{rate_iops: {read: 300, write: 100}, block: {8k: 50, 64k: 50}, burst: {on_s: 5, off_s: 5}}"
    own = simulated(store, scenario(tmp_path, io, "curve: [[1000, 1ms], [5000, 4ms]]\n    spread: 0.3"))[0]
    rates = {part.name: part.per_s for part in own.run.pooled()}
    assert rates["io read"] == pytest.approx(150, 0.1)
    assert rates["io write"] == pytest.approx(50, 0.2)
    total = sum(part.bytes_per_s for part in own.run.pooled()) / sum(rates.values())
    assert total == pytest.approx(36 * 1024, 0.05)
    idle = [tick.per_s for tick in own.outcome.ticks]
    assert sum(rate == 0.0 for rate in idle) >= 20


def test_overload_is_said(store: RunStore, tmp_path: Path) -> None:
    own = simulated(store, scenario(tmp_path, "{rate_iops: 1100}"))[0]
    assert any("more is offered than is done" in note for note in own.run.notes)


def test_too_little_is_said(store: RunStore, tmp_path: Path) -> None:
    own = simulated(store, scenario(tmp_path, "{rate_iops: 0.2}"))[0]
    assert any("too few requests" in note for note in own.run.notes)


def test_what_the_simulator_refuses_is_an_error_of_the_scenario(store: RunStore, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="above 0"):
        simulated(store, scenario(tmp_path, "{oio: 4}", "service: 0s"))


def test_policies_there_are_not_are_refused() -> None:
    with pytest.raises(UsageError, match="no policy lottery; expected one of fifo"):
        plan_simulation(EXAMPLES / "noisy-neighbour.yaml", (), ["lottery"])


def test_progress_is_told_and_ends_at_all(tmp_path: Path) -> None:
    said: list[tuple[float, int, int]] = []
    planned = plan_simulation(EXAMPLES / "adapter-queue.yaml", [*SHORT])
    simulate(planned, RunStore(tmp_path), lambda *now: said.append(now))
    assert said[-1][0] == pytest.approx(1.0)
    assert said[-1][1:] == (1, 1)


def command(*words: str, home: Path) -> Any:
    return CliRunner(env={"LEADLINE_HOME": str(home)}).invoke(build_app(), ["simulate", *words])


def test_the_verb_prints_and_writes(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    done = command(
        str(EXAMPLES / "noisy-neighbour.yaml"), "--compare", "round-robin", "--html", str(page), home=tmp_path
    )
    assert done.exit_code == 0, done.output
    assert "scheduler=round-robin, db01: iops as before" in done.output
    html = page.read_text()
    assert "<h2>What changes</h2>" in html
    assert html.count('<figure class="xy">') == 2 * len({"iops", "latency_ms", "latency_ms_max"})
    assert html.count('<figure class="spread">') == 4
    varied = command(str(EXAMPLES / "iops-cap.yaml"), "--html", str(page), "--json", home=tmp_path)
    found = json.loads(varied.stdout)
    assert found["schema"] == "leadline.simulation/1"
    assert [own["settings"] for own in found["variants"]] == [
        {"vms.db01.iops_limit": 200},
        {"vms.db01.iops_limit": 400},
    ]
    assert "Mean latency by vms.db01.iops_limit" in page.read_text()
    assert parse_axis("a=1").values == (1,)


def test_ctrl_c_ends_it_within_seconds_and_keeps_what_was_done(tmp_path: Path) -> None:
    text = (EXAMPLES / "adapter-queue.yaml").read_text().replace("measure_s: 20s", "measure_s: 100000s")
    path = tmp_path / "long.yaml"
    path.write_text(text)
    words = [str(Path(sys.executable).parent / "leadline"), "simulate", str(path)]
    process = subprocess.Popen(
        words, env={**os.environ, "LEADLINE_HOME": str(tmp_path)}, stderr=subprocess.PIPE, text=True
    )
    time.sleep(3.0)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "Traceback" not in error
    assert RunStore(tmp_path).list() == []


def test_a_shipped_scenario_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert plan_simulation(Path("iops-cap")).scenario.name == "iops-cap"
    with pytest.raises(InputError):
        plan_simulation(Path("iops-cup"))
