"""What calibration writes, simulated beside its recording; the disks are simulated without Leadline's simulator."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from benches.recorded_disks import Array, linear, linear_loop, one_server, poisson, write_iostat
from leadline.app.simulate import calibrating_checks
from leadline.app.simulate.calibrating import calibrate
from leadline.app.simulate.calibrating_fits import LATENCY, P95, RATE, Compared, Fitted
from leadline.app.simulate.calibrating_laws import LinearLaw, Points, Queue, Sight, erlang_delay, most_of, open_law
from leadline.app.simulate.calibrating_loads import loads_of
from leadline.app.simulate.simulating import plan_simulation, simulate
from leadline.core.contracts.scenario import parse_axis
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore

Load = tuple[Array, Array]
SERVICE_S = 1e-3


def exponential(rate: float, seconds: int, seed: int) -> Load:
    """M/M/1 of 1 ms."""
    times = poisson(rate, seconds, seed)
    return times, one_server(times, np.random.default_rng(seed + 100).exponential(SERVICE_S, len(times)))


def constant(rate: float, seconds: int, seed: int) -> Load:
    """M/D/1 of 1 ms."""
    times = poisson(rate, seconds, seed)
    return times, one_server(times, np.full(len(times), SERVICE_S))


def by_line(rate: float, seconds: int, seed: int) -> Load:
    """1 ms and 0.3 ms for each other request outstanding."""
    times = poisson(rate, seconds, seed)
    return times, linear(times, SERVICE_S, 0.3 * SERVICE_S, seed + 100)


def fitted(path: Path, **more: Any) -> Fitted:
    (disk,) = calibrate([path], **more).disks
    return disk


def rows(disk: Fitted, measure: str) -> list[Compared]:
    return [row for row in disk.compared if row.measure == measure]


@pytest.mark.parametrize(
    ("load", "rates", "law", "seconds"),
    [
        (exponential, (300, 600, 800), LinearLaw, 200),
        (constant, (300, 600, 850), Queue, 200),
        (by_line, (300, 1_000, 2_000), LinearLaw, 60),
    ],
)
def test_three_loads_are_simulated_as_they_were_recorded(
    tmp_path: Path, load: Callable[[float, int, int], Load], rates: tuple[int, ...], law: type, seconds: int
) -> None:
    path = tmp_path / "iostat.txt"
    means = write_iostat(path, [load(rate, seconds, n) for n, rate in enumerate(rates)], seconds)
    disk = fitted(path)
    assert disk.line is not None
    assert isinstance(disk.line, law)
    latencies, done = rows(disk, LATENCY)[:3], rows(disk, RATE)[:3]
    for rate, mean, latency, per_s in zip(rates, means, latencies, done, strict=True):
        assert per_s.simulated == pytest.approx(rate, rel=0.05)
        assert per_s.simulated == pytest.approx(per_s.recorded, rel=0.05)
        assert latency.simulated == pytest.approx(mean, rel=0.05)
        assert latency.low < latency.recorded < latency.high
        assert latency.low < mean * 1.05
    assert all(not np.isfinite(row.recorded) for row in rows(disk, P95))
    assert disk.line.error_pct < 2.0 * disk.line.chance_pct


@pytest.mark.parametrize(("load", "most"), [(exponential, 1_000.0), (constant, 1_000.0), (by_line, 1_000.0 / 0.3)])
def test_the_maximum_that_is_told_is_that_of_the_device_and_of_the_simulation(
    tmp_path: Path, load: Callable[[float, int, int], Load], most: float
) -> None:
    path, mine = tmp_path / "iostat.txt", tmp_path / "mine.yaml"
    write_iostat(path, [load(share * most, 60, n) for n, share in enumerate((0.3, 0.6, 0.8))], 60)
    found = calibrate([path])
    (disk,) = found.disks
    told = most_of(disk.device)
    assert told == pytest.approx(most, rel=0.05)
    assert f"at most {told:,.0f}/s" in disk.sentence
    mine.write_text(found.text)
    assert f"at most {told:,.0f}/s" in found.text
    axis = parse_axis(f"vms.{disk.name}.load_factor=5")
    (flooded,) = simulate(plan_simulation(mine, [axis]), RunStore(tmp_path / "runs"))
    assert flooded.outcome.measure(disk.name, "iops").value == pytest.approx(told, rel=0.03)


@pytest.mark.parametrize("load", [exponential, constant, by_line])
def test_one_load_says_that_it_cannot_tell_the_slope(tmp_path: Path, load: Callable[[float, int, int], Load]) -> None:
    path, mine = tmp_path / "iostat.txt", tmp_path / "mine.yaml"
    (mean,) = write_iostat(path, [load(500, 200, 1)], 200)
    found = calibrate([path])
    (disk,) = found.disks
    assert isinstance(disk.line, LinearLaw)
    assert disk.line.against == "nothing"
    assert any("cannot separate base and slope of the latency" in note for note in disk.notes)
    assert any(note.startswith("assumed: the device is as slow under any load") for note in disk.notes)
    assert not disk.warnings
    mine.write_text(found.text)
    (own,) = simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    assert own.outcome.measure(disk.name, LATENCY).value == pytest.approx(mean, rel=0.05)
    assert own.outcome.measure(disk.name, RATE).value == pytest.approx(500, rel=0.05)


def test_loops_of_three_depths_are_found_and_simulated(tmp_path: Path) -> None:
    path = tmp_path / "iostat.txt"
    loads = [linear_loop(count, 40, SERVICE_S, 0.3 * SERVICE_S, count) for count in (1, 4, 16)]
    means = write_iostat(path, loads, 40)
    disk = fitted(path)
    assert [level.clients for level in disk.loads.levels] == [1, 4, 16]
    assert isinstance(disk.line, LinearLaw)
    assert disk.line.at(1.0) == pytest.approx(1.0, rel=0.05)
    assert disk.line.slope_ms == pytest.approx(0.3, rel=0.05)
    for count, mean, latency, per_s in zip((1, 4, 16), means, rows(disk, LATENCY), rows(disk, RATE), strict=True):
        assert latency.simulated == pytest.approx(mean, rel=0.05)
        assert per_s.simulated == pytest.approx(1000.0 * count / mean, rel=0.05)


def test_a_loop_that_thinks_is_not_a_deeper_one(tmp_path: Path) -> None:
    """8 clients that are elsewhere for a third of the time."""
    chance, times, ends, free = np.random.default_rng(3), list[float](), list[float](), [0.0] * 8
    while (at := min(free)) < 60.0:
        times.append(at)
        ends.append(at + chance.exponential(0.010))
        free[free.index(at)] = ends[-1] + 0.005
    order = np.argsort(ends)
    (mean,) = write_iostat(tmp_path / "iostat.txt", [(np.array(times)[order], np.array(ends)[order])], 60)
    disk = fitted(tmp_path / "iostat.txt")
    (per_s,), (latency,) = rows(disk, RATE), rows(disk, LATENCY)
    assert latency.simulated == pytest.approx(mean, rel=0.05)
    assert per_s.simulated == pytest.approx(8 / 0.015, rel=0.05)


def test_points_stay_where_no_line_goes_through_them(tmp_path: Path) -> None:
    """Four servers of 2 ms: as fast with four outstanding as with one, then in turn."""
    loads = []
    for count in (1, 4, 16):
        chance, ends, times, free = np.random.default_rng(count), list[float](), list[float](), [0.0] * 4
        sent = [0.0 for _ in range(count)]
        while (at := sent.pop(0)) < 40.0:
            server = free.index(min(free))
            free[server] = max(free[server], at) + float(chance.normal(0.002, 0.0001))
            times.append(at)
            ends.append(free[server])
            sent = sorted([*sent, ends[-1]])
        loads.append((np.array(times), np.array(ends)))
    means = write_iostat(tmp_path / "iostat.txt", loads, 40)
    disk = fitted(tmp_path / "iostat.txt")
    assert isinstance(disk.line, Points)
    assert most_of(disk.device) == pytest.approx(2_000, rel=0.05)
    assert [row.simulated for row in rows(disk, LATENCY)] == pytest.approx(list(means), rel=0.05)


def test_recorded_percentiles_are_compared(tmp_path: Path) -> None:
    """fio's log of every request: 4 outstanding, lognormal latencies of 5 ms."""
    chance, sent, rows_of_log = np.random.default_rng(2), [0.0] * 4, list[str]()
    rates, sizes = list[str](), list[str]()
    while (at := sent.pop(0)) < 40.0:
        taken = float(chance.lognormal(-0.5 * np.log(1.09), np.sqrt(np.log(1.09)))) * 5e-3
        moment = 1_795_300_000_000 + round((at + taken) * 1e3)
        rows_of_log.append(f"{moment}, {round(taken * 1e9)}, 0, 8192, 0, 0")
        rates.append(f"{moment}, 1, 0, 8192, 0, 0")
        sizes.append(f"{moment}, {round(8.0 / taken)}, 0, 8192, 0, 0")
        sent = sorted([*sent, at + taken])
    for kind, lines in (("lat", rows_of_log), ("iops", rates), ("bw", sizes)):
        (tmp_path / f"disk_{kind}.1.log").write_text("\n".join([*sorted(lines), ""]))
    disk = fitted(tmp_path)
    (p95,) = rows(disk, P95)
    latencies = [float(line.split(", ")[1]) / 1e6 for line in rows_of_log]
    assert p95.recorded == pytest.approx(float(np.quantile(latencies, 0.95)), rel=0.03)
    assert p95.simulated == pytest.approx(p95.recorded, rel=0.05)
    assert disk.device["spread"] == pytest.approx(0.3, abs=0.05)
    assert any("fitted to the 95th percentile" in note for note in disk.notes)


