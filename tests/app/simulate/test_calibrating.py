"""Scenarios fitted to captures whose truth is known."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from leadline.app.simulate.calibrating import calibrate
from leadline.app.simulate.calibrating_laws import LinearLaw, fit_line, most_of
from leadline.app.simulate.checking_block_layer import RealDisk, served
from leadline.app.simulate.simulating import plan_simulation, simulate
from leadline.core.contracts.scenario import parse_axis
from leadline.core.model.errors import InputError, UsageError
from leadline.faces.cli.main import build_app
from leadline.stores.runs import RunStore
from tests.conftest import ROOT

HEALTHY = ROOT / "examples" / "incidents" / "healthy" / "iostat.txt.gz"


def invoke(*words: str) -> Any:
    return CliRunner().invoke(build_app(), list(words))


def iostat(path: Path, rates: np.ndarray, latencies_ms: np.ndarray, kib: float = 8.0) -> None:
    """A recording of a disk `sdb` that does these reads a second at these latencies, half as many writes."""
    lines = ["Linux 6.1.0 (db01) \t11/21/2026 \t_x86_64_\t(2 CPU)", ""]
    for second, (rate, latency) in enumerate(zip(rates, latencies_ms, strict=True)):
        total = 1.5 * rate
        lines += [
            f"11/21/2026 10:{second // 60:02d}:{second % 60:02d}",
            "Device r/s rkB/s rrqm/s %rrqm r_await rareq-sz w/s wkB/s wrqm/s %wrqm w_await wareq-sz aqu-sz %util",
            f"sdb {rate:.2f} {rate * kib:.2f} 0.00 0.00 {latency:.3f} {kib:.2f} {rate / 2:.2f} {rate / 2 * kib:.2f} "
            f"0.00 0.00 {latency:.3f} {kib:.2f} {total * latency / 1000.0:.4f} 50.00",
            "",
        ]
    path.write_text("\n".join(lines))


def test_an_open_load_on_a_known_device_gives_the_device_back(tmp_path: Path) -> None:
    chance = np.random.default_rng(7)
    rates = chance.uniform(200, 1_200, 120)
    latency = 0.5 / (1.0 - 1.5 * rates / 2_400.0) * chance.normal(1.0, 0.03, 120)
    iostat(tmp_path / "iostat.txt", rates, latency)
    (disk,) = calibrate([tmp_path / "iostat.txt"], "sdb").disks
    assert isinstance(disk.line, LinearLaw)
    assert disk.line.against == "rate"
    assert disk.line.at(1.0) == pytest.approx(0.5, rel=0.05)  # of who finds no other
    assert most_of(disk.device) == pytest.approx(2_400, rel=0.05)
    assert disk.line.error_pct < 5.0
    assert disk.line.r2 > 0.9
    reads, writes = disk.streams
    assert reads["rate_iops"] == pytest.approx(rates.mean(), rel=0.01)
    assert writes["rate_iops"] == pytest.approx(rates.mean() / 2, rel=0.01)
    assert reads["block"] == writes["block"] == 8192


def test_a_steady_load_with_noise_does_not_make_its_own_rate_the_limit(tmp_path: Path) -> None:
    """Latency against outstanding by Little's law would be latency against itself here: a perfect line to nowhere."""
    chance = np.random.default_rng(3)
    iostat(tmp_path / "iostat.txt", chance.normal(1_000, 50, 200), chance.normal(1.0, 0.2, 200).clip(0.2))
    (disk,) = calibrate([tmp_path / "iostat.txt"], "sdb").disks
    assert isinstance(disk.line, LinearLaw)
    assert disk.line.against == "nothing"
    assert disk.line.slope_ms == 0.0
    assert disk.line.r2 < 0.2
    assert disk.line.error_pct > 10.0


def test_a_load_steadier_than_chance_is_a_loop(tmp_path: Path) -> None:
    chance = np.random.default_rng(5)
    for name, rates, count in (("loop", chance.normal(1_000, 5, 60), 1), ("open", chance.poisson(1_000, 60), 2)):
        iostat(tmp_path / f"{name}.txt", rates.astype(float), np.full(60, 5.0))
        (disk,) = calibrate([tmp_path / f"{name}.txt"], "sdb").disks
        assert len(disk.streams) == count, name


def test_lines_keep_their_signs() -> None:
    load = np.linspace(1.0, 32.0, 40)
    falling = fit_line(load, 10.0 - 0.1 * load, load)
    assert falling.slope_ms == 0.0
    through = fit_line(load, 2.0 * load - 1.0, load)
    assert through.base_ms == 0.0
    straight = fit_line(load, 0.4 + 0.05 * load, load)
    assert straight.base_ms == pytest.approx(0.4)
    assert straight.slope_ms == pytest.approx(0.05)
    assert straight.r2 == pytest.approx(1.0)
    assert fit_line(np.full(40, 8.0), np.full(40, 4.0), load).against == "nothing"


