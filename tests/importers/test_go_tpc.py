"""What go-tpc prints of TPC-C and TPC-H."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.model.errors import InputError
from leadline.core.model.result import Result
from leadline.formats.go_tpc.intervals import IntervalLine, bucket_of, interval_histogram
from leadline.importers import go_tpc
from tests.conftest import FIXTURES
from tests.importers.load_tools import read, read_text, seed
from tests.importers.recordings import codes, values_of

RUN = FIXTURES / "go_tpc" / "tpcc-postgresql.txt"
DATABASE = "guest:guest/database:database"
OLD = seed("go-tpc-old.txt")
WRONG_UNIT = (
    "[Summary] DELIVERY - Takes(s): 297.6, Count: 1873, TPM: 377.6, Sum(ms): 880602.2, Avg(ms): 0.3, 50th(ms): 0.5, "
    "90th(ms): 0.5, 95th(ms): 0.5, 99th(ms): 0.5, 99.9th(ms): 0.5, Max(ms): 0.5\n"
)


def by_job(results: list[Result] | tuple[Result, ...]) -> dict[str, Result]:
    return {result.job: result for result in results}


def test_a_run_of_tpcc_has_its_counts_and_seconds() -> None:
    capture = read(go_tpc, RUN)
    results = by_job(capture.results)
    counts = {job: result.operations[0].count for job, result in results.items()}
    assert counts == {"DELIVERY": 149, "NEW_ORDER": 1838, "ORDER_STATUS": 162, "PAYMENT": 1824, "STOCK_LEVEL": 177}
    new_order = results["NEW_ORDER"].operations[0]
    assert new_order.mean_ms == pytest.approx(11238.8 / 1838)
    assert (new_order.latency_ms["p99"], new_order.latency_ms["max"], new_order.histogram) == (17.8, 46.1, None)
    assert results["NEW_ORDER"].workload["tpmC"] == 11066.2
    tps = values_of(capture, "db_tps", DATABASE)
    assert len(tps) == 9
    assert tps[-1] == 16 + 212 + 19 + 202 + 24
    assert set(codes(capture)) == {"no-times", "not-audited"}


def test_old_versions_and_errors(tmp_path: Path) -> None:
    command = "$ ./bin/go-tpc tpcc -H db1 -p secret --warehouses 10 -T 4 run --time 1m\n"
    capture = read_text(go_tpc, tmp_path, command + OLD)
    (result,) = capture.results
    assert result.error_count == 1
    assert result.workload == {"benchmark": "tpcc", "scale": 10, "client_count": 4, "tpmC": 362.5}
    assert result.operations[0].latency_ms == {"mean": 33008 / 359, "p90": 192, "p99": 512, "p99.9": 1000}


def test_percentiles_in_another_unit_are_left_out(tmp_path: Path) -> None:
    capture = read_text(go_tpc, tmp_path, WRONG_UNIT)
    assert capture.results[0].operations[0].latency_ms == {"mean": 880602.2 / 1873}
    assert "wrong-unit" in codes(capture)


def test_queries_are_counted_by_the_command_line(tmp_path: Path) -> None:
    text = "[Current] Q1: 32.13s\nFinished\n[Summary] Q1: 32.13s\n[Summary] Q10: 0.10s\n"
    for command, count in (
        ("", np.nan),
        ("go-tpc tpch run --sf 1 --threads 1 --count 22\n", 1),
        ("go-tpc tpch run --sf 1 -T 2 --count 88\n", 4),
        ("go-tpc tpch run --sf 1 -T 2 --count 30\n", np.nan),
        ("go-tpc tpch run --queries q1,q10 --count 2\n", 1),
    ):
        results = by_job(read_text(go_tpc, tmp_path, command + text).results)
        first = results["Q1"].operations[0]
        assert first.name == "query"
        np.testing.assert_equal(first.count, count)
        assert first.mean_ms == pytest.approx(32130.0)
        assert (first.histogram is not None) == (count == 1)
    assert first.per_s == pytest.approx(1 / 32.23)
    shortest = results["Q10"].operations[0].histogram
    assert shortest is not None
    assert shortest.quantile_bounds(0.5) == (0.0, 105.0)  # 100 ms is the least go-tpc tells


def test_short_intervals_are_the_distribution() -> None:
    ranks = {"p50": 5.2, "p90": 8.4, "p95": 8.4, "p99": 8.4, "p99.9": 8.4, "max": 8.4}
    lines = [IntervalLine(1, 3.4, dict.fromkeys(ranks, 3.7)), IntervalLine(2, 13.4, ranks)]
    histogram = interval_histogram(lines, IntervalLine(4, 30.0, ranks | {"max": 11.0}))
    assert histogram is not None
    assert histogram.total == 4
    assert histogram.quantile_bounds(0.25) == pytest.approx((3.35, 3.45))
    assert histogram.quantile_bounds(0.75) == pytest.approx(bucket_of(8.4))
    assert histogram.quantile_bounds(1.0) == pytest.approx((0.0, 11.05))  # ended after the last interval
    assert interval_histogram(lines, IntervalLine(2, 13.4, ranks)) is None


def test_every_sample_is_in_its_bucket() -> None:
    """go-tpc's recording, rebuilt: latencies in nanoseconds to buckets as it prints them."""
    random = np.random.default_rng(7)
    for latency_ms in random.lognormal(2.0, 2.0, 500):
        recorded = int(np.clip(latency_ms, 1.0, 16_000.0) * 1e6)
        shift = 19 + max(recorded.bit_length() - 24, 0)
        highest = (recorded >> shift << shift) + (1 << shift) - 1
        low, high = bucket_of(round(highest / 1e6, 1))
        assert low <= min(latency_ms, 16_000.0) <= high, latency_ms


def test_what_is_cut_or_damaged(tmp_path: Path) -> None:
    capture = read_text(go_tpc, tmp_path, OLD + OLD.splitlines()[1][:40])
    assert "cut" in codes(capture)
    with pytest.raises(InputError, match=r":1: .*Takes"):
        read_text(go_tpc, tmp_path, "[Summary] PAYMENT - Takes(s): x\n" + OLD)
    with pytest.raises(InputError, match="no line of an interval"):
        read_text(go_tpc, tmp_path, "tpmC: 1.0\n")
    only = read_text(go_tpc, tmp_path, OLD.splitlines()[0] + "\n")
    assert "no-summary" in codes(only)
