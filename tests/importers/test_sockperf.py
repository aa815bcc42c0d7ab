"""sockperf: what the real tool printed, single messages, several servers in one file, and damage."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from leadline.core.model.errors import InputError
from leadline.importers import sockperf
from tests.conftest import FIXTURES
from tests.importers.load_tools import chosen, operation, read, read_text, values, warned

OWN = FIXTURES / "sockperf"
ALL = sorted(OWN.iterdir())
HEAD = """------------------------------
test was performed using the following parameters: --mps=100 --burst=1 --reply-every=1 --msg-size=64 --time=2
------------------------------
sockperf: [Total Run] RunTime=2.000 sec; Warm up time=400 msec; SentMessages=201; ReceivedMessages=200
sockperf: [Valid Duration] RunTime=1.550 sec; SentMessages=2; ReceivedMessages=2
sockperf: \x1b[2;35m====> avg-latency=10.785 (std-dev=18.202)\x1b[0m
------------------------------
packet, txTime(sec), rxTime(sec), latency(usec)
"""
ROWS = "0, 2.400000000, 2.400020000, 10.000\n1, 3.500000000, 3.500060000, 30.000\n"
END = "------------------------------\n"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_our_recordings_are_recognised(path: Path) -> None:
    assert chosen(path) == "sockperf"


@pytest.mark.parametrize("name", ["ping-pong", "under-load", "round-trip"])
def test_single_messages_agree_with_what_the_tool_says_of_them(name: str) -> None:
    said = read(sockperf, OWN / f"{name}.txt").results[0].operations[0]
    own = read(sockperf, OWN / f"{name}.csv").results[0].operations[0]
    assert own.histogram is not None
    assert own.histogram.total == own.count == said.count
    assert own.name == said.name == ("round trip" if name == "round-trip" else "half round trip")
    for statistic in ("mean", "min", "max"):
        assert own.latency_ms[statistic] == pytest.approx(said.latency_ms[statistic], abs=2e-6)
    rows = [line.split(", ") for line in (OWN / f"{name}.csv").read_text().splitlines() if line[:1].isdigit()]
    exact_ns = sorted(round(float(row[3]) * 1000) for row in rows)
    for share in (0.25, 0.5, 0.99, 1.0):
        low, high = own.histogram.quantile_bounds(share)
        assert low <= exact_ns[math.ceil(share * len(exact_ns)) - 1] < high
        assert high - low <= max(1.0, low / 1024)


def test_summary() -> None:
    (result,) = read(sockperf, OWN / "ping-pong.txt").results
    (own,) = result.operations
    assert (result.job, result.duration_s, own.count) == ("ping-pong", 1.53, 154)
    assert own.latency_ms["p99"] == pytest.approx(0.064515)
    assert own.latency_ms["p99.99"] == own.latency_ms["max"]
    assert own.per_s == pytest.approx(154 / 1.53)


def test_series_are_half_round_trips_whatever_was_printed() -> None:
    capture = read(sockperf, OWN / "round-trip.csv")
    (result,) = capture.results
    assert values(capture, "net_half_trip_us") == pytest.approx([result.operations[0].latency_ms["mean"] * 500], 1e-4)
    assert not capture.sources[0].clock_known
    assert result.workload == {"messages_per_s": 100, "burst": 1, "reply_every": 1, "message_bytes": 14}


def test_seconds(tmp_path: Path) -> None:
    capture = read_text(sockperf, tmp_path, HEAD + ROWS + END, "loaded.csv")
    assert values(capture, "net_half_trip_us") == pytest.approx([10.0, 30.0])
    rates = values(capture, "net_messages_per_s")
    assert rates[0] == 1.0
    assert math.isnan(rates[1]), "the last second is not whole"
    assert capture.results[0].job == "loaded"
    assert np.diff(capture.groups[0].times_ns).tolist() == [100_060_000]


def test_throughput() -> None:
    own = operation(read(sockperf, OWN / "throughput.txt").results[0], "message")
    assert own.bytes_per_s == pytest.approx(own.per_s * 1400, rel=1e-4)


def test_a_clock_that_is_wrong_is_said() -> None:
    assert warned(read(sockperf, OWN / "wrong-clock.txt")) == ["clock"]
    assert "clock" not in warned(read(sockperf, OWN / "ping-pong.txt"))


def test_a_failed_run_has_no_operation() -> None:
    capture = read(sockperf, OWN / "refused.txt")
    (result,) = capture.results
    assert (result.operations, result.error_count) == ((), 1)
    assert "Connection refused" in capture.sources[0].warnings[0].message


def test_several_servers_and_runs(tmp_path: Path) -> None:
    text = (OWN / "ping-pong.txt").read_text()
    capture = read_text(sockperf, tmp_path, text + text, "two.txt")
    assert [result.job for result in capture.results] == ["two#1", "two#2"]
    lost = text.replace("dropped messages = 0", "dropped messages = 7")
    assert read_text(sockperf, tmp_path, lost).results[0].error_count == 7


@pytest.mark.parametrize(
    ("bad", "found"),
    [
        ("0, 2.4, soon, 10.000", "soon"),
        ("0, 2.5, 2.4, 10.000", "2.5, 2.4"),
        ("0, 2.4, 2.5", "0, 2.4, 2.5"),
        ("0, 2.4, 2.5, -1.0", "-1.0"),
        ("0, 2.4, 2.5, nan", "nan"),
    ],
)
def test_a_damaged_row_is_an_error_with_its_number(tmp_path: Path, bad: str, found: str) -> None:
    with pytest.raises(InputError) as caught:
        read_text(sockperf, tmp_path, HEAD + ROWS + bad + "\n" + END)
    assert caught.value.where.endswith(":11")
    assert found in caught.value.found


def test_cut_files(tmp_path: Path) -> None:
    log = read_text(sockperf, tmp_path, HEAD + ROWS + "2, 3.6, 3.7, 50")
    assert "cut" in warned(log)
    assert log.results[0].operations[0].count == 2
    text = (OWN / "ping-pong.txt").read_text()
    assert warned(read_text(sockperf, tmp_path, text.rstrip()[:-2])) == ["cut"]
    with pytest.raises(InputError, match="no summary of a run"):
        read_text(sockperf, tmp_path, text[:300])
    with pytest.raises(InputError, match="without messages"):
        read_text(sockperf, tmp_path, HEAD)
    with pytest.raises(InputError, match=r":12: .*avg-latency=x"):
        read_text(sockperf, tmp_path, text.replace("avg-latency=", "avg-latency=x"))


@given(rows=st.lists(st.tuples(st.floats(0, 50), st.floats(0, 100)), min_size=1, max_size=60))
@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_every_message_is_counted_once(tmp_path: Path, rows: list[tuple[float, float]]) -> None:
    """In whatever order they came, and at whatever times."""
    lines = [f"{i}, {at:.9f}, {at + 2e-3 * ms:.9f}, {1000 * ms:.3f}" for i, (at, ms) in enumerate(rows)]
    capture = read_text(sockperf, tmp_path, HEAD + "\n".join(lines) + "\n" + END)
    (own,) = capture.results[0].operations
    assert own.histogram is not None
    assert own.histogram.total == own.count == len(rows)
    assert own.latency_ms["mean"] == pytest.approx(np.mean([ms for _, ms in rows]), abs=1e-5)
    halves = values(capture, "net_half_trip_us")
    assert min(halves) >= min(ms for _, ms in rows) * 1000 - 0.01
    assert max(halves) <= max(ms for _, ms in rows) * 1000 + 0.01
