"""Recordings beside simulations of what `leadline calibrate` makes of them: rate, mean latency and p95 at three loads.

``python -m benches.bench_calibrate [--seconds N] [--depths N ...] [--fio-seconds N] [--latency-ms N] [--cap N]``

First three disks that are simulated here, without Leadline's simulator, and recorded as iostat prints them: one server
with exponential service (M/M/1), one with constant service (M/D/1), and a device as slow as requests are outstanding.
Then real fio at three depths on a block device over qemu-storage-daemon, recorded by iostat and in fio's own logs; a
device with a latency only, and one with a cap as well. What fio itself reports is printed beside both. It exits with 1
when a simulation is more than 5 % from its recording, and leaves out what cannot be made here, with the reason.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any

import numpy as np

from benches.recorded_disks import Array, linear, one_server, poisson, write_iostat
from benches.throttled import missing, throttled_disk
from leadline.app.simulate.calibrating import calibrate
from leadline.app.simulate.calibrating_fits import LATENCY, P95, RATE, Fitted

WITHIN_PCT = 5.0
SERVICE_S = 0.001
RATES = (300.0, 600.0, 800.0)
DEPTHS = (1, 4, 16)
SETTLE_S = 2.0  # of fio, before it is recorded
ENVIRONMENT = {"LC_ALL": "C", "TZ": "UTC", "S_TIME_FORMAT": "ISO"}
WORDS = {RATE: "per s", LATENCY: "mean ms", P95: "p95 ms"}


@dataclass(frozen=True)
class Reported:
    """What fio says of a run: operations per second, mean and 95th percentile of latency in ms."""

    depth: int
    per_s: float
    mean_ms: float
    p95_ms: float


def served(service: Callable[[int, int], Array]) -> Callable[[float, float, int], tuple[Array, Array]]:
    """Arrivals at random, and when one server with such service times is done with them."""

    def load(rate: float, seconds: float, seed: int) -> tuple[Array, Array]:
        times = poisson(rate, seconds, seed)
        return times, one_server(times, service(len(times), seed + 100))

    return load


def by_line(rate: float, seconds: float, seed: int) -> tuple[Array, Array]:
    """Arrivals at random on a device of 1 ms and 0.3 ms for each other request."""
    times = poisson(2.5 * rate, seconds, seed)
    return times, linear(times, SERVICE_S, 0.3 * SERVICE_S, seed + 100)


DISKS = {
    "M/M/1": served(lambda count, seed: np.random.default_rng(seed).exponential(SERVICE_S, count)),
    "M/D/1": served(lambda count, _: np.full(count, SERVICE_S)),
    "a linear device": by_line,
}


def shown(disk: Fitted, reported: Sequence[Reported] = ()) -> bool:
    """Print one table; whether the simulation is within the budget at every load."""
    print(f"  {disk.sentence}")
    print(f"  {'load':24} {'':8} {'recorded':>10} {'simulated':>10} {'distance':>9} {'fio says':>10}")
    met = True
    for row in disk.compared:
        own = next((one for one in reported if row.load.startswith(f"{one.depth} ")), None)
        says = {} if own is None else {RATE: own.per_s, LATENCY: own.mean_ms, P95: own.p95_ms}
        recorded = f"{row.recorded:10.4g}" if isfinite(row.recorded) else "not rec."
        off = f"{row.distance_pct:+8.1f}%" if isfinite(row.distance_pct) else "-"
        other = f"{says[row.measure]:10.4g}" if row.measure in says else ""
        print(f"  {row.load:24} {WORDS[row.measure]:8} {recorded:>10} {row.simulated:10.4g} {off:>9} {other:>10}")
        is_mean_of_loads = len(disk.loads.levels) > 1 and row.load == "as written"
        met &= is_mean_of_loads or not abs(row.distance_pct) > WITHIN_PCT
    return met


def simulated_here(seconds: int, folder: Path) -> bool:
    """The disks of this file; whether all are within the budget."""
    met = True
    for number, (name, load) in enumerate(DISKS.items()):
        path = folder / f"iostat-{number}.txt"
        loads = [load(rate, seconds, 10 * number + n) for n, rate in enumerate(RATES)]
        means = write_iostat(path, loads, seconds)
        print(f"{name}, {seconds} s at each load; all requests: {', '.join(f'{mean:.3g} ms' for mean in means)}")
        (disk,) = calibrate([path]).disks
        met &= shown(disk)
    return met


def fio_at(device: str, depth: int, seconds: float, folder: Path) -> Reported:
    """Run fio at a depth, recorded by iostat and in its own logs in ``folder``; return what its report says."""
    folder.mkdir()
    words = ["fio", "--name=disk", "--ioengine=libaio", "--direct=1", "--rw=randrw", "--rwmixread=70", "--bs=4k"]
    words += [f"--filename={device}", f"--iodepth={depth}", "--time_based", f"--runtime={seconds + 2 * SETTLE_S}"]
    words += [f"--ramp_time={SETTLE_S}", "--log_unix_epoch=1", "--output-format=json+", "--output=fio.out"]
    words += [f"--write_{kind}_log=disk" for kind in ("lat", "iops", "bw")]
    fio = subprocess.Popen(words, cwd=folder)
    time.sleep(2.0 * SETTLE_S)
    with (folder / "iostat.txt").open("wb") as stream:
        count = str(round(seconds) + 1)  # the first is since boot
        recorder = subprocess.Popen(
            ["iostat", "-x", "-t", "1", count], stdout=stream, env={**os.environ, **ENVIRONMENT}
        )
        recorder.wait(seconds + 60.0)
    fio.wait(seconds + 60.0)
    text = (folder / "fio.out").read_text()
    job: dict[str, Any] = json.loads(text[text.index("{") :])["jobs"][0]
    ways = [job[way] for way in ("read", "write") if job[way]["total_ios"]]
    counts = np.array([way["total_ios"] for way in ways], dtype=np.float64)
    mean = float(np.average([way["lat_ns"]["mean"] for way in ways], weights=counts)) / 1e6
    return Reported(depth, sum(way["iops"] for way in ways), mean, _p95_ms(ways))


def _p95_ms(ways: Sequence[dict[str, Any]]) -> float:
    """95th percentile of reads and writes together, from fio's buckets of completion latency."""
    bins: dict[int, int] = {}
    for way in ways:
        for edge, count in way["clat_ns"].get("bins", {}).items():
            bins[int(edge)] = bins.get(int(edge), 0) + count
    if not bins:
        return float("nan")
    edges = sorted(bins)
    counted = np.cumsum([bins[edge] for edge in edges])
    return edges[int(np.searchsorted(counted, 0.95 * counted[-1]))] / 1e6


