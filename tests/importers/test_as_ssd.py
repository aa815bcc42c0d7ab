"""AS SSD's copied texts."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.importers import as_ssd
from tests.conftest import ROOT
from tests.importers.recordings import MTIME_NS, codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "as_ssd.txt").read_text()
HEAD = "AS SSD Benchmark 2.0.7316.34247\n" + "-" * 30 + "\nName: SSD\n"


def read_text(folder: Path, text: str, request: Request | None = None) -> Capture:
    source = source_of(folder, text)
    assert as_ssd.sniff(source) == 94
    return as_ssd.read(source, request or Request())


def test_a_test_is_a_result(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    measured = {r.job: (r.operations[0].per_s, r.operations[0].mean_ms) for r in capture.results}
    assert measured == {
        "SEQ 16MiB Q1 read": pytest.approx((154.29, 6.4813), rel=1e-4),
        "SEQ 16MiB Q1 write": pytest.approx((67.338, 14.8504), rel=1e-4),
        "RND 4KiB Q1 read": pytest.approx((15521.28, 0.064428), rel=1e-4),
        "RND 4KiB Q1 write": pytest.approx((31267.84, 0.031982), rel=1e-4),
        "RND 4KiB Q64 read": pytest.approx((114101.8, 0.560903), rel=1e-4),
        "RND 4KiB Q64 write": pytest.approx((66393.6, 0.963948), rel=1e-4),
        "access 512B Q1 read": pytest.approx((10204.08, 0.098), rel=1e-4),
        "access 512B Q1 write": pytest.approx((20408.16, 0.049), rel=1e-4),
    }
    assert capture.results[2].operations[0].bytes_per_s == pytest.approx(60.63 * 2**20)
    job = "guest:guest/job:RND 4KiB Q1 read"
    assert values_of(capture, "job_mib_per_s", job) == pytest.approx([60.63])
    moment = datetime(2025, 4, 23, 16, 5, 59, tzinfo=UTC)
    assert group_of(capture, "job_iops", job).times_ns.tolist() == [int(moment.timestamp()) * 10**9]
    assert capture.results[0].workload["disk"] == "Internal NVMe SSD"
    assert codes(capture) == ["no-zone"]


def test_iops_of_the_same_run(tmp_path: Path) -> None:
    text = HEAD + "16MB\n---------\nRead: 154.29 iops\n4K:\nRead: 15521 iops\n4K-64Threads:\nRead: 114103 iops\n"
    text += "512B\n---------\nRead: 10204 iops\n"
    capture = read_text(tmp_path, text)
    assert [r.operations[0].per_s for r in capture.results] == [154.29, 15521, 114103, 10204]
    assert capture.results[1].operations[0].bytes_per_s / 2**20 == pytest.approx(60.63, rel=1e-4)
    assert codes(capture) == ["no-times"]
    assert group_of(capture, "job_iops", "guest:guest/job:SEQ 16MiB Q1 read").times_ns.tolist() == [MTIME_NS]


@pytest.mark.parametrize("date", ["15.02.2017 15:22:27", "2017/02/15 15:22:27", "2/15/2017 3:22:27 PM"])
def test_dates_of_several_languages(tmp_path: Path, date: str) -> None:
    capture = read_text(tmp_path, f"{HEAD}Date: {date}\n4K:\nRead: 41,31 MB/s\n", Request(timezone="UTC"))
    group = group_of(capture, "job_mib_per_s", "guest:guest/job:RND 4KiB Q1 read")
    assert group.values[0].tolist() == pytest.approx([41.31])
    assert group.times_ns.tolist() == [1487172147 * 10**9]
    assert codes(capture) == []


def test_several_texts_and_damage(tmp_path: Path) -> None:
    text = (
        SEED + HEAD + "4K:\nRead: 49.57 MB/s\nWrite: 89.1\nCompression:\nRead: 12 MB/s\n4K-64Thrd:\nRead: 0.00 MB/s\n"
    )
    capture = read_text(tmp_path, text)
    assert [result.job for result in capture.results][7:] == ["access 512B Q1 write 1", "RND 4KiB Q1 read 2"]
    assert codes(capture) == ["left-out", "no-times", "no-rate"]
    assert capture.sources[0].warnings[0].count == 3


def test_no_number_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="no test with a number"):
        read_text(tmp_path, HEAD + "Sequential:\nRead: ---- MB/s\n")
