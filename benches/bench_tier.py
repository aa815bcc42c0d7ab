"""The curve of `leadline plan tier` beside a disk that has that limit: 95th percentile of latency, within 15 %.

``python -m benches.bench_tier [--caps N ...] [--repeat N] [--latency MS]`` asks a disk for a changing rate (an
open stream, at random) without a limit and records it with iostat, once a second. From that recording alone the 95th
percentile behind each cap is predicted. Then the disk gets the cap, by qemu-storage-daemon, and is asked for the same
again; the latencies, request by request, are the truth. It exits with 1 when a prediction is further off than
`WITHIN_PCT`, and with 0 and a reason where such a disk cannot be made.
"""

from __future__ import annotations

import argparse
import mmap
import os
import subprocess
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benches.throttled import missing, throttled_disk
from leadline.app.read.importing import import_paths
from leadline.core.system.tools import find_program
from leadline.planners._tier.recorded import recorded_demand
from leadline.planners._tier.shaping import Requests, TokenLimit, behind

WITHIN_PCT = 15.0
CAPS = (160, 170, 180, 200)
PHASES = ((8, 110), (2, 200), (10, 140), (2, 190)) * 2  # seconds, requests a second; what waits fits a queue of 128
QEMU_HELD_S = 0.1  # what a throttle group without a burst holds, seconds of its rate
SEED = 1  # the same requests each time: what is asked is the demand that was recorded
SIZE_BYTES, DEPTH, BLOCK_BYTES = 64 << 20, 512, 8192


def arrivals() -> NDArray[np.float64]:
    """When requests come, ms: at random within each phase, and the same each time."""
    random = np.random.default_rng(SEED)
    starts = np.cumsum([0, *(seconds for seconds, _ in PHASES)])
    some = [
        start + seconds * random.random(random.poisson(seconds * rate))
        for start, (seconds, rate) in zip(starts, PHASES, strict=False)
    ]
    return np.sort(np.concatenate(some)) * 1000.0


def asked(device: str) -> NDArray[np.float64]:
    """Send each request at its time, whatever waits; the latency of each from that time on, ms.

    fio is not used: with a rate it falls behind when answers are late, and a replayed log counts an answer only when
    the next request is sent.
    """
    random = np.random.default_rng(SEED)
    due_s = arrivals() / 1000.0
    offsets = random.integers(0, SIZE_BYTES // BLOCK_BYTES, len(due_s)) * BLOCK_BYTES
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
    taken_ms = np.zeros(len(due_s))
    began = time.perf_counter()

    def read(number: int) -> None:
        with mmap.mmap(-1, BLOCK_BYTES) as buffer:
            os.preadv(descriptor, [buffer], int(offsets[number]))
        taken_ms[number] = (time.perf_counter() - began - due_s[number]) * 1000.0

    try:
        with ThreadPoolExecutor(DEPTH) as pool:
            waiting = []
            for number, due in enumerate(due_s.tolist()):
                time.sleep(max(began + due - time.perf_counter(), 0.0))
                waiting.append(pool.submit(read, number))
            for one in waiting:
                one.result()
    finally:
        os.close(descriptor)
    return taken_ms


def recorded(device: str, folder: Path) -> NDArray[np.float64]:
    """Ask while iostat records the disk."""
    count = sum(seconds for seconds, _ in PHASES)
    with (folder / "iostat.txt").open("w") as stream:
        words = [str(find_program("iostat")), "-x", "-y", "-t", "1", str(count + 2), Path(device).name]
        process = subprocess.Popen(words, stdout=stream, env={**os.environ, "S_TIME_FORMAT": "ISO", "LC_ALL": "C"})
        try:
            return asked(device)
        finally:
            process.wait(timeout=30)


def main(arguments: list[str] | None = None) -> None:
    """Record, predict, cap, measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n\n")[0])
    parser.add_argument("--caps", type=int, nargs="*", default=list(CAPS))
    parser.add_argument("--repeat", type=int, default=1, help="runs with other requests at each cap")
    parser.add_argument("--latency", type=float, default=2.0, help="of the disk, ms")
    options = parser.parse_args(arguments)
    reason = missing(as_device=True) or next(
        (f"{name} is not installed" for name in ("iostat",) if find_program(name) is None), None
    )
    if reason is not None:
        print(f"not measured: {reason}")
        return
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        folder = Path(name)
        with throttled_disk(folder, 0, SIZE_BYTES, as_device=True, latency_ms=options.latency) as device:
            free = recorded(device, folder)
        demand = recorded_demand(import_paths([folder / "iostat.txt"]).capture, "")
    assert demand is not None
    requests = Requests.of(demand.demand)
    unlimited = behind(requests, TokenLimit(None))
    print(f"recorded: {demand.origin}")
    print(f"no limit:  p95 predicted {unlimited.p95_ms:7.1f} ms, measured {np.quantile(free, 0.95):7.1f} ms")
    worst = 0.0
    for cap in options.caps:
        predicted = behind(requests, TokenLimit(float(cap), held_s=QEMU_HELD_S))
        for _ in range(options.repeat):
            with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
                with throttled_disk(Path(name), cap, SIZE_BYTES, as_device=True, latency_ms=options.latency) as device:
                    measured = asked(device)
            p50, p95 = np.quantile(measured, [0.5, 0.95])
            off = 100.0 * (predicted.p95_ms / p95 - 1.0)
            worst = max(worst, abs(off))
            print(
                f"cap {cap}/s: p95 predicted {predicted.p95_ms:7.1f} ms, measured {p95:7.1f} ms, {off:+.1f} %; "
                f"p50 {predicted.p50_ms:.1f} and {p50:.1f} ms; queue at most {predicted.queue_most}"
            )
    print(f"furthest off {worst:.1f} %, budget {WITHIN_PCT:g} %")
    if worst > WITHIN_PCT:
        raise SystemExit(1)


if __name__ == "__main__":
    main()
