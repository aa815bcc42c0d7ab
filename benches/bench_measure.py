"""Measure the measurer: what the driver takes from fio, known counts, and the error of merged percentiles.

``python -m benches.bench_measure [--seconds N] [--pairs N] [--samples N] [--in FOLDER]`` prints

- the operations per second of fio alone and of the same job file through Leadline's driver with the machine recorded
  beside it, in pairs whose order is drawn, as the median ratio with its bootstrap interval, and the CPU time the driver
  itself took. ``fio twice`` is the same pairing of fio with itself: what this machine's noise alone makes of it.
- requests asked of fio and counted in its report.
- the largest error of percentiles pooled over eight machines, from merged histograms against the raw samples; beside it
  the mean of the machines' percentiles, as averaging tools print it.

The speed of traces is ``python -m benches.bench_trace``. It exits with 1 when a count or the error of a percentile is
outside its budget, or when the interval of the overhead lies beyond its own.
"""

from __future__ import annotations

import argparse
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from leadline.app.measure.recording import recording
from leadline.app.read.importing import import_paths
from leadline.benchmarks import fio
from leadline.core.contracts.benchmark import LoadPlan, Step
from leadline.core.contracts.importer import Request
from leadline.core.contracts.load_target import Target
from leadline.core.model.histogram import Histogram
from leadline.core.model.workload import parse_workload
from leadline.formats.fio.results import bucket_histogram, bucket_index

OVERHEAD_PCT = 2.0
PAIRS_MIN = 6  # fewer give no 95 % interval of a median: 2 / 2**6 = 3 %
MERGE_ERROR_PCT = 1.0
KNOWN = 9973
MACHINES = 8
SHARES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99, "p99.9": 0.999, "p99.99": 0.9999}
WORKLOAD = "name: overhead\nio: [{name: data, block: 4k, read_pct: 70, oio: 8}]\nio_settings: {working_set: 64m}\n"


@dataclass(frozen=True, slots=True)
class Pairs:
    """Ratios of pairs of runs: median and the bounds of its 95 % interval, all less 1, in per cent."""

    median_pct: float
    low_pct: float
    high_pct: float


def judged(ratios: list[float], seed: int = 7) -> Pairs:
    """The median of ratios, less 1, with a percentile bootstrap interval."""
    values = np.asarray(ratios)
    drawn = np.median(np.random.default_rng(seed).choice(values, (10_000, len(values))), axis=1)
    low, high = np.quantile(drawn, [0.025, 0.975])
    return Pairs(*(100.0 * (float(value) - 1.0) for value in (np.median(values), low, high)))


def bare(made: LoadPlan, job: Path, report: Path) -> None:
    """Run fio by itself on the targets of a plan."""
    words = ["fio", "--output-format=json+", f"--output={report}", str(job)]
    subprocess.run(words, check=True, cwd=made.targets.folder, pass_fds=made.targets.descriptors)


def alone(made: LoadPlan, job: str, folder: Path) -> float:
    """Operations per second of fio by itself."""
    path, report = folder / "alone.fio", folder / "alone.json"
    path.write_text(job, encoding="utf-8")
    bare(made, path, report)
    return rate_of(report)


def driven(made: LoadPlan, step: Step, folder: Path) -> tuple[float, float]:
    """Operations per second through the driver, the machine recorded; and the CPU seconds of this process."""
    before = time.process_time()
    with recording({"linux": ""}, folder):
        measured = fio.measure(made, step, folder, lambda _: True)
    spent = time.process_time() - before
    return rate_of(measured.files[0]), spent


def rate_of(report: Path) -> float:
    """Operations per second of every job of a report."""
    results = import_paths([report], Request(metrics=frozenset())).capture.results
    return sum(o.per_s for result in results for o in result.operations if o.name in ("read", "write"))


