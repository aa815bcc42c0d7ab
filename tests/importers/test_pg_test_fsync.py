"""pg_test_fsync: every method of a recording of ours, and what is refused."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from leadline.core.model.errors import InputError
from leadline.importers import pg_test_fsync
from tests.importers.load_tools import chosen, read, read_text, values, warned

HEAD = "5 seconds per test\nCompare file sync methods using one 8kB write:\n"
ROW = "        fdatasync                           320.500 ops/sec    3120 usecs/op\n"
METHODS = ["open_datasync", "fdatasync", "fsync", "open_sync"]


def test_every_method_is_kept(fixtures: Path) -> None:
    path = fixtures / "pg_test_fsync" / "ext4.txt"
    assert chosen(path) == "pg-test-fsync"
    capture = read(pg_test_fsync, path)
    results = {result.job: result for result in capture.results}
    assert [len(result.operations) for result in capture.results] == [4, 4, 5, 2, 1]
    assert [operation.name for operation in results["two 8kB writes"].operations] == METHODS
    assert [operation.name for operation in results["open_sync"].operations][::4] == ["1 x 16kB", "16 x 1kB"]
    rows = [line.split() for line in path.read_text().splitlines() if "ops/sec" in line]
    operations = [operation for result in capture.results for operation in result.operations]
    assert [operation.per_s for operation in operations] == [float(row[-4]) for row in rows]
    for operation, row in zip(operations, rows, strict=True):
        assert operation.latency_ms["mean"] == pytest.approx(float(row[-2]) / 1000, abs=0.000501)
        assert math.isnan(operation.count)
    assert values(capture, "job_iops", "guest:guest/job:one 8kB write fdatasync") == [float(rows[1][-4])]
    assert len(values(capture, "job_latency_ms")) == 16
    assert warned(capture) == ["no-times"]


def test_what_was_not_measured_is_left_out_and_what_is_cut_is_said(tmp_path: Path) -> None:
    capture = read_text(pg_test_fsync, tmp_path, HEAD + "        open_datasync                      n/a*\n" + ROW)
    assert [operation.name for operation in capture.results[0].operations] == ["fdatasync"]
    assert warned(capture) == ["no-direct", "cut", "no-times"]
    capture = read_text(pg_test_fsync, tmp_path, HEAD + ROW + ROW[:-9])
    assert [operation.latency_ms["mean"] for operation in capture.results[0].operations] == [
        pytest.approx(1000 / 320.5)
    ]
    assert warned(capture) == ["cut", "cut", "no-times"]
    capture = read_text(
        pg_test_fsync, tmp_path, HEAD + ROW.replace("3120 usecs/op", "").rstrip() + "\n"
    )  # 9.2 and older
    assert capture.results[0].operations[0].per_s == 320.5


@pytest.mark.parametrize(
    ("text", "line", "what"),
    [
        (HEAD, 1, "no test"),
        (HEAD + ROW.replace("3120", "3125"), 3, "inverse"),
        (HEAD + ROW.replace("320.500", "0.000"), 3, "above 0"),
        (HEAD + "        fdatasync  quick\n" + ROW, 3, "a test of pg_test_fsync"),
        (HEAD.replace("5 s", "0 s") + ROW, 1, "at least a second"),
    ],
)
def test_damage_is_named_with_its_line(tmp_path: Path, text: str, line: int, what: str) -> None:
    with pytest.raises(InputError) as caught:
        read_text(pg_test_fsync, tmp_path, text)
    assert caught.value.where.endswith(f"x.txt:{line}")
    assert what in f"{caught.value.found} {caught.value.expected}"