def test_the_shipped_incident_is_fitted_and_asked(tmp_path: Path) -> None:
    mine = tmp_path / "mine.yaml"
    done = invoke("calibrate", str(HEALTHY), "--entity", "loop1", "-o", str(mine), "--json")
    assert done.exit_code == 0, done.output
    (disk,) = json.loads(done.stdout)["disks"]
    assert disk["name"] == "db01-loop1"
    assert disk["line"]["error_pct"] < 25.0
    planned = plan_simulation(mine, [parse_axis("vms.db01-loop1.iops_limit=null,200")])
    free, limited = simulate(planned, RunStore(tmp_path / "runs"))
    rate = sum(stream["rate_iops"] for stream in disk["streams"])
    assert free.outcome.measure("db01-loop1", "iops").value == pytest.approx(rate, rel=0.05)
    assert free.outcome.measure("db01-loop1", "latency_ms_mean").value == pytest.approx(
        disk["line"]["base_ms"], rel=0.25
    )
    assert limited.outcome.measure("db01-loop1", "iops").value == pytest.approx(min(rate, 200), rel=0.05)


def test_a_fault_in_the_recording_is_told_as_weak(tmp_path: Path) -> None:
    path = ROOT / "examples" / "incidents" / "throttled-wal-disk" / "iostat.txt"
    (disk,) = calibrate([path], "loop1").disks
    assert any("predictions are weak" in note for note in disk.notes)


def test_a_generated_esxtop_capture_gives_every_vm_its_disks(tmp_path: Path) -> None:
    capture, mine = tmp_path / "cap.csv", tmp_path / "mine.yaml"
    assert invoke("generate", str(capture), "--vms", "2", "--minutes", "5", "-q").exit_code == 0
    done = invoke("calibrate", str(capture), "--entity", "vm002", "-o", str(mine))
    assert done.exit_code == 0, done.output
    assert "the intervals that the fit did not use" in " ".join(done.output.split())
    planned = plan_simulation(mine)
    (own,) = simulate(planned, RunStore(tmp_path / "runs"))
    names = [name for name in own.outcome.entities() if name.startswith("vm002")]
    assert names
    wanted = {disk.name: float(np.nanmean(disk.seen.rate)) for disk in calibrate([capture], "vm002").disks}
    for name in names:
        assert own.outcome.measure(name, "iops").value == pytest.approx(wanted[name], rel=0.1)


@pytest.mark.real
@pytest.mark.skipif(shutil.which("qemu-storage-daemon") is None or shutil.which("fio") is None, reason="needs both")
def test_a_fio_run_of_known_depth_predicts_what_a_limit_does(tmp_path: Path) -> None:
    """8 outstanding on a device of 10 ms; then a limit that was not there is asked about, and tried."""

    def fio(limit: float | None, name: str) -> dict[str, Any]:
        with served([RealDisk("d", limit, 10_000_000)], tmp_path / f"disk-{name}") as at:
            words = f"fio --name=load --ioengine=nbd --uri={at['d']} --rw=randrw --rwmixread=75 --bs=16k --iodepth=8"
            words += f" --size=16m --time_based --runtime=6 --thread --output-format=json --output={name}.json"
            logs = ("lat", "iops", "bw") if limit is None else ()
            more = [f"--write_{kind}_log={name}" for kind in logs]
            more += ["--log_avg_msec=250", "--log_unix_epoch=1"] if logs else []
            subprocess.run([*words.split(), *more], cwd=tmp_path, check=True, timeout=60)
        job: dict[str, Any] = json.loads((tmp_path / f"{name}.json").read_text().partition("\n")[2])["jobs"][0]
        return job

    fio(None, "free")
    mine = tmp_path / "mine.yaml"
    found = calibrate(sorted(tmp_path.glob("free_*.log")), name="mine")
    mine.write_text(found.text)
    (disk,) = found.disks
    (stream,) = disk.streams
    assert stream["oio"] == 8
    assert stream["read_pct"] == pytest.approx(75, abs=4)
    assert stream["block"] == pytest.approx(16384, rel=0.1)
    assert disk.line is not None
    assert disk.device["curve"][0][1] >= 0.010
    real = fio(100, "limited")
    planned = plan_simulation(mine, [parse_axis(f"vms.{disk.name}.iops_limit=null,100")])
    free, limited = simulate(planned, RunStore(tmp_path / "runs"))
    rate = sum(real[way]["iops"] for way in ("read", "write"))
    count = sum(real[way]["total_ios"] for way in ("read", "write"))
    mean_ms = sum(real[way]["lat_ns"]["mean"] * real[way]["total_ios"] for way in ("read", "write")) / count / 1e6
    assert free.outcome.measure(disk.name, "iops").value > 3 * rate
    assert limited.outcome.measure(disk.name, "iops").value == pytest.approx(rate, rel=0.1)
    assert limited.outcome.measure(disk.name, "latency_ms_mean").value == pytest.approx(mean_ms, rel=0.12)


def test_what_cannot_be_fitted_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no disk of that name"):
        calibrate([HEALTHY], "nobody")
    iostat(tmp_path / "short.txt", np.full(6, 100.0), np.full(6, 1.0))
    with pytest.raises(InputError, match="none in 10 intervals of load"):
        calibrate([tmp_path / "short.txt"])
