"""pgbench's transaction logs recorded with 15, older shapes after what their sources print; pgbench-tools' tables."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from leadline.app.read.importing import import_paths
from leadline.core.model.errors import InputError
from leadline.formats.loadtool import sample_histogram
from leadline.importers import pgbench_log, pgbench_tools
from tests.conftest import FIXTURES
from tests.importers.load_tools import (
    chosen,
    entities,
    operation,
    read,
    read_text,
    sample_files,
    seed,
    times_s,
    values,
    warned,
)

LOGS = FIXTURES / "pgbench" / "logs"
RECORDED = sorted(LOGS.glob("*.4711*"))
THREE_SECONDS = """0 1 1000 0 1600000000 500000
0 2 2000 0 1600000001 100000
1 1 4000 0 1600000001 200000
0 3 1000 0 1600000003 900000
"""
TABLE = seed("pgbench-tools-latency_1s.csv")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_our_recordings_are_recognised(path: Path) -> None:
    assert chosen(path) == "pgbench-log"
    assert read(pgbench_log, path).sources[0].clock_known


def test_aggregate_intervals() -> None:
    capture = read(pgbench_log, LOGS / "aggregate.4711")
    assert entities(capture) == {"guest:guest/job:aggregate.4711"}
    assert values(capture, "db_tps") == [1500, 2233, 2254, 2521, 2443, 2487]
    assert times_s(capture, "db_tps")[0] == 1795215392, "an interval is named by its start and ends a second later"
    assert values(capture, "db_latency_ms")[0] == pytest.approx(1274338 / 1500 / 1000)
    deviation = np.sqrt(1273399208 / 1500 - (1274338 / 1500) ** 2) / 1000
    assert values(capture, "db_latency_ms_stddev")[0] == pytest.approx(deviation)
    assert values(capture, "db_latency_ms_max")[2] == 9.428
    whole = operation(capture.results[0], "transaction")
    assert whole.count == 13438
    assert whole.latency_ms["max"] == 9.428
    assert values(capture, "db_schedule_lag_ms") == []


def test_aggregate_lag_skips_and_failures() -> None:
    limited = read(pgbench_log, LOGS / "aggregate-limit.4711")
    assert values(limited, "db_schedule_lag_ms")[0] == pytest.approx(23644 / 278 / 1000)
    failing = read(pgbench_log, LOGS / "aggregate-retries.4711")
    assert values(failing, "db_failed_per_s")[0] == 453
    assert values(failing, "raw.pgbench.retries_per_s")[0] == 1002


@pytest.mark.parametrize("width", [6, 10, 11])
def test_aggregates_before_15(tmp_path: Path, width: int) -> None:
    """Skipped transactions were among those counted, and have no latency."""
    rows = ["1600000000 100 50000 30000000 400 900 2000 50000 10 60 20", "1600000005 0 0 0 0 0 0 0 0 0 0"]
    text = "".join(" ".join(row.split(" ")[:width]) + "\n" for row in rows)
    capture = read_text(pgbench_log, tmp_path, text)
    counted = 80 if width == 11 else 100
    assert values(capture, "db_tps") == [counted / 5, 0]
    assert values(capture, "db_latency_ms")[0] == pytest.approx(50000 / counted / 1000)
    assert np.isnan(values(capture, "db_latency_ms")[1])
    assert values(capture, "raw.pgbench.skipped_per_s") == ([4, 0] if width == 11 else [])


def test_one_aggregate_has_no_rate(tmp_path: Path) -> None:
    capture = read_text(pgbench_log, tmp_path, "1600000000 100 50000 30000000 400 900\n")
    assert values(capture, "db_tps") == []
    assert values(capture, "db_latency_ms") == [0.5]
    assert warned(capture) == ["no-interval"]


def test_per_transaction_seconds(tmp_path: Path) -> None:
    capture = read_text(pgbench_log, tmp_path, THREE_SECONDS)
    assert times_s(capture, "db_latency_ms") == [1600000001, 1600000002, 1600000003, 1600000004]
    rates = values(capture, "db_tps")
    assert rates[1:3] == [2, 0], "a second in which nothing was done is a stall, not a gap"
    assert np.isnan([rates[0], rates[3]]).all(), "the run covers the first and last second in part"
    assert values(capture, "db_latency_ms")[:2] == [1.0, 3.0]
    assert np.isnan(values(capture, "db_latency_ms")[2])
    assert values(capture, "db_latency_ms_max")[1] == 4.0
    assert values(capture, "db_latency_ms_stddev")[1] == pytest.approx(1.0)


def test_per_transaction_result() -> None:
    path = LOGS / "each.4711"
    (result,) = read(pgbench_log, path).results
    whole = operation(result, "transaction")
    latencies = sorted(int(line.split()[2]) for line in path.read_text().splitlines())
    assert whole.count == len(latencies) == 200
    assert whole.latency_ms["mean"] == pytest.approx(np.mean(latencies) / 1000)
    assert whole.histogram is not None
    for share in (0.5, 0.95, 0.99, 1.0):
        low, high = whole.histogram.quantile_bounds(share)
        exact = latencies[int(np.ceil(share * 200)) - 1]
        assert low <= exact < high
        assert high - low <= max(1, exact / 1024)
    assert result.workload == {"client_count": 2}


def test_lag_and_retries_are_told_apart() -> None:
    assert values(read(pgbench_log, LOGS / "rate.4711.1"), "db_schedule_lag_ms")[0] == pytest.approx(0.0788, rel=1e-3)
    failing = read(pgbench_log, LOGS / "retries.4711")
    assert values(failing, "db_schedule_lag_ms") == []
    assert "guessed-column" in warned(failing)
    lines = (LOGS / "retries.4711").read_text().splitlines()
    assert failing.results[0].error_count == sum("serialization" in line for line in lines)


def test_skipped_are_no_failures(tmp_path: Path) -> None:
    text = "0 1 500 0 1600000000 1 7\n0 2 skipped 0 1600000001 2 9000\n0 3 700 0 1600000002 3 8\n"
    capture = read_text(pgbench_log, tmp_path, text)
    assert values(capture, "raw.pgbench.skipped_per_s")[1] == 1
    assert values(capture, "db_schedule_lag_ms")[0] == pytest.approx(0.007)
    assert capture.results[0].error_count == 0
    assert operation(capture.results[0], "transaction").count == 2


def test_sampled_log_has_no_rates() -> None:
    capture = read(pgbench_log, LOGS / "sampled.4711")
    assert "sampled" in warned(capture)
    assert values(capture, "db_tps") == []
    rows = [line.split() for line in (LOGS / "sampled.4711").read_text().splitlines()]
    last = {row[0]: int(row[1]) for row in rows}
    assert operation(capture.results[0], "transaction").count == pytest.approx(sum(last.values()))


def test_scripts_have_operations(tmp_path: Path) -> None:
    capture = read_text(pgbench_log, tmp_path, THREE_SECONDS.replace("1 1 4000 0", "1 1 4000 1"))
    assert operation(capture.results[0], "script 2").latency_ms["max"] == 4.0
    assert operation(capture.results[0], "script 1").count == 3


def test_unended_last_line_is_dropped(tmp_path: Path) -> None:
    capture = read_text(pgbench_log, tmp_path, THREE_SECONDS + "0 4 1000 0 1600000004 9")
    assert warned(capture) == ["cut"]
    assert operation(capture.results[0], "transaction").count == 4


@pytest.mark.parametrize(
    ("bad", "line"),
    [
        ("0 2 2000 0 1600000001", 2),
        ("0 2 2000 0 1600000001 100000 1 1 1", 2),
        ("0 2 fast 0 1600000001 100000", 2),
        ("0 2 -5 0 1600000001 100000", 2),
        ("0 -2 5 0 1600000001 100000", 2),
        ("0 2 2000 0 9900000001 100000", 2),
        ("0 2 2000 0 1 100000", 2),
        ("", 2),
        ("0 2 2000 0 99999999999999999999 100000", 2),
    ],
)
def test_damage_in_the_middle_is_an_error(tmp_path: Path, bad: str, line: int) -> None:
    lines = THREE_SECONDS.splitlines()
    lines[1] = bad
    with pytest.raises(InputError) as caught:
        read_text(pgbench_log, tmp_path, "\n".join(lines) + "\n")
    assert caught.value.where.endswith(f":{line}")


def test_every_thread_is_a_job() -> None:
    found = import_paths([LOGS / "each.4711", LOGS / "each.4711.1"]).capture
    assert {e.name for g in found.groups for e in g.entities} == {"each.4711", "each.4711.1"}


_TRANSACTIONS = st.lists(
    st.tuples(
        st.integers(0, 5),
        st.one_of(st.integers(0, 10**9), st.sampled_from(["skipped", "failed", "serialization", "deadlock", "other"])),
        st.integers(0, 3),
        st.integers(1_600_000_000, 1_600_000_020),
        st.integers(0, 999_999),
        st.integers(0, 10**6),
    ),
    min_size=1,
    max_size=60,
)


@given(_TRANSACTIONS, st.sampled_from([6, 7, 8]))
def test_sums_of_one_pass_equal_those_of_the_whole_table(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int | str, int, int, int, int]], width: int
) -> None:
    """What is added up line by line equals what NumPy makes of all lines at once."""
    path = tmp_path_factory.mktemp("log") / "pgbench_log.1"
    cells = [(c, i + 1, latency, s, sec, us, lag, 0)[:width] for i, (c, latency, s, sec, us, lag) in enumerate(rows)]
    path.write_text("".join(" ".join(map(str, row)) + "\n" for row in cells))
    capture = read(pgbench_log, path)
    second = np.array([row[3] for row in rows])
    latency = np.array([row[1] if isinstance(row[1], int) else np.nan for row in rows])
    lag = np.array([row[5] for row in rows], dtype=float)
    done = ~np.isnan(latency)
    for k, moment in enumerate(range(second.min(), second.max() + 1)):
        chosen_us = latency[done & (second == moment)]
        expected: dict[str, Callable[[NDArray[np.float64]], float]] = {
            "db_latency_ms": np.mean,
            "db_latency_ms_stddev": np.std,
            "db_latency_ms_min": np.min,
            "db_latency_ms_max": np.max,
        }
        for metric, statistic in expected.items() if done.any() else ():
            value = statistic(chosen_us) / 1000 if len(chosen_us) else np.nan
            assert values(capture, metric)[k] == pytest.approx(value, rel=1e-9, abs=1e-6, nan_ok=True)
        if lags := values(capture, "db_schedule_lag_ms"):
            value = lag[done & (second == moment)].mean() / 1000 if len(chosen_us) else np.nan
            assert lags[k] == pytest.approx(value, nan_ok=True)
    if not done.any():
        assert capture.results == []
        return
    whole = operation(capture.results[0], "transaction")
    exact = sample_histogram(latency[done], "us")
    assert whole.histogram is not None
    assert whole.histogram.lower.tolist() == exact.lower.tolist()
    assert whole.histogram.upper.tolist() == exact.upper.tolist()
    assert whole.histogram.counts.tolist() == exact.counts.tolist()
    assert whole.latency_ms["stddev"] == pytest.approx(latency[done].std() / 1000, rel=1e-9, abs=1e-6)
    ends = second + np.array([row[4] for row in rows]) / 1e6
    assert capture.results[0].duration_s == pytest.approx(ends.max() - (ends[done] - latency[done] / 1e6).min())
    scripts = {row[2] for row in rows if isinstance(row[1], int)} if len({row[2] for row in rows}) > 1 else set()
    named = {f"script {script + 1}" for script in scripts}
    assert {op.name for op in capture.results[0].operations} == {"transaction", *named}


def test_memory_does_not_grow_with_the_log(tmp_path: Path) -> None:
    """Ten times the transactions of the same seconds take no more memory than one time."""

    def kept_bytes(count: int) -> int:
        path = tmp_path / "pgbench_log.1"
        with path.open("w") as log:
            log.writelines(f"0 {i + 1} {500 + i % 97} 0 {1600000000 + i * 20 // count} 0\n" for i in range(count))
        tracemalloc.start()
        capture = read(pgbench_log, path)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert sum(values(capture, "db_tps")[1:-1]) == pytest.approx(count * 0.9)
        return peak

    kept_bytes(1000)  # what is loaded at first use
    assert kept_bytes(200_000) < kept_bytes(20_000) + 200_000


def test_sample_archive(samples: Path) -> None:
    found = import_paths([samples / "pgbench" / "serverscamp__pgbench-aws-vs-serverscamp__aws.tar"])
    assert found.unrecognised == []
    assert sum(source.importer == "pgbench-log" for source in found.capture.sources) == 36
    assert sum(source.importer == "pgbench" for source in found.capture.sources) == 9
    name = "guest:guest/job:run3.9287.1"
    assert values(found.capture, "db_tps", name)[:2] == [532.0, 807.2]
    assert values(found.capture, "db_latency_ms_max", name)[0] == 207.791


def test_table_of_pgbench_tools(tmp_path: Path) -> None:
    capture = read_text(pgbench_tools, tmp_path, TABLE)
    assert values(capture, "db_tps") == [5280, 7305]
    assert times_s(capture, "db_tps") == [1598650498, 1598650499]
    assert np.isnan(values(capture, "db_latency_ms")[1])


@pytest.mark.parametrize(
    "bad", ["1598650498,7305,0.368,19.725", "yesterday,1,1,1,1", "1,7305,0.3,1,2", "1598650498,x,1,1,1"]
)
def test_damaged_table(tmp_path: Path, bad: str) -> None:
    header, first, _ = TABLE.splitlines()
    with pytest.raises(InputError) as caught:
        read_text(pgbench_tools, tmp_path, "\n".join((header, bad, first)) + "\n")
    assert caught.value.where.endswith(":2")
    assert warned(read_text(pgbench_tools, tmp_path, f"{header}\n{first}\n1598650498,73")) == ["cut"]


@pytest.mark.parametrize("path", sample_files("pgbench/*latency_metric.csv", "sysstat/*latency_1s.csv"))
def test_sample_tables(path: Path) -> None:
    assert chosen(path) == "pgbench-tools"
    capture = read(pgbench_tools, path)
    assert values(capture, "db_tps")[:3] == [5280, 7305, 7012]
    assert values(capture, "db_latency_ms_max")[:2] == [20.324, 19.725]
    assert times_s(capture, "db_tps")[0] == 1598650498
