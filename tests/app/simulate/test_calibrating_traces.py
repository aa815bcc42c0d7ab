"""Scenarios fitted to traces whose truth is known: load and device are found again, or that they are not is said."""

from __future__ import annotations

import heapq
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from typer.testing import CliRunner

from leadline.app.simulate.calibrating import calibrate
from leadline.app.simulate.calibrating_arrivals import BURSTY, EVEN, POISSON, TRACE, fit_arrivals
from leadline.app.simulate.calibrating_fits import Fitted
from leadline.app.simulate.calibrating_laws import LinearLaw
from leadline.app.simulate.simulating import Simulated, plan_simulation, simulate
from leadline.core.model.errors import InputError, UsageError
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore
from tests.conftest import ROOT
from tests.traces import READ, RECORD, START_US, WRITE

Array = NDArray[np.float64]
SAMPLES = ROOT.parent / "shared" / "samples" / "blocktrace"


def write(path: Path, times_s: Array, latency_s: Array, seed: int = 1) -> None:
    """A vscsiStats trace of these requests: 70 % reads, 8 KiB and a fifth of 64 KiB, everywhere."""
    random = np.random.default_rng(seed)
    count = len(times_s)
    made = np.zeros(count, dtype=RECORD)
    made["cmd"] = np.where(random.random(count) < 0.7, READ, WRITE)
    made["ver"] = 0x0200
    made["sn"] = np.arange(count)
    made["len"] = np.where(random.random(count) < 0.2, 65536, 8192)
    made["lbn"] = random.integers(0, 2**30, count) * 16
    made["ts"] = START_US + np.round(times_s * 1e6).astype(np.uint64)
    made["rt"] = np.round(latency_s * 1e6).astype(np.uint64)
    made.tofile(path)


def one_server(times_s: Array, service_s: Array) -> Array:
    """Latencies of a device that takes one after the other. Source: Lindley's recursion."""
    latency, free = np.zeros(len(times_s)), 0.0
    for n, (at, service) in enumerate(zip(times_s, service_s, strict=True)):
        free = max(free, at) + service
        latency[n] = free - at
    return latency


def by_line(times_s: Array, base_s: float, slope_s: float, seed: int) -> Array:
    """Latencies of base + slope x outstanding on average, each itself included, spread by a half."""
    random = np.random.default_rng(seed)
    latency, done = np.zeros(len(times_s)), list[float]()
    around = random.lognormal(-0.5 * np.log(1.25), np.sqrt(np.log(1.25)), len(times_s))
    for n, at in enumerate(times_s):
        while done and done[0] <= at:
            heapq.heappop(done)
        latency[n] = (base_s + slope_s * (len(done) + 1)) * around[n]
        heapq.heappush(done, at + latency[n])
    return latency


def poisson(rate: float, count: int, seed: int) -> Array:
    return np.cumsum(np.random.default_rng(seed).exponential(1.0 / rate, count))


def bursts(rate: float, on_s: float, off_s: float, count: int, seed: int) -> Array:
    """Arrivals at random on a clock that stands still in the pauses."""
    busy = poisson(rate, count, seed)
    return busy + np.floor(busy / on_s) * off_s


def fitted(path: Path, **more: Any) -> Fitted:
    (disk,) = calibrate([path], **more).disks
    return disk


def line_of(disk: Fitted) -> LinearLaw:
    assert isinstance(disk.line, LinearLaw)
    return disk.line


def simulated(tmp_path: Path, trace: Path, **more: Any) -> Simulated:
    mine = tmp_path / "mine.yaml"
    mine.write_text(calibrate([trace], **more).text)
    (own,) = simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    return own