def real(latency_ms: float, cap: int, depths: Sequence[int], seconds: float, folder: Path) -> bool:
    """Run fio at these depths on a disk of that latency and cap; whether both calibrations are within the budget."""
    folder.mkdir()
    told = f"{latency_ms:g} ms" + (f", capped at {cap}/s" if cap else "")
    with throttled_disk(folder, cap, 256 << 20, as_device=True, latency_ms=latency_ms) as device:
        reported = [fio_at(device, depth, seconds, folder / f"depth-{depth}") for depth in depths]
    met = True
    for name, pattern, entity in (("iostat", "iostat.txt", Path(device).name), ("fio's logs", "*.log", None)):
        paths = sorted(folder.glob(f"depth-*/{pattern}"))
        print(f"fio on a device of {told}, {seconds:g} s at each depth, calibrated from {name}")
        (disk,) = calibrate(paths, entity).disks
        met &= shown(disk, reported)
    return met


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=int, default=300, help="of each load of the disks simulated here")
    parser.add_argument("--depths", type=int, nargs="*", default=list(DEPTHS), help="of fio; none: no fio")
    parser.add_argument("--fio-seconds", type=float, default=40.0, help="of each depth")
    parser.add_argument("--latency-ms", type=float, default=10.0, help="of the device under fio")
    parser.add_argument("--cap", type=int, default=300, help="operations per second of the second device under fio")
    parser.add_argument("--any", action="store_true", help="exit with 0 whatever is found")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        met = simulated_here(options.seconds, folder)
        reason = missing(as_device=True)
        if reason is not None:
            print(f"real fio not measured: {reason}")
        elif options.depths:
            for number, cap in enumerate((0, options.cap)):
                met &= real(options.latency_ms, cap, options.depths, options.fio_seconds, folder / f"real-{number}")
    print(f"budget: {WITHIN_PCT:g} % at every load; {'met' if met else 'missed'}")
    if not met and not options.any:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
