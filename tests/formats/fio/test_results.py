"""What fio's reports share: when what they count ended."""

from __future__ import annotations

from typing import Any

from leadline.formats.fio.results import moment_ms


def report(dated_ms: int, *ran_ms: int) -> dict[str, Any]:
    return {"timestamp_ms": dated_ms, "jobs": [{"read": {"runtime": ran}, "write": {}} for ran in ran_ms]}


def test_a_report_written_late_is_dated_when_its_jobs_ended() -> None:
    first, last = report(5_000, 500, 480), report(6_900, 2_000, 1_990)
    assert moment_ms(first, first) == 5_000
    assert moment_ms(report(6_001, 1_503, 1_480), first) == 6_001  # the clock says less than the jobs
    assert moment_ms(last, first) == 6_500  # 400 ms after the jobs had ended


def test_a_report_that_does_not_say_how_long_is_dated_as_it_is() -> None:
    first = {"timestamp_ms": 5_000, "jobs": [{"read": {}}]}
    assert moment_ms({"timestamp_ms": 6_900, "jobs": []}, first) == 6_900
