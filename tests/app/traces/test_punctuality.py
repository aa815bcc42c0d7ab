"""Punctuality: what logs of a replay say of it, against iologs whose times are known."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from leadline.app.traces.punctuality import punctuality

HEAD = "fio version 3 iolog\n1 t0 add\n1 t0 open\n"


def _lane(path: Path, *due_us: int) -> Path:
    path.write_text(HEAD + "".join(f"{us} t0 read 0 4096\n" for us in due_us))
    return path


def _log(path: Path, *lines: tuple[int, int]) -> Path:
    path.write_text("".join(f"{done_ms}, {latency_ns}, 0, 4096, 0, 0\n" for done_ms, latency_ns in lines))
    return path


def test_lateness_is_against_the_most_punctual_request(tmp_path: Path) -> None:
    lanes = [_lane(tmp_path / "a", 1, 100_001), _lane(tmp_path / "b", 50_001, 150_001)]
    # Clocks began 3 ms before; the second of lane b came 40 ms late, each took a millisecond.
    logs = [_log(tmp_path / "1", (4, 10**6), (104, 10**6)), _log(tmp_path / "2", (54, 10**6), (194, 10**6))]
    timely = punctuality(lanes, logs, 100)
    assert (timely.request_count, timely.late_ms_p50, timely.late_ms_max, timely.late_share) == (4, 0.0, 40.0, 0.25)
    assert timely.sentence == (
        "Requests were issued 0 ms late at the median, 38.8 ms at p99, 40 ms at most; 25 % more than 10 ms late."
    )


def test_times_are_scaled_and_a_lane_that_ended_early_counts_as_far_as_it_came(tmp_path: Path) -> None:
    lanes = [_lane(tmp_path / "a", 1, 100_001, 200_001)]
    logs = [_log(tmp_path / "1", (0, 0), (50, 0))]
    assert punctuality(lanes, logs, 200).late_ms_max == 0.0
    assert punctuality(lanes, logs, 400).late_ms_max == 25.0
    assert punctuality(lanes, logs, 200).request_count == 2


def test_nothing_issued_is_not_known(tmp_path: Path) -> None:
    lanes, logs = [_lane(tmp_path / "a")], [_log(tmp_path / "1")]
    for timely in (punctuality(lanes, logs, 100), punctuality([], [], 100)):
        assert timely.request_count == 0
        assert np.isnan(timely.late_ms_p50)
        assert "not known" in timely.sentence