def test_what_is_far_from_the_recording_is_told_with_the_reason(tmp_path: Path) -> None:
    path, mine = tmp_path / "iostat.txt", tmp_path / "mine.yaml"
    write_iostat(path, [exponential(rate, 60, n) for n, rate in enumerate((300, 800))], 60)
    done = CliRunner().invoke(build_app(), ["calibrate", str(path), "-o", str(mine), "--json"])
    assert done.exit_code == 0, done.output
    document = json.loads(done.stdout)
    (disk,) = document["disks"]
    assert document["bound_pct"] == calibrating_checks.NEAR_PCT
    assert disk["distance_pct"]["latency_ms_p95"] is None
    last = [row for row in disk["compared"] if row["load"] == "as written" and row["measure"] == LATENCY]
    assert last[0]["distance_pct"] < -20.0
    assert any("the load went from 30" in warning and "bound 5 %" in warning for warning in disk["warnings"])
    assert disk["most_per_s"] == pytest.approx(1_000, rel=0.1)
    shown = CliRunner().invoke(build_app(), ["calibrate", str(path), "-o", str(mine)]).output
    assert "warning: as written: mean latency is simulated at" in " ".join(shown.split())
    assert "p95 not recorded" in " ".join(shown.split())
    assert shown.index("as written") < shown.index("written: ")
    assert "# warning: " not in mine.read_text().replace("#   warning: ", "")
    assert "#   warning: as written: mean latency" in mine.read_text()


