"""What keeping every sample costs: 1,000 VMs with 40 metrics at 20 s, a day of them (173 million samples).

``python -m benches.bench_store [--vms N] [--hours H | --days D] [--every S] [--batch N] [--folder DIR] [--beside]
[--profile]``

Values are like those of vCenter's real-time counters: integers (or hundredths of a percent), a quarter of the series
constant or zero, latencies of a few milliseconds, rates with idle times and bursts, memory that moves in steps. It
prints samples a second (appended, durable, compacted), bytes a sample of raw samples and of roll-ups, one VM's day
raw and the top 20 VMs by p95, in milliseconds (best and median of several). With ``--beside`` the
same samples go into VictoriaMetrics and Prometheus, where these are built. It exits with 1 when a bar is missed at
full size.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import resource
import shutil
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benches import store_peers
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn
from leadline.core.model.vocabulary import EntityKind
from leadline.stores.samples import SampleStore

START_NS = 1_789_948_800 * 10**9  # the beginning of a day, UTC
NS_PER_S = 10**9
BYTES_MAX, DAY_MS_MAX, TOP_MS_MAX = 1.5, 50.0, 300.0
TIMES_THEIRS_MAX = 1.3  # bytes a sample, of VictoriaMetrics'
QUERIES = 7
# How many metrics behave how.
KINDS = {"constant": 6, "zero": 9, "latency": 6, "percent": 6, "rate": 8, "steps": 5}
Floats = NDArray[np.float64]


class Counters:
    """Values of all metrics of all VMs, a span after the other."""

    def __init__(self, vms: int, every_s: int, seed: int = 1) -> None:
        self.random = np.random.default_rng(seed)
        self.every_s, self.vms = every_s, vms
        host = [Entity(EntityKind.HOST, f"esx{i:03}") for i in range(-(-vms // 20))]
        self.entities = EntityColumn([Entity(EntityKind.VM, f"vm{i:05}", host[i // 20]) for i in range(vms)])
        self.metrics = [(f"raw.{kind}_{i}", kind) for kind, count in KINDS.items() for i in range(count)]
        self.size = {name: np.exp(self.random.normal(0.0, 1.2, (vms, 1))) for name, _ in self.metrics}
        self.last = {name: self.random.normal(0.0, 1.0, (vms, 1)) for name, _ in self.metrics}

    def span(self, start_ns: int, count: int) -> list[SeriesGroup]:
        """The next samples of every metric."""
        times_ns = start_ns + np.arange(count, dtype=np.int64) * self.every_s * NS_PER_S
        made = []
        for name, kind in self.metrics:
            values = getattr(self, f"_{kind}")(name, count).astype(np.float32)
            made.append(SeriesGroup(name, self.entities, times_ns, values, float(self.every_s)))
        return made

    def _noise(self, name: str, count: int, memory: float = 0.8) -> Floats:
        """An autoregressive course of deviation 1 per VM."""
        noise = self.random.standard_normal((self.vms, count)) * np.sqrt(1 - memory**2)
        course: Floats = np.empty(noise.shape)
        state = self.last[name][:, 0]
        for i in range(count):
            state = memory * state + noise[:, i]
            course[:, i] = state
        self.last[name] = state[:, None]
        return course

    def _constant(self, name: str, count: int) -> Floats:
        values: Floats = np.repeat(np.rint(self.size[name] * 4096) * 1024, count, axis=1)
        return values

    def _zero(self, name: str, count: int) -> Floats:
        busy = self.size[name] > 7.0  # a VM in twenty has something now and then
        seldom = self.random.random((self.vms, count)) < 0.02
        return np.where(busy & seldom, self.random.poisson(20.0, (self.vms, count)), 0).astype(np.float64)

    def _latency(self, name: str, count: int) -> Floats:
        return self.random.poisson(self.size[name] * np.exp(0.4 * self._noise(name, count))).astype(np.float64)

    def _percent(self, name: str, count: int) -> Floats:
        values: Floats = (
            np.rint(np.clip(8 * self.size[name] * np.exp(0.3 * self._noise(name, count)), 0, 100) * 100) / 100
        )
        return values

    def _rate(self, name: str, count: int) -> Floats:
        course = self._noise(name, count, 0.9)
        idle = course < np.where(self.size[name] < 0.8, 0.6, -1.0)
        burst = self.random.random((self.vms, count)) < 0.005
        values = 60 * self.size[name] * np.exp(0.5 * course) * np.where(burst, 20.0, 1.0)
        rates: Floats = np.where(idle, 0.0, np.rint(values))
        return rates

    def _steps(self, name: str, count: int) -> Floats:
        moves = self.random.random((self.vms, count)) < 0.15
        walk = np.cumsum(np.where(moves, np.rint(self.random.normal(0, 40, (self.vms, count))), 0), axis=1)
        walk += self.last[name]
        self.last[name] = walk[:, -1:]
        values: Floats = np.abs(np.rint(self.size[name] * 1e6 / 4) + np.rint(walk)) * 4
        return values


def fill(store: SampleStore, counters: Counters, samples: int, batch: int) -> tuple[float, float, int]:
    """Append samples and compact them as they come: seconds appending, seconds compacting, samples."""
    append_s = compact_s = 0.0
    count = 0
    for chunk in range(0, samples, 180):
        size = min(180, samples - chunk)
        groups = counters.span(START_NS + chunk * counters.every_s * NS_PER_S, size)
        source = SourceInfo("vc", "vcenter", "vCenter real-time counters")
        started = time.perf_counter()
        for first in range(0, size, batch):
            part = slice(first, first + batch)
            cut = [SeriesGroup(g.metric, g.entities, g.times_ns[part], g.values[:, part], g.interval_s) for g in groups]
            store.append(Capture(cut, [source]))
        append_s += time.perf_counter() - started
        started = time.perf_counter()
        store.maintain(whole=chunk + size >= samples)
        compact_s += time.perf_counter() - started
        count += sum(g.stored.shape[0] * g.stored.shape[1] for g in groups)
    return append_s, compact_s, count


def timed_ms(query: Callable[[], object]) -> tuple[float, float, float]:
    """Best, median and median of CPU time of some calls, the first of which is left out; milliseconds."""
    query()
    times, cpu = [], []
    for _ in range(QUERIES):
        started, cpu_started = time.perf_counter(), time.process_time()
        query()
        times.append((time.perf_counter() - started) * 1e3)
        cpu.append((time.process_time() - cpu_started) * 1e3)
    return min(times), statistics.median(times), statistics.median(cpu)


def queries(folder: Path, counters: Counters, end_ns: int) -> dict[str, tuple[float, float, float]]:
    """How long questions take, as of `timed_ms`."""
    vms = [counters.entities[i % len(counters.entities)] for i in (7, 77, 177, 377, 577, 777, 977, 17)]
    turn = iter(range(10**9))
    busy = [name for name, kind in counters.metrics if kind == "rate"]
    day = (max(end_ns - 86_400 * NS_PER_S, START_NS), end_ns)
    with SampleStore(folder, read_only=True) as store:

        def one() -> Capture:
            return store.read(*day, entities=[vms[next(turn) % len(vms)]])

        answers = {
            "one VM's day raw, all metrics": timed_ms(one),
            "top 20 by p95, one day": timed_ms(lambda: store.top(busy[next(turn) % len(busy)], *day)),
            "top 20 by p95, all time": timed_ms(lambda: store.top(busy[next(turn) % len(busy)], START_NS, end_ns)),
            "top 20 by p95, span of an hour and 7 minutes": timed_ms(
                lambda: store.top(busy[0], end_ns - 4020 * NS_PER_S, end_ns)
            ),
            "one metric of all VMs, 10-minute cells, one day": timed_ms(lambda: store.rolled_up(busy[0], *day, 600)),
        }
        assert sum(len(group.times_ns) for group in one().groups) > 0
    return answers


def report(folder: Path, options: argparse.Namespace) -> list[str]:
    """Fill a store, ask it, print; the bars that are missed."""
    counters = Counters(options.vms, options.every)
    samples = round((options.hours or options.days * 24) * 3600 / options.every)
    end_ns = START_NS + samples * options.every * NS_PER_S
    with SampleStore(folder) as store:
        append_s, compact_s, count = fill(store, counters, samples, options.batch)
        complete = 3700 if end_ns % (86_400 * NS_PER_S) == 0 else 0
        last = [
            SeriesGroup("raw.last", counters.entities[:1], np.array([end_ns + complete * NS_PER_S]), np.ones((1, 1)))
        ]
        store.append(Capture(last, [SourceInfo("vc", "vcenter", "vCenter")]))
        started = time.perf_counter()
        store.maintain()
        day_s = time.perf_counter() - started
        status = store.status()
    raw_bytes = (status.size_bytes - status.rolled_up_bytes) / max(status.sample_count, 1)
    rolled_up_bytes = status.rolled_up_bytes / count
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{count / 1e6:.1f} million: {options.vms} VMs x {len(counters.metrics)} metrics every {options.every} s")
    print(
        f"append   {append_s:8.1f} s  {count / append_s / 1e6:6.2f} million/s, {options.batch} a series durable at once"
    )
    print(f"compact  {compact_s + day_s:8.1f} s  (the last step {day_s:.1f} s)")
    print(f"ingest   {count / (append_s + compact_s + day_s) / 1e6:8.2f} million samples/s in all")
    print(f"size     {status.size_bytes / 1e6:8.1f} MB in {status.segment_count} segments, peak memory {peak:.0f} MiB")
    print(f"raw      {raw_bytes:8.3f} bytes a raw sample, times and all; {status.sample_count / 1e6:.0f} million")
    print(f"roll-ups {rolled_up_bytes:8.3f} bytes a sample")
    answers = queries(folder, counters, end_ns)
    for name, (best, median, cpu) in answers.items():
        print(f"{best:8.1f} ms best {median:8.1f} ms median {cpu:8.1f} ms CPU  {name}")
    missed = []
    if raw_bytes + rolled_up_bytes > BYTES_MAX:
        missed.append(f"{raw_bytes + rolled_up_bytes:.2f} bytes a sample, at most {BYTES_MAX}")
    bars = {"one VM's day raw, all metrics": DAY_MS_MAX, "top 20 by p95, one day": TOP_MS_MAX}
    missed += [
        f"{name}: {answers[name][1]:.0f} ms, at most {bar:g}" for name, bar in bars.items() if answers[name][1] > bar
    ]
    if options.beside:
        missed += beside(folder.parent, options, count, samples, raw_bytes + rolled_up_bytes)
    return missed


def beside(folder: Path, options: argparse.Namespace, count: int, samples: int, ours_bytes: float) -> list[str]:
    """The same samples in other stores; the bars that are missed."""
    missed = []
    for name in store_peers.peers():
        place = folder / name.lower()
        load = store_peers.PeerLoad(Counters(options.vms, options.every), START_NS, samples, options.batch)
        cost = store_peers.measured(name, place, load, timed_ms)
        print(*store_peers.lines(cost, count, ours_bytes), sep="\n")
        shutil.rmtree(place)
        if name == "VictoriaMetrics" and ours_bytes > TIMES_THEIRS_MAX * cost.size_bytes / count:
            missed.append(f"{ours_bytes * count / cost.size_bytes:.2f} times the bytes of {name}")
    return missed


def main() -> int:
    options = _options()
    folder = Path(options.folder or tempfile.mkdtemp(prefix="leadline-bench-store-"))
    profile = cProfile.Profile()
    try:
        if options.profile:
            profile.enable()
        missed = report(folder / "store", options)
        profile.disable()
    finally:
        if not options.folder:
            shutil.rmtree(folder)
    if options.profile:
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
    is_full = options.vms >= 1000 and not options.hours
    for line in missed:
        print(f"missed: {line}", file=sys.stderr)
    return int(bool(missed) and is_full)


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--vms", type=int, default=1000)
    parser.add_argument("--hours", type=float, help="instead of days")
    parser.add_argument("--days", type=float, default=1)
    parser.add_argument("--every", type=int, default=20, help="seconds between samples")
    parser.add_argument("--batch", type=int, default=1, help="samples of a series in each append")
    parser.add_argument("--folder", help="where the store is made, and left")
    parser.add_argument("--beside", action="store_true", help="VictoriaMetrics and Prometheus, too")
    parser.add_argument("--profile", action="store_true")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