def test_random_arrivals_at_one_server_give_both_back(tmp_path: Path) -> None:
    """M/M/1 at 1,000/s: who finds n others takes n + 1 times the mean service; no base."""
    trace = tmp_path / "db01.vscsi"
    times = poisson(700.0, 60_000, 1)
    latency = one_server(times, np.random.default_rng(2).exponential(1e-3, len(times)))
    write(trace, times, latency)
    disk = fitted(trace)
    line = line_of(disk)
    assert line.slope_ms == pytest.approx(1.0, rel=0.05)
    assert line.base_ms < 0.05
    assert line.r2 > 0.95
    assert line.error_pct < 5.0
    reads, writes = disk.streams
    assert (reads["read_pct"], writes["read_pct"]) == (100.0, 0.0)
    assert reads["rate_iops"] == pytest.approx(490.0, rel=0.03)
    assert writes["rate_iops"] == pytest.approx(210.0, rel=0.03)
    assert {size: round(share, -1) for size, share in reads["block"].items()} == {8192: 80, 65536: 20}
    assert reads["random_pct"] > 99.0
    assert "arrivals" not in reads
    assert "burst" not in reads
    assert all(abs(own.trace - 1.0) < 0.35 for own in disk.arrivals)
    own = simulated(tmp_path, trace).outcome
    assert own.measure("db01", "iops").value == pytest.approx(700.0, rel=0.03)
    assert own.measure("db01", "latency_ms_mean").value == pytest.approx(float(latency.mean()) * 1e3, rel=0.15)


def test_a_line_is_found_whatever_the_load_does_to_it(tmp_path: Path) -> None:
    trace = tmp_path / "db01.vscsi"
    times = bursts(4_000.0, 0.3, 0.2, 80_000, 3)
    write(trace, times, by_line(times, 5e-4, 1e-4, 4))
    disk = fitted(trace)
    line = line_of(disk)
    assert line.base_ms == pytest.approx(0.5, rel=0.07)
    assert line.slope_ms == pytest.approx(0.1, rel=0.07)
    assert line.error_pct < 5.0
    assert disk.device["spread"] == pytest.approx(0.5, rel=0.05)
    burst = disk.streams[0]["burst"]
    assert burst["on_s"] == pytest.approx(0.3, rel=0.05)
    assert burst["off_s"] == pytest.approx(0.2, rel=0.05)
    assert sum(stream["rate_iops"] for stream in disk.streams) == pytest.approx(4_000.0, rel=0.05)
    own = simulated(tmp_path, trace).outcome
    assert own.measure("db01", "iops").value == pytest.approx(2_400.0, rel=0.05)


def test_a_latency_that_hangs_on_nothing_has_no_slope(tmp_path: Path) -> None:
    """What is outstanding on average is made of the latencies; what each request meets is not."""
    trace = tmp_path / "db01.vscsi"
    times = poisson(3_000.0, 60_000, 5)
    write(trace, times, np.random.default_rng(6).lognormal(0.0, 1.0, len(times)) * 1e-3)
    line = line_of(fitted(trace))
    assert line.at(8.0) == pytest.approx(line.at(1.0), rel=0.1)
    assert line.at(5.0) == pytest.approx(np.exp(0.5), rel=0.05)


def test_a_closed_loop_is_told_by_its_issues(tmp_path: Path) -> None:
    trace = tmp_path / "db01.vscsi"
    random = np.random.default_rng(7)
    times, latency, done = [], [], [(n * 1e-5, n) for n in range(8)]
    for _ in range(20_000):
        at, lane = heapq.heappop(done)
        times.append(at)
        latency.append(random.lognormal(0.0, 0.5) * 2e-3)
        heapq.heappush(done, (at + latency[-1] + 2e-6, lane))
    write(trace, np.array(times), np.array(latency))
    disk = fitted(trace)
    (stream,) = disk.streams
    assert stream["oio"] == 8
    assert "rate_iops" not in stream
    assert stream["read_pct"] == pytest.approx(70.0, abs=2.0)
    assert line_of(disk).against == "nothing"
    rate = simulated(tmp_path, trace).outcome.measure("db01", "iops").value
    assert rate == pytest.approx(len(times) / times[-1], rel=0.05)


