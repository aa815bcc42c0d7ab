"""pgbench's own output: recorded with 15, other versions after what their sources print."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from leadline.core.model.errors import InputError
from leadline.importers import pgbench
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

OURS = FIXTURES / "pgbench"
RECORDED = sorted(OURS.glob("*.txt"))
OLD = seed("pgbench-old.txt")


@pytest.mark.parametrize("path", RECORDED, ids=lambda path: path.name)
def test_our_recordings_are_recognised(path: Path) -> None:
    assert chosen(path) == "pgbench"


def test_progress_with_timestamps() -> None:
    capture = read(pgbench, OURS / "progress-timestamp.txt")
    assert entities(capture) == {"guest:guest/database:postgresql"}
    assert values(capture, "db_tps") == [4686.2, 4923.8, 4825.9, 5195.9, 5172.9, 5552.3]
    assert values(capture, "db_latency_ms_stddev")[0] == 1.432
    assert times_s(capture, "db_tps")[:2] == [1795215351.003, 1795215352.003]
    assert capture.sources[0].clock_known
    assert capture.sources[0].tool_version == "15.18 (Debian 15.18-0+deb12u1)"
    assert capture.results[0].start_ns == 1795215350_003_000_000


def test_progress_without_timestamps_ends_at_the_last_change() -> None:
    path = OURS / "progress.txt"
    capture = read(pgbench, path)
    assert np.diff(times_s(capture, "db_tps")).round(6).tolist() == [1.0] * 5
    assert capture.groups[0].times_ns[-1] == path.stat().st_mtime_ns
    assert not capture.sources[0].clock_known
    assert warned(capture) == ["no-times"]


def test_rate_and_latency_limit() -> None:
    capture = read(pgbench, OURS / "rate-latency-limit.txt")
    assert values(capture, "db_schedule_lag_ms") == [0.683, 0.49, 0.479, 0.577, 0.501, 0.453]
    assert values(capture, "raw.pgbench.skipped_per_s")[3] == pytest.approx(130)
    result = capture.results[0]
    assert result.workload["latency_limit_ms"] == 3
    assert operation(result, "transactions skipped").count == 205
    assert operation(result, "transactions above the latency limit").count == 250
    assert operation(result, "schedule lag").latency_ms == {"mean": 0.53, "max": 3.591}


def test_failures_and_retries() -> None:
    capture = read(pgbench, OURS / "retries.txt")
    assert values(capture, "db_failed_per_s") == pytest.approx([2609, 2698, 2773, 2545])
    assert values(capture, "raw.pgbench.retries_per_s")[0] == pytest.approx(5666)
    result = capture.results[0]
    assert result.error_count == 10625
    assert operation(result, "retries").count == 23143
    slow = operation(result, "statement 11: END;")
    assert slow.latency_ms == {"mean": 0.25}


def test_summary_is_a_result() -> None:
    (result,) = read(pgbench, OURS / "by-transactions.txt").results
    whole = operation(result, "transaction")
    assert (whole.per_s, whole.count, whole.latency_ms) == (3393.592219, 1000, {"mean": 0.589})
    assert result.duration_s == pytest.approx(1000 / 3393.592219)
    assert result.workload == {
        "script": "<builtin: TPC-B (sort of)>",
        "query_mode": "simple",
        "scale": 2,
        "client_count": 2,
        "thread_count": 1,
        "transactions_per_client_count": 500,
        "tries_count_max": 1,
    }


def test_several_scripts() -> None:
    (result,) = read(pgbench, OURS / "mixed-scripts.txt").results
    second = operation(result, "script 2: <builtin: select only>")
    assert (second.count, second.per_s) == (48858, 12228.198640)
    assert second.latency_ms == {"mean": 0.078, "stddev": 0.055}
    assert operation(result, "script 1 statement 5: BEGIN;").latency_ms == {"mean": 0.057}


def test_initialisation() -> None:
    (result,) = read(pgbench, OURS / "initialise.txt").results
    assert (result.job, result.duration_s, result.workload) == ("initialise", 0.21, {"scale": 2.0})
    assert operation(result, "row").count == 200_000
    assert operation(result, "client-side generate").latency_ms == {"total": 120.0}


def test_output_of_9_4(tmp_path: Path) -> None:
    capture = read_text(pgbench, tmp_path, OLD)
    assert values(capture, "db_tps") == [100.0, 0.0]
    assert values(capture, "db_latency_ms")[0] == 8.1
    assert np.isnan(values(capture, "db_latency_ms")[1]), "nothing ran, so nothing took 0 ms"
    (result,) = capture.results
    assert operation(result, "transaction").per_s == 50.25
    assert operation(result, "transaction including connecting").per_s == 49.5
    assert operation(result, "statement 2: END;").latency_ms == {"mean": 7.5}


def test_decimal_commas_read_the_same(tmp_path: Path) -> None:
    lines = (OURS / "progress.txt").read_text().splitlines()
    german = "\n".join(lines[:2]) + "\n" + "\n".join(line.replace(".", ",") for line in lines[2:]) + "\n"
    ours, theirs = read(pgbench, OURS / "progress.txt"), read_text(pgbench, tmp_path, german)
    for name in ("db_tps", "db_latency_ms", "db_latency_ms_stddev", "db_failed_per_s"):
        assert values(theirs, name) == values(ours, name)
    assert operation(theirs.results[0], "transaction") == operation(ours.results[0], "transaction")


def test_several_runs_follow_each_other(tmp_path: Path) -> None:
    text = (OURS / "progress.txt").read_text()
    capture = read_text(pgbench, tmp_path, f"# run 1\n{text}# run 2\n{text}")
    first, second = (group for group in capture.groups if group.metric == "db_tps")
    assert second.times_ns[0] - first.times_ns[-1] == 1_000_000_000
    assert len(capture.results) == 2


def test_progress_alone(tmp_path: Path) -> None:
    """Standard error redirected by itself, of two runs: each starts again at 1.0 s."""
    progress = "".join(line + "\n" for line in (OURS / "rate.txt").read_text().splitlines() if "progress" in line)
    capture = read_text(pgbench, tmp_path, progress * 2)
    assert [len(group.times_ns) for group in capture.groups if group.metric == "db_tps"] == [5, 5]
    assert warned(capture) == ["no-times", "no-summary"]
    assert capture.results == []


def test_cut_last_line_is_dropped(tmp_path: Path) -> None:
    text = (OURS / "progress.txt").read_text()
    at = text.index("progress: 6.0 s") + 40
    capture = read_text(pgbench, tmp_path, text[:at])
    assert len(values(capture, "db_tps")) == 5
    assert "cut" in warned(capture)


def test_cut_summary_is_no_result(tmp_path: Path) -> None:
    text = (OURS / "progress.txt").read_text()
    capture = read_text(pgbench, tmp_path, text[: text.index("tps = ") + 9])
    assert capture.results == []
    assert warned(capture).count("cut") == 2


def test_aborted_clients_are_said(tmp_path: Path) -> None:
    text = "pgbench: error: client 1 script 0 aborted in command 4: FATAL\n" + (OURS / "summary.txt").read_text()
    assert "aborted" in warned(read_text(pgbench, tmp_path, text))


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("progress: 3.0 s, 5104.1 tps", "progress: 3.0 s, 51x4.1 tps", 5),
        ("progress: 3.0 s", "progress: 1.5 s", 5),
        ("number of clients: 4", "number of clients: four", 12),
    ],
)
def test_damage_in_the_middle_is_an_error(tmp_path: Path, old: str, new: str, line: int) -> None:
    text = (OURS / "progress.txt").read_text()
    with pytest.raises(InputError) as caught:
        read_text(pgbench, tmp_path, text.replace(old, new))
    assert caught.value.where.endswith(f":{line}")


def test_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no progress line and no summary"):
        read_text(pgbench, tmp_path, "hello\n")


def test_only_what_is_asked_for() -> None:
    capture = read(pgbench, OURS / "retries.txt", metrics=frozenset({"db_tps"}))
    assert capture.metrics() == ["db_tps"]


@pytest.mark.parametrize("path", sample_files("pgbench/*.txt", "pgbench/*.log"))
def test_samples(path: Path) -> None:
    assert chosen(path) == "pgbench"
    assert read(pgbench, path).results


def test_sample_of_12(samples: Path) -> None:
    (result,) = read(pgbench, samples / "pgbench" / "gregs1104__pgbench-tools__results-normal.txt").results
    assert operation(result, "transaction").per_s == 540.578481
    assert operation(result, "transaction including connecting").per_s == 540.479109
    assert result.workload["scale"] == 4250


def test_sample_of_18(samples: Path) -> None:
    name = "felipebrgs1__pgbench_13x18beta__pgbench_13_prepared_20250815_130830.log"
    capture = read(pgbench, samples / "pgbench" / name)
    assert values(capture, "db_tps")[4:6] == [4575.3, 2596.2]
    assert capture.sources[0].tool_version == "18beta3, server 13.22"
    assert capture.groups[0].interval_s == 30.0
