"""CrystalDiskMark's texts of versions 5 to 9."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError
from leadline.core.model.result import Subject
from leadline.importers import crystal_disk_mark
from tests.conftest import ROOT
from tests.importers.recordings import codes, group_of, source_of, values_of

SEED = (ROOT / "tests" / "importers" / "seeds" / "crystal-disk-mark.txt").read_text()
OLD = """\
-----------------------------------------------------------------------
CrystalDiskMark 6.0.2 x64 (C) 2007-2018 hiyohiyo
                          Crystal Dew World : https://crystalmark.info/
-----------------------------------------------------------------------
* MB/s = 1,000,000 bytes/s [SATA/600 = 600,000,000 bytes/s]
* KB = 1000 bytes, KiB = 1024 bytes

   Sequential Read (Q= 32,T= 1) :    91.559 MB/s
  Sequential Write (Q= 32,T= 1) :    85.101 MB/s
  Random Read 4KiB (Q=  8,T= 8) :     7.892 MB/s [   1926.8 IOPS]
 Random Write 4KiB (Q=  1,T= 1) :     0.410 MB/s [    100.0 IOPS]

  Test : 1024 MiB [E: 0.0% (0.0/119.0 GiB)] (x5)  [Interval=5 sec]
  Date : 2019/04/02 10:09:19
    OS : Windows 10 Professional [10.0 Build 17763] (x64)
"""


def read_text(folder: Path, text: str) -> Capture:
    source = source_of(folder, text)
    assert crystal_disk_mark.sniff(source) >= 90
    return crystal_disk_mark.read(source, Request())


def test_a_test_is_a_result(tmp_path: Path) -> None:
    capture = read_text(tmp_path, SEED)
    assert [result.job for result in capture.results] == [
        "D: SEQ 1MiB Q8T1 read",
        "D: RND 4KiB Q32T16 read",
        "D: RND 4KiB Q1T1 read",
        "D: SEQ 1MiB Q8T1 write",
        "D: RND 4KiB Q1T1 write",
    ]
    (single,) = capture.results[2].measured(Subject.DISK)
    assert single.per_s == 99.6
    assert single.bytes_per_s == 408_000
    assert single.mean_ms == pytest.approx(10.01333)
    assert capture.results[2].place == "D:"
    job = "guest:guest/job:D: RND 4KiB Q1T1 read"
    assert values_of(capture, "job_latency_ms", job) == pytest.approx([10.01333])
    moment = datetime(2024, 5, 25, 19, 26, 52, tzinfo=UTC)
    assert group_of(capture, "job_iops", job).times_ns.tolist() == [int(moment.timestamp()) * 10**9]
    assert codes(capture) == ["no-zone", "best-of"]


def test_without_a_latency_it_follows_from_the_rate(tmp_path: Path) -> None:
    capture = read_text(tmp_path, OLD)
    means = [result.operations[0].mean_ms for result in capture.results]
    assert means[2] == pytest.approx(64 / 1926.8 * 1000)
    assert means[3] == pytest.approx(10)
    assert means[0] == pytest.approx(32 * 131_072 / 91_559_000 * 1000)
    assert [result.operations[0].name for result in capture.results] == ["read", "write", "read", "write"]
    assert capture.results[0].tool_version == "6.0.2"


def test_several_texts_and_rows_alone(tmp_path: Path) -> None:
    assert len(read_text(tmp_path, SEED + OLD).results) == 9
    rows = read_text(tmp_path, SEED[SEED.index("[Read]") : SEED.index("Profile")])
    assert len(rows.results) == 5
    assert codes(rows) == ["no-times", "best-of"]


def test_what_is_none_of_its_lines_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"recording\.txt:9"):
        read_text(tmp_path, SEED.replace("101.514 MB/s", "101.514 XB/s"))
    with pytest.raises(InputError, match="below"):
        read_text(tmp_path, SEED.replace("[Read]\n", ""))