@pytest.mark.parametrize(
    ("times", "name"),
    [
        (poisson(500.0, 30_000, 1), POISSON),
        (np.arange(30_000) / 500.0, EVEN),
        (bursts(2_000.0, 0.05, 0.2, 30_000, 2), BURSTY),
        (np.sqrt(poisson(5.0, 30_000, 3)), TRACE),  # ever more
        (np.cumsum(np.random.default_rng(4).pareto(1.2, 30_000) * 1e-3), TRACE),
    ],
)
def test_a_source_is_chosen_by_how_bursty_it_is(times: Array, name: str) -> None:
    source, windows = fit_arrivals(times - times[0])
    assert source.name == name
    if name != TRACE:
        rate = (len(times) - 1) / float(times[-1] - times[0])
        assert source.rate * source.on_share == pytest.approx(rate, rel=0.02)
    assert windows[0].window_s == 0.01


def test_a_load_no_source_is_like_is_replayed_request_by_request(tmp_path: Path) -> None:
    trace = tmp_path / "db01.vscsi"
    times = np.sqrt(poisson(5.0, 12_000, 3))
    write(trace, times, np.full(len(times), 5e-4))
    assert any("no source of a simulation" in note for note in fitted(trace).notes)
    own = simulated(tmp_path, trace)
    done = sum(part.count or 0 for result in own.outcome.results for part in result.operations)
    assert done == pytest.approx(len(times), abs=4)  # the last may be under way
    assert own.variant.scenario.timing.measure_s == pytest.approx(times[-1] - times[0], abs=1e-3)


def test_what_is_asked_for_is_replayed_too(tmp_path: Path) -> None:
    trace = tmp_path / "db01.vscsi"
    times = poisson(500.0, 5_000, 8)
    write(trace, times, np.full(len(times), 1e-3))
    assert fitted(trace).recording is None
    disk = fitted(trace, replay=True)
    assert disk.recording == {"files": [str(trace)], "disk": "db01"}
    own = simulated(tmp_path, trace, replay=True)
    rate = len(times) / (times[-1] - times[0])
    assert own.outcome.measure("db01", "iops").value == pytest.approx(rate, rel=0.05)
    sizes = {part.name: part.bytes_per_s / part.per_s for part in own.outcome.results[0].operations}
    assert sizes["read"] == pytest.approx(0.8 * 8192 + 0.2 * 65536, rel=0.1)


def test_without_completions_the_load_is_fitted_and_the_device_is_not(tmp_path: Path) -> None:
    trace = tmp_path / "load.iolog"
    micros = np.round(poisson(200.0, 8_000, 9) * 1e6).astype(int)
    lines = [f"{at} /dev/sdb read {n * 7919 % 65536 * 8192} 8192" for n, at in enumerate(micros)]
    trace.write_text("\n".join(["fio version 3 iolog", "0 /dev/sdb add", "0 /dev/sdb open", *lines, ""]))
    disk = fitted(trace)
    assert disk.line is None
    assert any("the device is a placeholder" in note for note in disk.notes)
    (stream,) = disk.streams
    assert stream["rate_iops"] == pytest.approx(200.0, rel=0.03)
    assert stream["block"] == 8192
    assert simulated(tmp_path, trace).outcome.measure(disk.name, "latency_ms_mean").value == pytest.approx(
        1.0, rel=0.01
    )


@pytest.mark.slow
def test_traces_stand_beside_captures(tmp_path: Path) -> None:
    trace = tmp_path / "traces" / "sdz.vscsi"
    trace.parent.mkdir()
    times = poisson(500.0, 5_000, 8)
    write(trace, times, np.full(len(times), 1e-3))
    capture = ROOT / "examples" / "incidents" / "healthy" / "iostat.txt.gz"
    names = {disk.name for disk in calibrate([capture, trace.parent]).disks}
    assert "sdz" in names
    assert len(names) > 1
    (disk,) = calibrate([capture, trace], "sdz").disks
    assert disk.arrivals
    with pytest.raises(UsageError, match="no trace"):
        calibrate([capture], replay=True)