def overhead(folder: Path, seconds: float, pairs: int) -> bool:
    """Print what the driver costs; whether that is within the budget."""
    made = fio.plan(parse_workload(WORKLOAD, "overhead.yaml"), Target(str(folder)))
    work = folder / "work"
    work.mkdir()
    random = np.random.default_rng(11)
    through, again, cpu = [], [], []
    try:
        fio.prepare(made, work, lambda _: None)
        for number in range(pairs):
            step = Step(f"pair-{number}", seconds, number + 1)
            job = fio.job_file(made, step)
            rates = {}
            for kind in random.permutation(["alone", "again", "driven"]):
                if kind == "driven":
                    rates[kind], spent = driven(made, step, work)
                    cpu.append(spent / seconds)
                else:
                    rates[kind] = alone(made, job, work)
            through.append(rates["driven"] / rates["alone"])
            again.append(rates["again"] / rates["alone"])
    finally:
        fio.clean(made)
    ours, noise = judged(through), judged(again)
    print(f"driver against bare fio, {pairs} pairs of {seconds:g} s, last at {rates['alone']:,.0f} operations/s")
    for name, found in (("through the driver", ours), ("fio twice (noise)", noise)):
        print(f"  {name:<20} {found.median_pct:+6.2f} %  (95 %: {found.low_pct:+.2f} to {found.high_pct:+.2f})")
    print(f"  CPU of the driver    {100 * float(np.median(cpu)):6.2f} % of one core")
    met = pairs < PAIRS_MIN or ours.high_pct >= -OVERHEAD_PCT
    verdict = "met" if ours.median_pct >= -OVERHEAD_PCT else "not shown" if met else "missed"
    verdict = f"not judged by fewer than {PAIRS_MIN} pairs" if pairs < PAIRS_MIN else verdict
    print(f"  budget {OVERHEAD_PCT:g} %: {verdict}")
    return met


def counted(folder: Path) -> bool:
    """Print how many of a known number of requests are in the report; whether all are."""
    made = fio.plan(parse_workload(WORKLOAD.replace("70", "0"), "known.yaml"), Target(str(folder)))
    fio.prepare(made, folder, lambda _: None)
    try:
        text = fio.job_file(made, Step("known", 60.0, 1)).replace("time_based=1\n", "")
        job, report = folder / "known.fio", folder / "known.json"
        job.write_text(text.replace("[data]", f"number_ios={KNOWN}\n\n[data]"), encoding="utf-8")
        bare(made, job, report)
    finally:
        fio.clean(made)
    operation = import_paths([report], Request(metrics=frozenset())).capture.results[0].operation("write")
    held = None if operation is None or operation.histogram is None else operation.histogram.total
    print(f"requests asked of fio: {KNOWN:,}; in its histogram: {held:,}")
    return held == KNOWN


def latencies(count: int) -> list[NDArray[np.int64]]:
    """Nanoseconds of requests of eight machines, one of which is twenty times slower; with a slow second mode."""
    random = np.random.default_rng(5)
    found = []
    for machine in range(MACHINES):
        body = random.lognormal(np.log(4e5), 0.6, count) * (20.0 if machine == 3 else 1.0)
        tail = random.random(count) < 0.004
        body[tail] += random.gamma(3.0, 6e6, int(tail.sum()))
        found.append(body.astype(np.int64))
    return found


def merged(count: int) -> bool:
    """Print the error of pooled percentiles; whether it is within the budget."""
    machines = latencies(count)
    began = time.perf_counter()
    parts = []
    for own in machines:
        index, counts = np.unique(bucket_index(own), return_counts=True)
        parts.append(bucket_histogram(index, counts, "ns"))
    binned = time.perf_counter()
    whole = Histogram.merged(parts)
    took_ms = 1000.0 * (time.perf_counter() - binned)
    raw = np.concatenate(machines) / 1e6
    print(f"{MACHINES} machines, {len(raw):,} requests; binned in {binned - began:.2f} s, merged in {took_ms:.2f} ms")
    print(f"  {'':<7} {'raw ms':>9} {'merged':>9} {'error %':>8} {'averaged':>9} {'error %':>8}")
    worst = 0.0
    for name, share in SHARES.items():
        # The sample at rank ceil(share * n), as the histogram defines it; interpolation would be another number.
        true = float(np.quantile(raw, share, method="inverted_cdf"))
        got = whole.quantile(share)
        mean = float(np.mean([part.quantile(share) for part in parts]))
        error, averaged = (100.0 * (value / true - 1.0) for value in (got, mean))
        worst = max(worst, abs(error))
        print(f"  {name:<7} {true:>9.4g} {got:>9.4g} {error:>+8.2f} {mean:>9.4g} {averaged:>+8.1f}")
    met = worst <= MERGE_ERROR_PCT
    print(f"  largest error {worst:.2f} %, budget {MERGE_ERROR_PCT:g} %: {'met' if met else 'missed'}")
    return met


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=6.0)
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--samples", type=int, default=500_000)
    parser.add_argument("--in", dest="where", default=None)
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="leadline-bench-", dir=options.where) as name:
        folder = Path(name)
        met = [merged(options.samples), counted(folder), overhead(folder, options.seconds, options.pairs)]
    if not all(met):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