def test_a_latency_that_changes_without_the_load_is_told(tmp_path: Path) -> None:
    """A neighbour slows the disk down for half of the recording: no law of its own load says that."""
    path = tmp_path / "iostat.txt"
    slow = poisson(200, 100, 5)
    loads = [constant(200, 100, 1), (slow, slow + 0.02), constant(400, 100, 2)]
    write_iostat(path, loads, 100)
    disk = fitted(path)
    assert any("predictions are weak" in note for note in disk.notes)
    assert any("a neighbour, a limit, a fault" in warning for warning in disk.warnings)


def test_several_recordings_of_a_disk_are_loads_of_it(tmp_path: Path) -> None:
    """Three files of one disk, hours apart, are one calibration of three loads."""
    for number, rate in enumerate((300, 600, 800)):
        path = tmp_path / f"iostat-{number}.txt"
        write_iostat(path, [exponential(rate, 60, number)], 60)
        path.write_text(path.read_text().replace(" 10:0", f" 1{number}:0"))
    (disk,) = calibrate(sorted(tmp_path.glob("*.txt"))).disks
    assert len(disk.loads.levels) == 3
    assert list(np.unique(disk.seen.part)) == [0, 1, 2]
    assert loads_of(disk.seen).is_closed is False


def test_formulas_of_queues_are_those_of_the_books() -> None:
    """Erlang's delay of 2 servers with a load of 1 is 1/3; of one server it is its load. M/D/1 waits half as long."""
    assert erlang_delay(np.array([1.0]), 2)[0] == pytest.approx(1.0 / 3.0)
    assert erlang_delay(np.array([0.7]), 1)[0] == pytest.approx(0.7)
    share = np.array([0.2, 0.4, 0.6, 0.8])
    sight = Sight(1000.0 * share, np.ones(4), 1.0 + 0.5 * share / (1.0 - share), np.full(4, 1e6))
    law = open_law(sight, 256.0)
    assert isinstance(law, Queue)
    assert law.server_count == 1
    assert law.service_ms == pytest.approx(1.0, rel=0.01)
    assert law.service_cv < 0.1


def test_a_log_of_writes_alone_is_calibrated_too(tmp_path: Path) -> None:
    for kind, value in (("lat", 2_000_000), ("iops", 500), ("bw", 4_000)):
        lines = [f"{1_795_300_000_000 + 1_000 * n}, {value}, 1, 0, 0" for n in range(1, 41)]
        (tmp_path / f"wal_{kind}.1.log").write_text("\n".join([*lines, ""]))
    disk = fitted(tmp_path)
    assert [stream["read_pct"] for stream in disk.streams] == [0.0]
    assert rows(disk, LATENCY)[0].simulated == pytest.approx(2.0, rel=0.05)


@pytest.mark.parametrize("closed", [True, False])
def test_the_file_goes_through_the_loads_of_its_recording(tmp_path: Path, *, closed: bool) -> None:
    path, mine = tmp_path / "iostat.txt", tmp_path / "mine.yaml"
    if closed:
        loads = [linear_loop(count, 40, SERVICE_S, 0.3 * SERVICE_S, count) for count in (1, 4, 16)]
    else:
        loads = [constant(rate, 100, n) for n, rate in enumerate((300, 600, 800))]
    means = write_iostat(path, loads, 40 if closed else 100)
    found = calibrate([path])
    mine.write_text(found.text)
    runs = simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    simulated = [run.outcome.measure(found.disks[0].name, LATENCY).value for run in runs]
    assert simulated == pytest.approx(list(means), rel=0.05)