def test_every_disk_of_a_trace_is_fitted_and_can_be_replayed(tmp_path: Path) -> None:
    trace, mine = tmp_path / "two.csv", tmp_path / "mine.yaml"
    random = np.random.default_rng(11)
    lines = []
    for n, at in enumerate(np.round(poisson(300.0, 6_000, 10) * 1e7).astype(int)):
        log = n % 3 == 0  # a log, written from end to end, beside random reads
        place = n * 21_504 + 5 * 2**30 if log else int(random.integers(0, 2**20)) * 8192
        lines.append(
            f"{128 * 10**15 + at},db01,{int(log)},{'Write' if log else 'Read'},{place},{64512 if log else 8192},9000"
        )
    trace.write_text("\n".join([*lines, ""]))
    done = CliRunner().invoke(build_app(), ["calibrate", str(trace), "-o", str(mine), "--replay", "--json"])
    assert done.exit_code == 0, done.output
    data, log = json.loads(done.stdout)["disks"]
    assert data["recording"]["disk"] != log["recording"]["disk"]
    assert [stream["block"] for stream in (*data["streams"], *log["streams"])] == [8192, 64512]
    assert data["streams"][0]["random_pct"] > 99.0
    assert log["streams"][0]["random_pct"] < 1.0
    assert data["arrivals"][0]["trace"] == pytest.approx(1.0, abs=0.3)
    (own,) = simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    for disk, rate in ((data, 200.0), (log, 100.0)):
        assert own.outcome.measure(disk["name"], "iops").value == pytest.approx(rate, rel=0.05)
        assert own.outcome.measure(disk["name"], "latency_ms_mean").value == pytest.approx(0.9, rel=0.02)
    shown = CliRunner().invoke(build_app(), ["calibrate", str(trace), "-o", str(mine), "--entity", "db01,0"])
    assert "the intervals that the fit did not use" in " ".join(shown.output.split())


def test_a_trace_of_little_is_refused(tmp_path: Path) -> None:
    write(tmp_path / "db01.vscsi", poisson(10.0, 50, 1), np.full(50, 1e-3))
    with pytest.raises(InputError, match="no disk of 100 requests"):
        calibrate([tmp_path / "db01.vscsi"])


def test_a_scenario_names_one_trace(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / f"{name}.vscsi", poisson(500.0, 2_000, 8), np.full(2_000, 1e-3))
    text = calibrate([tmp_path / "one.vscsi"]).text
    load = text.index("  workload:")
    head, tail = text[:load], text[text.index("hosts:") :]
    mine = tmp_path / "own.yaml"
    mine.write_text(f"{head}  trace: one.vscsi\n{tail}")
    (own,) = simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    assert own.outcome.measure("one", "iops").value == pytest.approx(500.0, rel=0.1)
    mine.write_text(f"{head}  trace: {{files: [one.vscsi, two.vscsi]}}\n{tail}")
    with pytest.raises(InputError, match="2 traces"):
        simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    mine.write_text(f"{head}  trace: {{files: [one.vscsi], disk: other}}\n{tail}")
    with pytest.raises(InputError, match="no disk other"):
        simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))


@pytest.mark.skipif(not SAMPLES.is_dir(), reason="needs the real traces of shared/samples")
def test_a_real_trace_is_fitted_and_simulated(tmp_path: Path) -> None:
    paths = sorted(SAMPLES.glob("*.blktrace.*"))
    found = calibrate(paths)
    assert found.disks
    for disk in found.disks:
        line = line_of(disk)
        assert 0.0 < line.at(1.0) < 1_000.0
        assert line.error_pct == line.error_pct
    mine = tmp_path / "mine.yaml"
    mine.write_text(found.text)
    (own,) = simulate(plan_simulation(mine), RunStore(tmp_path / "runs"))
    for disk in found.disks:
        wanted = float(np.nanmean(disk.seen.rate))
        assert own.outcome.measure(disk.name, "iops").value == pytest.approx(wanted, rel=0.25)
