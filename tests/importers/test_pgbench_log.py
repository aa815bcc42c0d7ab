"""pgbench's transaction logs recorded with 15, older shapes after what their sources print; pgbench-tools' tables."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.core.model.errors import InputError
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


def test_a_large_log_is_read_in_linear_time(tmp_path: Path) -> None:
    count = 400_000
    rows = (
        f"{i % 8} {i // 8 + 1} {500 + i % 97} 0 {1600000000 + i // 20000} {i * 50 % 1000000}\n" for i in range(count)
    )
    begin = time.process_time()
    capture = read_text(pgbench_log, tmp_path, "".join(rows))
    assert time.process_time() - begin < 10, "seconds for ten megabytes: something is not linear"
    assert values(capture, "db_tps")[1:-1] == [20000] * 18


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
